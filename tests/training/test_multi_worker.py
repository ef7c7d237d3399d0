"""Several hosts, as real processes: results, signals, a killed host."""

import re
import signal
import time

import numpy as np
import pytest
from support import (
    command_lines,
    hosts,
    pretraining_runs,
    review_runs,
    run_outputs,
    tiny,
)

from official_bert.commands import run_classifier, run_pretraining
from official_bert.options import RunClassifier, RunPretraining
from official_bert.runs import checkpoints
from official_bert.sources.formats.tf1 import checkpoint as tf1

pytestmark = pytest.mark.slow

COMMAND = "run_pretraining.py"


@pytest.fixture
def flags(tmp_path):
    """The flags of a pre-training run with a long evaluation."""
    pretraining_runs.write(tmp_path)
    steps = dict.fromkeys(("num_train_steps", "save_checkpoints_steps"), 20)
    modes = {"do_train": True, "do_eval": True, "max_eval_steps": 100_000}
    return pretraining_runs.flags(tmp_path, **steps, **modes)


def test_signal_ends_a_host_that_waits(flags):
    with hosts.started(COMMAND, [flags, None]) as [process]:
        hosts.read_until(process, "Waiting for all")
        time.sleep(2.0)  # Until TensorFlow waits.
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT


@pytest.mark.nightly
def test_hosts_that_start_from_different_steps_are_an_error(tmp_path, flags):
    flags |= {"do_eval": False}
    run_pretraining.main(RunPretraining(**flags))
    flags["num_train_steps"] = 40
    other = flags | {"output_dir": f"{tmp_path}/other"}
    for text in hosts.run(COMMAND, [other, flags], status=1):
        assert "with the same step. Received: [0, 20]" in text


@pytest.mark.nightly
def test_two_hosts_fine_tune_like_one(tmp_path):
    """Also with evaluations during training, and batches that are not full."""
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


@pytest.mark.nightly
def test_two_hosts_train_embeddings_with_the_results_of_one(tmp_path):
    """The model has no dropout, whose masks depend on the replicas."""
    tiny.write_model_files(tmp_path, tiny.CONFIG)
    queries, matches = (tiny.texts(64, seed, 6) for seed in (1, 2))
    rows = map(",".join, zip(queries, matches, strict=True))
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("\n".join(["query,positive", *rows, ""]))

    def flags(output):
        return {
            **command_lines.files_of_run(tmp_path, output),
            "task_type": "embedding",
            "train_file": str(pairs),
            "do_train": True,
            "max_seq_length": 16,
            "train_batch_size": 16,
            "num_train_epochs": 2.0,
            "learning_rate": 2e-3,
        }

    run_classifier.main(RunClassifier(**flags("alone")))
    hosts.run("run_classifier.py", [flags("two")] * 2)
    run_outputs.assert_close_weights(
        tmp_path / "two", tmp_path / "alone", atol=1e-4
    )


def end(processes, number, output, sent=signal.SIGKILL):
    """Ends one of two hosts; checks that the other ends with a message."""
    processes[number].send_signal(sent)
    assert processes[number].wait(timeout=30) == -sent
    survivor = processes[1 - number]
    _, errors = survivor.communicate(timeout=120)
    assert survivor.returncode == 1, errors
    assert "Another host of the run has stopped" in errors
    # Python may collect TensorFlow's thread pool after closing its pipe.
    errors, *_ = errors.split("Exception ignored in: <function Pool.__del__")
    assert not re.search("Traceback|most recent call last", errors)
    tf1.verify(checkpoints.latest(str(output)))


@pytest.mark.nightly
def test_death_of_a_host_during_evaluation_ends_the_other(tmp_path, flags):
    with hosts.started(COMMAND, [flags, flags]) as processes:
        errors = hosts.read_until(processes[0], "Evaluating")
        [waiting] = re.findall(r"Waiting for all hosts: (.*)\.", errors)
        assert len(re.findall(r"localhost:\d+", waiting)) == 2
        end(processes, 1, tmp_path / "out", signal.SIGTERM)


@pytest.mark.nightly
def test_restarted_hosts_end_with_uninterrupted_weights(tmp_path, flags):
    flags |= {"do_eval": False, "num_train_steps": 60}
    flags["save_checkpoints_steps"] = 5
    whole, output = tmp_path / "whole", tmp_path / "out"
    hosts.run(COMMAND, [flags | {"output_dir": str(whole)}] * 2)
    with hosts.started(COMMAND, [flags] * 2) as processes:
        hosts.read_until(processes[0], r"Saved .*model\.ckpt-[1-9]\d*$")
        end(processes, 0, output)
    hosts.run(COMMAND, [flags] * 2)
    run_outputs.assert_same_weights(whole, output)
