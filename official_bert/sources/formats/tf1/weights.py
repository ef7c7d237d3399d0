"""The weights of a TF1 checkpoint, by prefix or directory."""

import os
import re
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.io import files
from official_bert.runs import checkpoints, file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths, heads, task_file
from official_bert.sources.formats import Source
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.stored_model import Arrays, Description, Model, Names
from official_bert.tasks.text_types import problem_type
from official_bert.tokenization.settings import TokenizerSettings

# The scope of BERT in checkpoints of the original
# run_classifier_with_tfhub.py.
_MODULE = re.compile("^module/(?=bert/|cls/)")

# `loading.read_embedding` reads the layer of sentence embeddings.
_NAMES = Names(ignored=f"{tf1.OPTIMIZER_STATE}|^{heads.EMBEDDING_LAYER}/")


def open_arrays(path: str, config: BertConfig | None = None) -> Arrays:
    """Opens a checkpoint by its prefix, or a directory's best or newest one.

    Raises `InputError` if there is no checkpoint.
    """
    checkpoint = checkpoint_paths.find(path)
    if files.exists(checkpoint + file_names.INDEX):
        return open_prefix(checkpoint)
    arrays = checkpoints.first_undamaged(checkpoint, _open_verified)
    if arrays is None:
        raise InputError(
            f"{path} must contain a checkpoint, model.ckpt-N.index and its "
            "data, but has none. Copy it there, or train a model first."
        )
    RunDirectory(checkpoint).warn_if_unfinished()
    return arrays


def _open_verified(prefix: str) -> Arrays:
    tf1.verify(prefix)
    return open_prefix(prefix)


def open_prefix(prefix: str) -> Arrays:
    """Opens a checkpoint; raises `DamagedCheckpointError` for a bad index."""
    reader = tf1.open_reader(prefix)
    stored = reader.get_variable_to_shape_map()
    names = {_MODULE.sub("", name): name for name in sorted(stored)}
    if len(names) < len(stored):  # Some weights exist with and without it.
        names = {name: name for name in sorted(stored)}
    return Arrays(
        prefix,
        {short: tuple(stored[name]) for short, name in names.items()},
        lambda short: tf1.read_array(reader, prefix, names[short]),
        _NAMES,
    )


def describe(source: Source, config: BertConfig) -> Description:
    """Describes a model by the files beside its checkpoint.

    Raises `InputError` if the config is of a model of another direction.
    """
    config.require_same_direction(source.path)
    task = task_file.read_beside(source.path)
    folder = checkpoint_paths.directory(source.path)
    return Description(
        config=config,
        settings=TokenizerSettings(task.get("do_lower_case")),
        task=task or None,
        labels=tuple(task.get("labels", ())),
        problem_type=problem_type(task),
        max_seq_length=sentence_transformers.read_length(folder),
        head=tasks.head_kind(task),
    )


def write(model: Model, directory: str) -> None:
    """Writes a checkpoint and the files beside it."""
    arrays = model.to_format(_NAMES, model.shapes)
    write_files(directory, arrays, model.description)


def write_files(
    directory: str, arrays: Iterable[tuple[str, Any]], description: Description
) -> None:
    """Writes the files that `write` writes, from pairs of name and array."""
    write_arrays(directory, arrays)
    config_file = os.path.join(directory, file_names.CONFIG)
    files.write_text(config_file, description.config.to_json_string())
    description.write_beside(directory)


def write_arrays(directory: str, arrays: Iterable[tuple[str, Any]]) -> None:
    """Writes a checkpoint, without config and vocabulary."""
    # Converted here because `tf1.write` would copy NumPy arrays.
    tensors = {name: tf.convert_to_tensor(array) for name, array in arrays}
    tf1.write(os.path.join(directory, file_names.RELEASED_PREFIX), tensors)
    # With this file, commands accept the directory as a run directory.
    text = f'model_checkpoint_path: "{file_names.RELEASED_PREFIX}"\n'
    files.write_text(os.path.join(directory, "checkpoint"), text)
