"""TF1 checkpoints: `PREFIX.index` and `PREFIX.data-00000-of-00001`.

The format is TensorFlow's tensor bundle as `tf.train.Saver` of TF 1 writes it:
plain names and arrays, without the object graph of Keras and TF 2. The index
holds names, shapes and checksums; only reading an array reads its data.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.errors import InputError, short_reason
from official_bert.io import files
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths

_DATA = ".data-00000-of-00001"

# Names in the checkpoint of a training run that are not weights.
OPTIMIZER_STATE = r"/(adam|lamb)_[mv]$|^global_step$|^loss_scale/"
# Matches all names except weights of the encoder: `bert/...`, and the names of
# layers without a counterpart in Hugging Face and Model Garden files.
NOT_BERT = rf"^(?!bert[/.]|.*\b_transformer_layers/)|{OPTIMIZER_STATE}"

# TensorFlow's reader raises one of these for damaged files.
_UNREADABLE = (tf.errors.OpError, ValueError, RuntimeError, IndexError)


def by_name(weights: Iterable[Any]) -> dict[str, Any]:
    """Returns {name in a checkpoint: weight}; the name is the weight's path."""
    return {weight.path: weight for weight in weights}


class DamagedCheckpointError(InputError):
    """A checkpoint that is missing, incomplete or damaged."""


def open_reader(prefix: str) -> Any:
    """Returns TensorFlow's `CheckpointReader`; reads the index only.

    Raises `DamagedCheckpointError` if there is no index, or it is damaged.
    """
    checkpoint_paths.require_supported(prefix)
    try:
        files.require(prefix + file_names.INDEX, "A checkpoint's index")
        return tf.train.load_checkpoint(prefix)
    except _UNREADABLE as error:
        raise DamagedCheckpointError(
            f"{prefix}: must be a TF1 checkpoint. {short_reason(error)}"
        ) from error


def read_array(reader: Any, prefix: str, name: str) -> np.ndarray:
    """Returns one array of a checkpoint, verified by its checksum.

    Raises `DamagedCheckpointError` if it is missing, incomplete or damaged, or
    holds strings.
    """
    array = _read(reader, prefix, name)
    if array.dtype == object:
        raise DamagedCheckpointError(
            f"{prefix}: `{name}` must contain numbers. Received: strings."
        )
    return array


def verify(prefix: str) -> None:
    """Reads all arrays of a checkpoint to check their checksums.

    Raises `DamagedCheckpointError` if it is missing, incomplete or damaged.
    """
    reader = open_reader(prefix)
    for name in reader.get_variable_to_shape_map():
        _read(reader, prefix, name)


def _read(reader: Any, prefix: str, name: str) -> np.ndarray:
    try:
        return np.asarray(reader.get_tensor(name))
    except _UNREADABLE as error:
        raise DamagedCheckpointError(
            f"{prefix}: `{name}` cannot be read; the checkpoint is incomplete "
            f"or damaged. {short_reason(error)}"
        ) from error


def write(prefix: str, arrays: Mapping[str, Any]) -> None:
    """Writes a checkpoint under a temporary name, then renames its files.

    Raises `InputError` if the disk is full or the directory is not writable.
    """
    checkpoint_paths.require_supported(prefix)
    names = sorted(arrays)
    temporary = files.temporary_name(prefix)
    try:
        tf.raw_ops.SaveV2(
            prefix=temporary,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[tf.convert_to_tensor(arrays[name]) for name in names],
        )
        for part in (_DATA, file_names.INDEX):
            files.sync(temporary + part)
        # The index comes last: data without an index is not a checkpoint.
        for part in (_DATA, file_names.INDEX):
            files.replace(temporary + part, prefix + part)
        files.sync(os.path.dirname(prefix) or ".")
    except BaseException as error:
        remove(temporary)
        if not isinstance(error, (OSError, tf.errors.OpError)):
            raise
        raise InputError(
            f"{prefix}: cannot be written: {short_reason(error)}. Earlier "
            "checkpoints are unchanged. Free disk space or fix the "
            "permissions, and run the command again to resume."
        ) from error


def remove(prefix: str) -> None:
    """Removes all files of a checkpoint, its index first."""
    directory, start = os.path.split(f"{prefix}.")
    names = [n for n in files.list_directory(directory) if n.startswith(start)]
    index = file_names.INDEX
    for name in sorted(names, key=lambda name: not name.endswith(index)):
        files.remove(os.path.join(directory, name))
