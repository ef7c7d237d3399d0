"""Several hosts, as real processes: results, agreement, signals, deaths."""

import json
import re
import shutil
import signal
import time

import numpy as np
import pytest
from support import hosts, pretraining_runs, tiny

from official_bert.checkpoints import run_directory, tf1

pytestmark = pytest.mark.slow


@pytest.fixture
def flags(tmp_path):
    """The flags of a pre-training run with a long evaluation."""
    return pretraining_runs.flags(
        pretraining_runs.write(tmp_path),
        do_train=True,
        do_eval=True,
        num_train_steps=20,
        save_checkpoints_steps=20,
        max_eval_steps=100_000,
    )


def wait_for_line(process, pattern):
    """Returns the lines on stderr up to the first that matches."""
    lines = []
    for line in process.stderr:
        lines.append(line)
        if re.search(pattern, line):
            return "".join(lines)
    raise AssertionError("".join(lines))


def end(processes):
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("killed", "num_steps", "moment"),
    [
        (0, 100_000, r"Saved .*model\.ckpt-40$"),
        (1, 100_000, r"Saved .*model\.ckpt-40$"),
        (1, 40, "Evaluating"),
    ],
)
def test_death_of_a_host_ends_the_others_with_a_message(
    tmp_path, flags, killed, num_steps, moment
):
    flags["num_train_steps"] = num_steps
    processes = hosts.start("run_pretraining.py", [flags, flags])
    try:
        errors = wait_for_line(processes[0], moment)
        [waiting] = re.findall(r"Waiting for all hosts: (.*)\.", errors)
        assert len(re.findall(r"localhost:\d+", waiting)) == 2
        processes[killed].kill()
        survivor = processes[1 - killed]
        _, errors = survivor.communicate(timeout=120)
    finally:
        end(processes)
    assert survivor.returncode == 1, errors
    assert "Another host of the run has stopped" in errors
    assert "Traceback" not in errors
    prefix = run_directory.latest(f"{tmp_path}/out")
    assert prefix is not None
    tf1.verify(prefix)


@pytest.mark.parametrize(
    ("moment", "number"),
    [("Waiting for all", signal.SIGINT), ("Evaluating", signal.SIGTERM)],
)
def test_signal_ends_a_host_that_waits_or_evaluates(flags, moment, number):
    cluster = [flags, None]  # The second host never starts.
    if moment == "Evaluating":
        trained = hosts.start(
            "run_pretraining.py", [flags | {"do_eval": False}]
        )
        assert hosts.wait(trained)[0] == [0]
        cluster = [flags | {"do_train": False}]
    [process] = hosts.start("run_pretraining.py", cluster)
    try:
        wait_for_line(process, moment)
        time.sleep(5.0)  # Until it is well inside TensorFlow.
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=30)
    finally:
        end([process])
    assert process.returncode == -number


def test_hosts_that_start_from_different_steps_are_an_error(tmp_path, flags):
    flags |= {"do_eval": False}
    trained = hosts.start("run_pretraining.py", [flags])
    assert hosts.wait(trained)[0] == [0]
    flags["num_train_steps"] = 40
    other = flags | {"output_dir": f"{tmp_path}/other"}
    codes, errors = hosts.wait(
        hosts.start("run_pretraining.py", [other, flags])
    )
    assert codes == [1, 1], errors
    for text in errors:
        assert "with the same step. Received: [0, 20]" in text


def test_signal_to_one_host_stops_all_after_the_same_step(tmp_path, flags):
    flags |= {"num_train_steps": 100_000, "save_checkpoints_steps": 7}
    processes = hosts.start("run_pretraining.py", [flags, flags])
    while not (tmp_path / "out" / "model.ckpt-7.index").exists():
        assert processes[0].poll() is None
        time.sleep(0.1)
    processes[1].terminate()
    codes, errors = hosts.wait(processes)
    assert codes == [0, 0], errors
    step = int(re.search(r"after step (\d+)", errors[1])[1])
    assert f"Stopped by another host after step {step}" in errors[0]
    assert (tmp_path / "out" / f"model.ckpt-{step}.index").exists()


def test_two_hosts_fine_tune_like_one(tmp_path):
    """With evaluations during training, and batches that are not full."""
    random = np.random.RandomState(0)
    for name, number in (("train", 48), ("dev", 21), ("test", 13)):
        lines = ["text\tlabel"]
        for _ in range(number):
            words = random.choice(tiny.WORDS, random.randint(1, 9)).tolist()
            lines.append(f"{' '.join(words)}\t{int('good' in words)}")
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n")
    changes = {
        "task_name": "tsv",
        "task_type": "classification",
        "text_a_column": "text",
        "label_column": "label",
        "num_train_epochs": 4.0,
        # Dropout masks depend on the number of replicas.
        "learning_rate": 1e-9,
        "eval_every": 5,
        "pad_to": "bucket",
    }
    output, expected = tiny.run(tmp_path, **changes)
    alone = shutil.move(output, tmp_path / "alone")
    flags = {
        key: value
        for key, value in vars(tiny.options(tmp_path, **changes)).items()
        if value is not None
    }
    codes, errors = hosts.wait(hosts.start("run_classifier.py", [flags, flags]))
    assert codes == [0, 0], errors

    def file_names(folder):
        names = {path.name for path in folder.rglob("*")}
        return {n for n in names if not n.startswith("events.")}

    assert file_names(output) == file_names(alone)
    one, two = (
        np.loadtxt(folder / "test_results.tsv") for folder in (alone, output)
    )
    np.testing.assert_allclose(two, one, atol=1e-6)
    found = json.loads((output / "eval_results.json").read_text())
    assert found["eval_loss"] == pytest.approx(expected["eval_loss"], abs=1e-6)
