import contextlib
import pathlib
import socket
import types

import numpy as np
import pytest
import tensorflow as tf
from support import pretraining_runs

from official_bert.errors import InputError
from official_bert.options import RunClassifier, RunPretraining
from official_bert.training import distribution


def test_replicas_get_their_shares_in_order():
    strategy = distribution.get_strategy("mirrored")
    batches = tf.data.Dataset.range(12).batch(4, drop_remainder=True)
    found = [
        [s.numpy().tolist() for s in strategy.experimental_local_results(batch)]
        for batch in distribution.shard_batches(batches, strategy)
    ]
    assert found == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]


def test_strategy_of_the_caller_is_used_in_its_scope_only():
    own = tf.distribute.OneDeviceStrategy("CPU:0")
    for _ in range(2):
        assert distribution.get_strategy("none") is not own
        with own.scope():
            assert distribution.get_strategy("none") is own


@pytest.mark.parametrize(
    ("changes", "step", "message"),
    [
        ({"output_dir": "elsewhere"}, 0, None),
        ({"learning_rate": 0.02}, 0, r"the same numeric flags \(checksum\)\. "),
        ({}, 20, r"the same step\. Received: \[0, 20\], one value per device"),
    ],
)
def test_hosts_that_start_differently_are_an_error(
    tmp_path, monkeypatch, changes, step, message
):
    """`test_multi_worker.py` starts real hosts."""
    gathered = []

    def gather(strategy, numbers):
        gathered.append(numbers)
        return np.array(gathered)

    monkeypatch.setattr(distribution, "_gather", gather)
    strategy = object.__new__(tf.distribute.MultiWorkerMirroredStrategy)
    options = RunPretraining(**pretraining_runs.flags(tmp_path))

    def start(options, step):
        state = {"global_step": tf.Variable(step, dtype=tf.int64)}
        distribution.require_equal_start(strategy, options, 1, state)

    start(options, 0)
    is_error = pytest.raises(InputError, match=message) if message else None
    with is_error or contextlib.nullcontext():
        start(options.replace(**changes), step)


TRAIN_4 = {"do_train": True, "train_batch_size": 4}
PARTS_OF_3 = {"do_train": True, "train_batch_size": 6}
PARTS_OF_3["gradient_accumulation_steps"] = 2


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"do_train": True}, "--train_batch_size=3 must be a multiple of 2, "),
        ({"do_eval": True}, "--eval_batch_size=3 "),
        ({"do_predict": True}, "--predict_batch_size=3 "),
        ({"mine_negatives": 2}, "--eval_batch_size=3 "),
        ({**TRAIN_4, "mine_negatives": 2}, "--eval_batch_size=3 "),
        (PARTS_OF_3, r"_size=6 must be a multiple of 4, .* \(2\) times "),
    ],
)
def test_batches_in_use_must_divide_evenly_among_devices(flags, message):
    names = "train_batch_size", "eval_batch_size", "predict_batch_size"
    flags = {**dict.fromkeys(names, 3), "train_file": "a.csv", **flags}
    options = RunClassifier(distribution_strategy="mirrored", **flags)
    with pytest.raises(InputError, match=message):
        distribution.choose_strategy(options)


def tpu_options(folder, **flags):
    folder = pretraining_runs.write(folder)
    flags = pretraining_runs.flags(folder, use_tpu=True, do_train=True, **flags)
    return RunPretraining(**flags)


@pytest.mark.slow
def test_missing_tpu_is_an_error(tmp_path):
    with pytest.raises(InputError, match="--use_tpu: no TPU on this machine"):
        distribution.choose_strategy(tpu_options(tmp_path))


def test_tpu_that_does_not_answer_is_an_error(tmp_path):
    with socket.create_server(("localhost", 0)) as server:
        address = f"grpc://localhost:{server.getsockname()[1]}"
    options = tpu_options(tmp_path, tpu_name=address)
    with pytest.raises(InputError, match=f"TPU named '{address}'.* refused"):
        distribution.choose_strategy(options)


def test_temporary_directory_of_a_worker_is_removed_at_exit(monkeypatch):
    at_exit = []
    monkeypatch.setattr("atexit.register", lambda *call: at_exit.append(call))
    worker = types.SimpleNamespace(is_chief=False)
    directory = pathlib.Path(distribution.writable_directory(worker))
    (directory / "train.tf_record").touch()
    [(function, *arguments)] = at_exit
    function(*arguments)
    assert not directory.exists()
