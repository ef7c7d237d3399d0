import contextlib
import threading
import time
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import pretraining_runs
from support.run_outputs import weights

from official_bert.errors import InputError
from official_bert.runs import checkpoints
from official_bert.training import checkpointing, distribution

START = checkpointing.StartingPoint(step=0, seed=1, examples_seen=0)
TIMEOUT = 60  # Seconds. Reached only by tests that fail.


@pytest.fixture
def state():
    """Variables of a model and an optimizer, on one and on two devices."""
    with distribution.get_strategy("mirrored").scope():
        replicated = tf.Variable(tf.fill([300], 1.0))
    return {
        "global_step": tf.Variable(1, dtype=tf.int64),
        "kernel": keras.Variable(np.full([40, 50], 1.0, np.float32)),
        "replicated": replicated,
        "slot": tf.Variable(tf.fill([40, 50], 1.0)),
    }


def saver(state, output):
    options = types.SimpleNamespace(
        is_chief=True,
        output_dir=str(output),
        train_batch_size=4,
        keep_checkpoint_max=9,
    )
    return checkpointing.BackgroundSaver(state, START, options)


def assert_saved(output, step):
    """Every number in the checkpoint of a step equals the step."""
    arrays = weights(output, step)
    assert len(arrays) == 4
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, step, err_msg=name)
    prefix = str(output / f"model.ckpt-{step}")
    assert checkpoints.read_resume_state(prefix) == (1, 4 * step)


@pytest.fixture
def writing(monkeypatch):
    """Lets `checkpoints.save` wait for the event `may_write`.

    Then it raises `error`, if there is one, instead of writing.
    """
    writing = types.SimpleNamespace(may_write=threading.Event(), error=None)

    def save(*arguments):
        assert writing.may_write.wait(TIMEOUT)
        if writing.error:
            raise writing.error
        return original(*arguments)

    original = checkpoints.save
    monkeypatch.setattr(checkpoints, "save", save)
    return writing


@pytest.mark.parametrize("jit_compile", [False, True])
def test_checkpoint_holds_the_values_of_its_step(
    state, tmp_path, writing, jit_compile
):
    @tf.function(jit_compile=jit_compile)
    def update():
        for name in ("global_step", "slot"):
            state[name].assign_add(tf.ones_like(state[name]))
        state["kernel"].value.assign(state["kernel"].value + 1.0)

    with saver(state, tmp_path) as saves:
        saves.save(1)
        for _ in range(3):
            update()
            state["replicated"].assign_add(tf.ones([300]))
        saves.raise_error()  # There is none.
        assert checkpoints.latest(str(tmp_path)) is None
        writing.may_write.set()
        saves.save(4)
        # Only one is written at a time.
        assert_saved(tmp_path, 1)
    assert_saved(tmp_path, 4)


def call_until_it_fails(function, *arguments):
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        function(*arguments)


@pytest.mark.parametrize("method", ["wait", "raise_error", "save"])
def test_failed_checkpoint_ends_the_run(state, tmp_path, writing, method):
    writing.may_write.set()
    with saver(state, tmp_path) as saves:
        saves.save(1)
        saves.wait()
        writing.error = InputError("No space left on device")
        saves.save(2)
        arguments = [3] if method == "save" else []
        with pytest.raises(InputError, match="No space left"):
            call_until_it_fails(getattr(saves, method), *arguments)
    assert_saved(tmp_path, 1)
    assert checkpoints.latest(str(tmp_path)).endswith("model.ckpt-1")


def test_checkpoint_is_completed_when_a_run_fails(state, tmp_path, writing):
    threading.Timer(0.1, writing.may_write.set).start()
    with contextlib.suppress(InputError), saver(state, tmp_path) as saves:
        saves.save(1)
        raise InputError("The loss must be finite.")
    assert_saved(tmp_path, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_training_continues_during_a_write(tmp_path, writing, monkeypatch):
    def write_event(name, value, step):
        writing.may_write.set()

    # The checkpoint of step 0 is written only after the events of step 10.
    monkeypatch.setattr(tf.summary, "scalar", write_event)
    pretraining_runs.write(tmp_path)
    steps = {"num_train_steps": 12, "save_checkpoints_steps": 11}
    output = pretraining_runs.run(tmp_path, do_train=True, **steps)
    for step in (0, 11, 12):
        assert weights(output, step)["global_step"] == step


@pytest.mark.slow
def test_run_ends_with_the_error_of_its_checkpoint(tmp_path, writing):
    writing.may_write.set()
    writing.error = InputError("No space left on device")
    pretraining_runs.write(tmp_path)
    with pytest.raises(InputError, match="No space left"):
        pretraining_runs.run(tmp_path, do_train=True, num_train_steps=1000)
    events = pretraining_runs.event_values(tmp_path / "out")
    assert (1000, "loss") not in events
    assert not list(tmp_path.glob("out/model.ckpt*"))
    assert not (tmp_path / "out" / "run.lock").exists()
