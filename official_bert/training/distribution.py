"""Which devices a run uses."""

import functools
from typing import Any

import tensorflow as tf

from official_bert.errors import InputError


# Made once: a second MirroredStrategy in one process numbers its reductions as
# the first did, and TensorFlow takes them for the same ones.
@functools.cache
def get_strategy(name: str) -> tf.distribute.Strategy:
    """Returns the strategy that `--distribution_strategy` names.

    Args:
        name: `none` for one device; `mirrored` for all GPUs of this machine, or
            all its logical CPUs where there is none.
    """
    if name == "none":
        return tf.distribute.get_strategy()
    devices = tf.config.list_logical_devices(
        "GPU"
    ) or tf.config.list_logical_devices("CPU")
    return tf.distribute.MirroredStrategy([device.name for device in devices])


def require_divisible(
    batch_size: int, strategy: tf.distribute.Strategy, flag: str
) -> None:
    """Raises `InputError` unless replicas can share a batch evenly."""
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise InputError(
            f"--{flag} must be a multiple of the number of devices. "
            f"Received: {batch_size}, with {replicas} devices."
        )


def first(strategy: tf.distribute.Strategy, value: Any) -> Any:
    """Returns the first replica's part of every value of a nested structure."""
    return tf.nest.map_structure(
        lambda leaf: strategy.experimental_local_results(leaf)[0], value
    )
