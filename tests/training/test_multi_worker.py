"""Several hosts, as real processes: results, agreement, signals, deaths."""

import re
import signal
import time

import numpy as np
import pytest
from support import hosts, pretraining_runs, review_runs, run_outputs

from official_bert.checkpoints import run_directory, tf1

pytestmark = pytest.mark.slow


@pytest.fixture
def flags(tmp_path):
    """The flags of a pre-training run with a long evaluation."""
    pretraining_runs.write(tmp_path)
    steps = dict.fromkeys(("num_train_steps", "save_checkpoints_steps"), 20)
    modes = {"do_train": True, "do_eval": True, "max_eval_steps": 100_000}
    return pretraining_runs.flags(tmp_path, **steps, **modes)


@pytest.mark.parametrize(
    ("killed", "num_steps", "moment"),
    [
        (0, 100_000, r"Saved .*model\.ckpt-40$"),
        (1, 40, "Evaluating"),
    ],
)
def test_death_of_a_host_ends_the_others_with_a_message(
    tmp_path, flags, killed, num_steps, moment
):
    flags["num_train_steps"] = num_steps
    with hosts.started("run_pretraining.py", [flags, flags]) as processes:
        errors = hosts.read_until(processes[0], moment)
        [waiting] = re.findall(r"Waiting for all hosts: (.*)\.", errors)
        assert len(re.findall(r"localhost:\d+", waiting)) == 2
        processes[killed].kill()
        survivor = processes[1 - killed]
        _, errors = survivor.communicate(timeout=120)
    assert survivor.returncode == 1, errors
    assert "Another host of the run has stopped" in errors
    # Python may collect TensorFlow's thread pool after closing its pipe.
    errors, *_ = errors.split("Exception ignored in: <function Pool.__del__")
    assert not re.search("Traceback|most recent call last", errors)
    prefix = run_directory.latest(f"{tmp_path}/out")
    assert prefix is not None
    tf1.verify(prefix)


def test_restarted_hosts_end_with_the_weights_of_an_uninterrupted_run(
    tmp_path, flags
):
    flags |= {"do_eval": False, "num_train_steps": 60}
    flags["save_checkpoints_steps"] = 5
    command, whole = "run_pretraining.py", tmp_path / "whole"
    hosts.run(command, [flags | {"output_dir": str(whole)}] * 2)
    for killed in (1, 0):
        with hosts.started(command, [flags] * 2) as processes:
            hosts.read_until(processes[0], r"Saved .*model\.ckpt-[1-9]\d*$")
            processes[killed].kill()
            processes[1 - killed].communicate(timeout=120)
            assert processes[1 - killed].returncode == 1
    hosts.run(command, [flags] * 2)
    run_outputs.assert_same_weights(whole, tmp_path / "out")


@pytest.mark.parametrize(
    ("moment", "number"),
    [("Waiting for all", signal.SIGINT), ("Evaluating", signal.SIGTERM)],
)
def test_signal_ends_a_host_that_waits_or_evaluates(flags, moment, number):
    cluster = [flags, None]  # The second host never starts.
    if moment == "Evaluating":
        hosts.run("run_pretraining.py", [flags | {"do_eval": False}])
        cluster = [flags | {"do_train": False}]
    with hosts.started("run_pretraining.py", cluster) as [process]:
        hosts.read_until(process, moment)
        time.sleep(5.0)  # Until TensorFlow waits or evaluates.
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == -number


def test_hosts_that_start_from_different_steps_are_an_error(tmp_path, flags):
    flags |= {"do_eval": False}
    hosts.run("run_pretraining.py", [flags])
    flags["num_train_steps"] = 40
    other = flags | {"output_dir": f"{tmp_path}/other"}
    for text in hosts.run("run_pretraining.py", [other, flags], status=1):
        assert "with the same step. Received: [0, 20]" in text


def test_signal_to_one_host_stops_all_after_the_same_step(tmp_path, flags):
    flags |= {"num_train_steps": 100_000, "save_checkpoints_steps": 7}
    with hosts.started("run_pretraining.py", [flags, flags]) as processes:
        hosts.read_until(processes[0], r"Saved .*model\.ckpt-7$")
        processes[1].terminate()
        errors = hosts.wait(processes)
    step = int(re.search(r"after step (\d+)", errors[1])[1])
    assert f"Stopped by another host after step {step}" in errors[0]
    assert (tmp_path / "out" / f"model.ckpt-{step}.index").exists()


def test_two_hosts_fine_tune_like_one(tmp_path):
    """With evaluations during training, and batches that are not full."""
    review_runs.write(tmp_path)
    changes = {
        **dict.fromkeys(("do_train", "do_eval", "do_predict"), True),
        "num_train_epochs": 1.0,
        # Dropout masks depend on the number of replicas.
        "learning_rate": 1e-9,
        "eval_every": 5,
        "pad_to": "bucket",
    }
    alone = review_runs.run(tmp_path, "alone", **changes)
    flags = review_runs.flags(tmp_path, "two", **changes)
    hosts.run("run_classifier.py", [flags, flags])

    def files(folder):
        names = {path.name for path in folder.rglob("*")}
        return {n for n in names if not n.startswith("events.")}

    two = tmp_path / "two"
    assert files(two) == files(alone)
    expected, found = (np.loadtxt(f / "test_results.tsv") for f in (alone, two))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    expected, found = (
        run_outputs.read_json(f / "eval_results.json") for f in (alone, two)
    )
    assert found["eval_loss"] == pytest.approx(expected["eval_loss"], abs=1e-6)
