"""Devices and hosts: strategies, TPUs, and each replica's share of a batch."""

import atexit
import contextlib
import dataclasses
import functools
import socket
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.errors import InputError, first_line
from official_bert.inputs import datasets
from official_bert.io import files
from official_bert.options import tf_config
from official_bert.options.training import DeviceOptions, TrainingOptions
from official_bert.training import interruption

_TPU_TIMEOUT = 10  # Seconds.

# TensorFlow raises these when another host dies in a collective operation.
_HOST_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


def choose_strategy(options: TrainingOptions) -> tf.distribute.Strategy:
    """Returns the strategy for `--distribution_strategy` and `--use_tpu`.

    Call it before anything else runs TensorFlow: hosts and TPUs must be set up
    before the first operation. Raises `InputError` if there is no TPU, or if a
    batch size that the run uses does not divide evenly among the replicas.
    """
    if options.resolved_strategy == "tpu":
        strategy = _connect_to_tpu(
            options.tpu_name or options.master,
            options.tpu_zone,
            options.gcp_project,
            options.num_tpu_cores,
        )
    else:
        strategy = get_strategy(options.resolved_strategy)
    splits = options.used_splits
    for flag, is_used in (
        ("train_batch_size", options.do_train),
        ("eval_batch_size", "dev" in splits or options.mine_negatives),
        ("predict_batch_size", "test" in splits),
    ):
        if is_used:
            _require_divisible(options, strategy, flag)
    return strategy


def get_strategy(name: str) -> tf.distribute.Strategy:
    """Returns the strategy for `--distribution_strategy`, except `tpu`.

    Without a GPU, `mirrored` uses all logical CPUs. `none` is the strategy in
    whose scope `finetune` is called, if any.
    """
    return _create_strategy(name) or tf.distribute.get_strategy()


# Cached, because a second MirroredStrategy in one process numbers its
# reductions like the first one, and TensorFlow would confuse them.
@functools.cache
def _create_strategy(name: str) -> tf.distribute.Strategy | None:
    list_devices = tf.config.list_logical_devices
    if name == "none":
        num_gpus = len(list_devices("GPU"))
        device = "the GPU" if num_gpus else "the CPU"
        if num_gpus > 1:
            device = (
                f"one of {num_gpus} GPUs. --distribution_strategy=mirrored "
                "uses all"
            )
        logging.info(f"Running on {device}")
        return None
    if name == "multi_worker_mirrored":
        hosts = ", ".join(tf_config.hosts())
        logging.info(f"Waiting for all hosts: {hosts}. Ctrl-C aborts.")
        with interruption.waiting_for_hosts():
            return tf.distribute.MultiWorkerMirroredStrategy()
    devices = list_devices("GPU") or list_devices("CPU")
    names = ", ".join(device.name for device in devices)
    logging.info(f"--distribution_strategy=mirrored: {names}")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


@functools.cache
def _connect_to_tpu(
    name: str | None, zone: str | None, project: str | None, num_cores: int
) -> tf.distribute.TPUStrategy:
    """Returns the strategy of a TPU, after clearing the TPU's memory."""
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=name or "local", zone=zone, project=project
        )
        if name and name != "local":
            # TensorFlow itself would retry for hours.
            for host in resolver.cluster_spec().job_tasks("worker"):
                logging.info(f"Connecting to {host}")
                address, _, port = host.rpartition(":")
                connection = (address, int(port))
                socket.create_connection(connection, _TPU_TIMEOUT).close()
            tf.config.experimental_connect_to_cluster(resolver)
        topology = tf.tpu.experimental.initialize_tpu_system(resolver)
    # The resolver raises many kinds of errors, including those of its HTTP
    # client.
    except Exception as error:
        where = f"named {name!r}" if name else "on this machine"
        reason = first_line(error)[:200].removesuffix(".")
        advice = (
            "On a machine with a TPU, install requirements-tpu.txt; for the "
            "TPU of another machine, set --tpu_name and, if needed, --tpu_zone "
            "and --gcp_project."
        )
        if name:
            advice = "Check --tpu_name, --tpu_zone and --gcp_project."
        raise InputError(
            f"--use_tpu: no TPU {where}. {type(error).__name__}: {reason}. "
            f"Remove --use_tpu to run without a TPU. {advice}"
        ) from error
    available = topology.num_tasks * topology.num_tpus_per_task
    num_used = min(num_cores, available)
    logging.info(f"Using {num_used} of {available} TPU cores")
    if num_used == available:
        return tf.distribute.TPUStrategy(resolver)
    assignment = tf.tpu.experimental.DeviceAssignment.build(
        topology, num_replicas=num_used
    )
    return tf.distribute.TPUStrategy(
        resolver, experimental_device_assignment=assignment
    )


