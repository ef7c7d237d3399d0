"""A host that dies ends the others; restarted together, they resume."""

import re

import pytest
from support import hosts, run_outputs

from official_bert.checkpoints import run_directory, tf1

pytestmark = pytest.mark.slow


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
