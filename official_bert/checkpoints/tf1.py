"""TF1 checkpoints: `PREFIX.index` and `PREFIX.data-00000-of-00001`.

The format is TensorFlow's tensor bundle, as `tf.train.Saver` of TF 1 writes it:
plain names to plain arrays, without Keras' or TF 2's object graph.
"""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.errors import InputError, short_reason

_DATA = ".data-00000-of-00001"
_INDEX = ".index"

# What TensorFlow's reader raises for damaged files, depending on the damage.
_UNREADABLE = (tf.errors.OpError, ValueError, RuntimeError, IndexError)


def open_reader(prefix: str) -> Any:
    """Returns a reader with `get_tensor` and `get_variable_to_shape_map`.

    Raises:
        InputError: There is no such checkpoint, or it is damaged.
    """
    files.require_checkpoint_path(prefix)
    files.require(prefix + _INDEX, "A checkpoint's index")
    try:
        return tf.train.load_checkpoint(prefix)
    except _UNREADABLE as error:
        raise InputError(
            f"{prefix}: must be a TF1 checkpoint. {error}"
        ) from error


def read_array(reader: Any, prefix: str, name: str) -> np.ndarray:
    """Returns one array of a checkpoint.

    Raises:
        InputError: The data is shorter than the index says, or damaged.
    """
    try:
        return np.asarray(reader.get_tensor(name))
    except _UNREADABLE as error:
        raise InputError(
            f"{prefix}: `{name}` cannot be read; the checkpoint was cut short "
            f"or damaged. {error}"
        ) from error


def check(prefix: str) -> None:
    """Reads all of a checkpoint, whose arrays have checksums.

    Raises:
        InputError: It is not there, cut short or damaged.
    """
    reader = open_reader(prefix)
    for name in reader.get_variable_to_shape_map():
        read_array(reader, prefix, name)


def write(prefix: str, arrays: Mapping[str, Any]) -> None:
    """Writes a checkpoint: all of it, or nothing under that name.

    Args:
        prefix: Its path without `.index`.
        arrays: {name: array}.

    Raises:
        InputError: The disk is full, or the folder takes no files.
    """
    files.require_checkpoint_path(prefix)
    names = sorted(arrays)
    temporary = files.temporary_name(prefix)
    try:
        tf.raw_ops.SaveV2(
            prefix=temporary,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.convert_to_tensor(arrays[name]) for name in names],
        )
        for part in (_DATA, _INDEX):
            files.sync(temporary + part)
        # The index last: no reader takes data without one for a checkpoint.
        for part in (_DATA, _INDEX):
            files.replace(temporary + part, prefix + part)
        files.sync(os.path.dirname(prefix) or ".")
    except BaseException as error:
        remove(temporary)
        if not isinstance(error, (OSError, tf.errors.OpError)):
            raise
        raise InputError(
            f"{prefix}: the checkpoint must be writable. Received: "
            f"{short_reason(error)}. "
            "Earlier checkpoints are as they were. Make room, or mend the "
            "permissions, and run the command again to go on from the newest."
        ) from error


def remove(prefix: str) -> None:
    """Removes all files of a checkpoint, as far as they are there.

    Its index goes first, so that it is never half there.
    """
    folder, start = os.path.split(f"{prefix}.")
    names = [n for n in files.list_directory(folder) if n.startswith(start)]
    for name in sorted(names, key=lambda name: not name.endswith(_INDEX)):
        files.remove(os.path.join(folder, name))
