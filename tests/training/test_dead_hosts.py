"""Two real worker processes, one of which is killed, or never comes."""

import re
import signal
import time

import pytest
from support import hosts

from benchmarks import fault_drill
from official_bert.checkpoints import numbered, tf1


@pytest.fixture
def given(tmp_path):
    """The options of a run that trains, and evaluates for long."""
    fault_drill.write_inputs(str(tmp_path))
    return {
        "do_train": True,
        "bert_config_file": f"{tmp_path}/bert_config.json",
        "input_file": f"{tmp_path}/*.tfrecord",
        "output_dir": f"{tmp_path}/out",
        "max_seq_length": fault_drill.LENGTH,
        "max_predictions_per_seq": 5,
        "train_batch_size": 8,
        "num_train_steps": 20,
        "do_eval": True,
        "eval_batch_size": 8,
        "max_eval_steps": 100_000,
        "save_checkpoints_steps": 20,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dead", "num_steps", "sign"),
    [
        (0, 100_000, r"Saved .*model\.ckpt-40$"),
        (1, 100_000, r"Saved .*model\.ckpt-40$"),
        (1, 40, "Evaluating"),
    ],
)
def test_a_dead_host_ends_the_other_with_a_message(
    tmp_path, given, dead, num_steps, sign
):
    given["num_train_steps"] = num_steps
    running = hosts.start("run_pretraining.py", [given, given])
    try:
        for line in running[0].stderr:
            if "Waiting for all hosts" in line:
                waited_for = re.findall(r"localhost:\d+", line)
            if re.search(sign, line):
                break
        running[dead].kill()
        survivor = running[1 - dead]
        _, told = survivor.communicate(timeout=120)
    finally:
        for process in running:
            process.kill()
            process.communicate()
    assert len(waited_for) == 2
    assert survivor.returncode == 1, told
    assert "All hosts of a run must stay until its end" in told
    assert "Traceback" not in told
    prefix = numbered.latest(f"{tmp_path}/out")
    assert prefix is not None
    tf1.check(prefix)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hosts", "changes", "number"),
    [
        (2, {}, signal.SIGINT),
        (1, {"do_train": False}, signal.SIGTERM),
    ],
)
def test_a_host_can_be_ended_out_of_training(given, hosts, changes, number):
    """While it waits for one that never comes, and while it evaluates."""
    if changes:
        made = hosts.start("run_pretraining.py", [given | {"do_eval": False}])
        assert hosts.wait(made)[0] == [0]
    options = given | changes
    [running] = hosts.start("run_pretraining.py", [options, None][:hosts])
    try:
        for line in running.stderr:
            if re.search("Evaluating" if changes else "Waiting for all", line):
                break
        time.sleep(5.0)  # Until it really does.
        assert running.poll() is None
        running.send_signal(number)
        running.communicate(timeout=30)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == -number
