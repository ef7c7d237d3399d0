"""Runs that are killed, interrupted, or started twice."""

import os
import re
import shlex
import signal
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from support import command_lines, hosts
from support.processes import run_python, started

from official_bert.commands import run_pretraining
from official_bert.errors import InputError
from official_bert.runs import checkpoints
from official_bert.sources.formats.tf1 import checkpoint as tf1
from tools import fault_drill

# Saves the first or second checkpoint of a run and dies at the N-th call that
# touches the disk, for every N, each in a directory named N. The processes are
# forked, because TensorFlow takes seconds to import.
CRASHES = """
import os, sys
import numpy as np
from tools import fault_drill
from official_bert.runs import checkpoints

def save(folder, step, size):
    arrays = {"a": np.full(size, step, np.float32), "global_step": step}
    state = checkpoints.ResumeState(seed=1, examples_seen=step)
    checkpoints.save(folder, step, arrays, state, keep=1)

def drill(which, number):
    folder = os.path.join(sys.argv[1], which, str(number))
    os.makedirs(folder)
    if which == "second":
        save(folder, 1, 500)
    fault_drill.die_at(fault_drill.Kill(number + 1, 0))
    save(folder, 2, 5000)
    os._exit(0)

for which in ("first", "second"):
    for number in range(100):
        if not os.fork():
            drill(which, number)
        if os.wait()[1] == 0:
            break
"""


@pytest.mark.slow
def test_crash_at_any_disk_access_leaves_a_good_checkpoint(tmp_path):
    run_python("-c", CRASHES, tmp_path, timeout=120)
    for which, before in (("first", None), ("second", 1)):
        count = len(os.listdir(tmp_path / which))
        found = [checked_step(tmp_path / which / str(n)) for n in range(count)]
        changed = found.index(2)
        assert 5 < changed < count
        assert found == [before] * changed + [2] * (count - changed)


def checked_step(folder):
    """Returns the step of the newest checkpoint after checking its data."""
    prefix = checkpoints.latest(str(folder))
    if prefix is None:
        return None
    step = int(prefix[-1])
    array = tf.train.load_variable(prefix, "a")
    np.testing.assert_array_equal(array, np.full({1: 500, 2: 5000}[step], step))
    assert checkpoints.read_resume_state(prefix) == (1, step)
    return step


@pytest.fixture
def folder(tmp_path):
    fault_drill.write_inputs(str(tmp_path))
    return tmp_path


def command_line(folder):
    """Returns the command of a pre-training run that takes minutes."""
    scenario = fault_drill.scenarios(str(folder))[0]
    line = fault_drill.command_line(scenario, str(folder))
    return [*line, "--num_train_steps=100000", "--save_checkpoints_steps=20"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "dynamic masking",
        pytest.param("--train_file", marks=pytest.mark.nightly),
    ],
)
def test_killed_runs_end_like_an_uninterrupted_one(name):
    # Not in this process, which has used TensorFlow and cannot be forked.
    line = ["-m", "tools.fault_drill", "2", "1", name]
    row = run_python(*line).stdout.splitlines()[-1]
    counts = re.findall(r"([\d,]+) of ([\d,]+)", row)
    assert len(counts) == 2
    assert all(equal == total for equal, total in counts), row


@pytest.mark.slow
def test_ctrl_c_saves_and_exits_while_a_second_run_is_kept_out(folder):
    line = command_line(folder)
    with started(*line, stderr=subprocess.PIPE) as process:
        hosts.read_until(process, "Saved .*model.ckpt-20$")
        message = f"is in use by process {process.pid} on host"
        flags = shlex.join([*line[1:], "--num_train_steps=1"])
        with pytest.raises(InputError, match=message):
            command_lines.run(run_pretraining, flags)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130, errors
    (line,) = re.findall(r"Stopped by .*", errors)
    step = int(re.search(r"after step (\d+) of \d+, saved as", line)[1])
    assert step >= 20
    prefix = str(folder / "out" / f"model.ckpt-{step}")
    assert checkpoints.latest(str(folder / "out")) == prefix
    tf1.verify(prefix)
    assert "Traceback" not in errors
    assert not (folder / "out" / "run.lock").exists()