def writable_directory(options: TrainingOptions) -> str:
    """Returns `output_dir` on the chief, otherwise a temporary directory."""
    if options.is_chief:
        return options.output_dir
    directory = tempfile.mkdtemp(prefix="official_bert_worker_")
    atexit.register(files.remove_directory, directory)
    return directory


def require_equal_start(
    strategy: tf.distribute.Strategy,
    options: TrainingOptions,
    seed: int,
    state: Mapping[str, Any],
) -> None:
    """Raises `InputError` unless all hosts start from the same state.

    Flags that are numbers or booleans must be equal, too. Paths may differ.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return
    checksum = 0
    for name in sorted(state):
        checksum = zlib.crc32(state[name].numpy().tobytes(), checksum)
    flags = dataclasses.asdict(options).items()
    numeric = [flag for flag in flags if isinstance(flag[1], int | float)]
    numbers = {
        "seed": seed,
        "step": int(state["global_step"].numpy()),
        "weights (checksum)": checksum,
        "numeric flags (checksum)": zlib.crc32(repr(numeric).encode()),
    }
    gathered = _gather(strategy, [*numbers.values()])
    for name, values in zip(numbers, gathered.T, strict=True):
        if len(set(values)) > 1:
            raise InputError(
                f"All hosts must start with the same {name}. Received: "
                f"{values.tolist()}, one value per device. Give all hosts the "
                "same flags. --output_dir must be a directory that all hosts "
                "share, and --init_checkpoint must be the same file everywhere."
            )


@contextlib.contextmanager
def reporting_lost_hosts(options: DeviceOptions) -> Iterator[None]:
    """Raises `InputError` about a minute after another host was lost."""
    try:
        yield
    except _HOST_LOST as error:
        if options.resolved_strategy != "multi_worker_mirrored":
            raise
        raise InputError(
            f"Another host of the run has stopped. {first_line(error)}\n"
            "The checkpoints in --output_dir are intact. Start all hosts again "
            "to resume from the newest one."
        ) from error


def wait_for_all_hosts(strategy: tf.distribute.Strategy) -> None:
    """Returns when all hosts have called it."""
    _gather(strategy, [0])


def stop_requested(strategy: tf.distribute.Strategy, signal_name: str) -> str:
    """Returns `signal_name`, or "another host" if one received a signal, or "".

    All hosts call this with the signal that they received, and stop together.
    """
    is_any = _gather(strategy, [int(bool(signal_name))]).any()
    return signal_name or ("another host" if is_any else "")


def _gather(
    strategy: tf.distribute.Strategy, numbers: Sequence[int]
) -> np.ndarray:
    """Returns the numbers of all hosts, int64 [replicas, numbers]."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return np.array([numbers])
    own = tf.constant([numbers], tf.int64)
    per_replica = strategy.run(lambda: tf.identity(own))
    return strategy.gather(per_replica, axis=0).numpy()


def _require_divisible(
    options: TrainingOptions, strategy: tf.distribute.Strategy, flag: str
) -> None:
    batch_size = getattr(options, flag)
    divisor = strategy.num_replicas_in_sync
    reason = "the number of devices"
    num_parts = options.gradient_accumulation_steps
    if flag == "train_batch_size" and num_parts > 1:
        factor = f"--gradient_accumulation_steps={num_parts}"
        reason += f" ({divisor}) times {factor}"
        divisor *= num_parts
    if batch_size % divisor:
        raise InputError(
            f"--{flag}={batch_size} must be a multiple of {divisor}, {reason}."
        )


def shard_batches(
    batches: tf.data.Dataset, strategy: tf.distribute.Strategy
) -> Any:
    """Divides each global batch among the replicas, in order.

    Every host reads everything and keeps its share, because the batches of
    TensorFlow's own sharding depend on the number of hosts. The batch size must
    be static.
    """
    if strategy.num_replicas_in_sync == 1:
        return batches

    def shard(context: tf.distribute.InputContext) -> tf.data.Dataset:
        def shares_of_host(value: Any) -> Any:
            shares = tf.stack(tf.split(value, strategy.num_replicas_in_sync))
            by_host = tf.split(shares, context.num_input_pipelines)
            return by_host[context.input_pipeline_id]

        @datasets.without_autograph
        def shares(batch: Any) -> Any:
            return tf.nest.map_structure(shares_of_host, batch)

        return batches.map(shares).unbatch().prefetch(tf.data.AUTOTUNE)

    return strategy.distribute_datasets_from_function(shard)


def first_replica(strategy: tf.distribute.Strategy, value: Any) -> Any:
    """Returns the first replica's value of each leaf of a structure."""
    return tf.nest.map_structure(
        lambda leaf: strategy.experimental_local_results(leaf)[0], value
    )
