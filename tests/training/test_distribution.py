"""Shares of a batch, agreement of hosts, and errors without a TPU."""

import pathlib
import re
import socket
import types

import pytest
import tensorflow as tf
from support import pretraining_runs

from official_bert.errors import InputError
from official_bert.options import RunPretraining
from official_bert.training import distribution


def test_replicas_get_their_shares_in_order():
    strategy = distribution.get_strategy("mirrored")
    batches = tf.data.Dataset.range(12).batch(4, drop_remainder=True)
    found = [
        [s.numpy().tolist() for s in strategy.experimental_local_results(batch)]
        for batch in distribution.shard_batches(batches, strategy)
    ]
    assert found == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]


@pytest.mark.parametrize(
    ("num_gpus", "message"),
    [
        (0, "the CPU"),
        (1, "the GPU"),
        (2, "one of 2 GPUs. .*=mirrored uses all"),
    ],
)
def test_log_names_the_device(num_gpus, message, monkeypatch, caplog):
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda _: [None] * num_gpus
    )
    caplog.set_level("INFO", logger="absl")
    distribution.get_strategy.__wrapped__("none")
    assert re.fullmatch(f"Running on {message}", caplog.messages[0])


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


LOST = """Graph execution error:

Detected at node allgather/CollectiveGatherV2 (most recent call last):
  File "run_pretraining.py", line 28, in <module>

  File "official_bert/cli.py", line 318, in run

Collective ops is aborted by: Connection refused
Additional GRPC error information from remote target /job:worker/task:1
\t [[{{node allgather/CollectiveGatherV2}}]]"""


def test_message_about_a_lost_host_is_short():
    options = types.SimpleNamespace(resolved_strategy="multi_worker_mirrored")
    with (
        pytest.raises(InputError) as caught,
        distribution.reporting_lost_hosts(options),
    ):
        raise tf.errors.UnavailableError(None, None, LOST)
    assert str(caught.value).splitlines() == [
        "Another host of the run has stopped. Collective ops is aborted by: "
        "Connection refused",
        "The checkpoints in --output_dir are intact. Start all hosts again to "
        "resume from the newest one.",
    ]
