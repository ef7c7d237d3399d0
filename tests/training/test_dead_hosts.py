"""A host that dies ends the others; restarted together, they resume."""

import re

import pytest
from support import hosts, run_outputs

from official_bert.checkpoints import run_directory, tf1

pytestmark = pytest.mark.slow

COMMAND = "run_pretraining.py"


def kill(processes, number, output):
    """Kills one of two hosts; the other one ends with a message."""
    processes[number].kill()
    survivor = processes[1 - number]
    _, errors = survivor.communicate(timeout=120)
    assert survivor.returncode == 1, errors
    assert "Another host of the run has stopped" in errors
    # Python may collect TensorFlow's thread pool after closing its pipe.
    errors, *_ = errors.split("Exception ignored in: <function Pool.__del__")
    assert not re.search("Traceback|most recent call last", errors)
    tf1.verify(run_directory.latest(str(output)))


def test_death_of_a_host_during_evaluation_ends_the_other(tmp_path, flags):
    with hosts.started(COMMAND, [flags, flags]) as processes:
        errors = hosts.read_until(processes[0], "Evaluating")
        [waiting] = re.findall(r"Waiting for all hosts: (.*)\.", errors)
        assert len(re.findall(r"localhost:\d+", waiting)) == 2
        kill(processes, 1, tmp_path / "out")


def test_restarted_hosts_end_with_the_weights_of_an_uninterrupted_run(
    tmp_path, flags
):
    flags |= {"do_eval": False, "num_train_steps": 60}
    flags["save_checkpoints_steps"] = 5
    whole, output = tmp_path / "whole", tmp_path / "out"
    hosts.run(COMMAND, [flags | {"output_dir": str(whole)}] * 2)
    for number in (1, 0):
        with hosts.started(COMMAND, [flags] * 2) as processes:
            hosts.read_until(processes[0], r"Saved .*model\.ckpt-[1-9]\d*$")
            kill(processes, number, output)
    hosts.run(COMMAND, [flags] * 2)
    run_outputs.assert_same_weights(whole, output)
