"""Which devices a run uses, and who gets which part of a batch."""

import atexit
import contextlib
import functools
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert import files
from official_bert.errors import InputError, short_reason
from official_bert.options import tf_config
from official_bert.options.training import DeviceOptions
from official_bert.training import interruption, tpu


def choose(options: DeviceOptions) -> tf.distribute.Strategy:
    """Returns the strategy that the options ask for.

    Call it before anything that runs TensorFlow: hosts and TPUs are set up
    before its first operation.

    Args:
        options: Of the run.

    Raises:
        InputError: There is no TPU, or it does not answer.
    """
    if options.resolved_strategy == "tpu":
        return tpu.connect(
            options.tpu_name or options.master,
            options.tpu_zone,
            options.gcp_project,
            options.num_tpu_cores,
        )
    return get_strategy(options.resolved_strategy)


# Made once: a second MirroredStrategy in one process numbers its reductions as
# the first did, and TensorFlow takes them for the same ones.
@functools.cache
def get_strategy(name: str) -> tf.distribute.Strategy:
    """Returns the strategy that `--distribution_strategy` names.

    Args:
        name: `none` for one device; `mirrored` for all GPUs of this machine, or
            all its logical CPUs where there is none; `multi_worker_mirrored`
            for those of all hosts that `TF_CONFIG` names.
    """
    if name == "none":
        return tf.distribute.get_strategy()
    if name == "multi_worker_mirrored":
        hosts = ", ".join(tf_config.hosts())
        logging.info("Waiting for all hosts: %s; Ctrl-C gives up", hosts)
        with interruption.waiting_for_hosts():
            return tf.distribute.MultiWorkerMirroredStrategy()
    devices = tf.config.list_logical_devices(
        "GPU"
    ) or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes to the output folder."""
    return not _has_workers(strategy) or tf_config.is_chief(
        "multi_worker_mirrored"
    )


def own_folder(strategy: tf.distribute.Strategy, output_dir: str) -> str:
    """Returns where this process writes: other than the chief, somewhere else.

    What it returns to others than the chief is a folder made for it, in which
    nobody looks, and that goes with the process.
    """
    if is_chief(strategy):
        return output_dir
    folder = tempfile.mkdtemp(prefix="official_bert_worker_")
    atexit.register(files.remove_directory, folder)
    return folder


def require_agreement(
    strategy: tf.distribute.Strategy, seed: int, state: Mapping[str, Any]
) -> None:
    """Waits for all hosts, and compares what they start from.

    Args:
        strategy: Whose hosts.
        seed: Of this host's run.
        state: {name: variable} of this host, `global_step` among them.

    Raises:
        InputError: They differ.
    """
    if not _has_workers(strategy):
        return
    checksum = 0
    for name in sorted(state):
        array = np.asarray(state[name].numpy())
        checksum = zlib.crc32(array.tobytes(), checksum)
    numbers = {
        "seed": seed,
        "step": int(state["global_step"].numpy()),
        "weights (their checksum)": checksum,
    }
    found = _gathered(strategy, [*numbers.values()])
    for name, values in zip(numbers, found.T, strict=True):
        if len(set(values)) > 1:
            raise InputError(
                f"All hosts must start with the same {name}. Received: "
                f"{values.tolist()}, device by device. Give all of them the "
                "same flags; --output_dir must be one folder that all of them "
                "see, and --init_checkpoint the same file."
            )


# What TensorFlow raises where another host died in the midst of a sum.
_HOST_GONE = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


@contextlib.contextmanager
def noticing_dead_hosts(options: DeviceOptions) -> Iterator[None]:
    """Says in one message that a host is gone, if that ends what is inside.

    Args:
        options: Of the run.

    Raises:
        InputError: It did, within a minute or so of TensorFlow's waiting.
    """
    try:
        yield
    except _HOST_GONE as error:
        if options.resolved_strategy != "multi_worker_mirrored":
            raise
        raise InputError(
            "All hosts of a run must stay until its end. Received: "
            f"{short_reason(error).strip()}\nThe checkpoints in --output_dir "
            "are as they were; start all hosts again to go on from the newest."
        ) from error


def wait_for_all(strategy: tf.distribute.Strategy) -> None:
    """Returns when all hosts have come here."""
    if _has_workers(strategy):
        _gathered(strategy, [0])


def asked_anywhere(strategy: tf.distribute.Strategy, asked: str) -> str:
    """Returns what was asked of this host, or else that another was asked.

    Call it on all hosts, so that they do the same.

    Args:
        strategy: Whose hosts.
        asked: What was asked of this one; nothing if nothing was.
    """
    if not _has_workers(strategy):
        return asked
    anywhere = _gathered(strategy, [int(bool(asked))]).any()
    return asked or ("another host" if anywhere else "")


def _gathered(
    strategy: tf.distribute.Strategy, numbers: Sequence[int]
) -> np.ndarray:
    """Returns int64 [replicas, numbers] of all hosts."""
    own = tf.constant([numbers], tf.int64)
    everyone = strategy.run(lambda: tf.identity(own))
    return strategy.gather(everyone, axis=0).numpy()  # type: ignore[no-any-return]


def _has_workers(strategy: tf.distribute.Strategy) -> bool:
    """Whether there are processes like this one on other hosts."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def require_divisible(
    batch_size: int,
    strategy: tf.distribute.Strategy,
    flag: str,
    num_micro_batches: int = 1,
) -> None:
    """Raises `InputError` unless a batch can be shared evenly.

    Args:
        batch_size: Of all replicas together.
        strategy: Whose replicas.
        flag: That gave the size.
        num_micro_batches: In how many parts each replica goes through its own.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % (replicas * num_micro_batches):
        times = (
            f" times --gradient_accumulation_steps={num_micro_batches}"
            if num_micro_batches > 1
            else ""
        )
        raise InputError(
            f"--{flag} must be a multiple of the number of devices{times}. "
            f"Received: {batch_size}, with {replicas} devices."
        )


def deal_out(batches: tf.data.Dataset, strategy: tf.distribute.Strategy) -> Any:
    """Gives every replica its part of every batch, by its number.

    Where there are several hosts, each reads everything and keeps its part. So
    batches are those of one device, whatever the number of hosts and devices.

    Args:
        batches: Of static size.
        strategy: Whose replicas.
    """
    if strategy.num_replicas_in_sync == 1:
        return batches

    def on_host(context: tf.distribute.InputContext) -> tf.data.Dataset:
        hosts = context.num_input_pipelines
        replicas = strategy.num_replicas_in_sync

        def part(value: Any) -> Any:
            by_replica = tf.stack(tf.split(value, replicas))
            return tf.split(by_replica, hosts)[context.input_pipeline_id]

        parts = batches.map(lambda batch: tf.nest.map_structure(part, batch))
        return parts.unbatch().prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(on_host)


def first(strategy: tf.distribute.Strategy, value: Any) -> Any:
    """Returns the first replica's part of every value of a nested structure."""
    return tf.nest.map_structure(
        lambda leaf: strategy.experimental_local_results(leaf)[0], value
    )
