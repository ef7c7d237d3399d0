"""The folder of a TF1 checkpoint, as models were released or trained."""

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping

import numpy as np

from official_bert import files, json_files, task_file
from official_bert.checkpoints import loading, run_directory, tf1
from official_bert.checkpoints.conversion import (
    huggingface_tokenizer,
    model_garden,
)
from official_bert.checkpoints.conversion.huggingface_files import (
    labels_of_task,
)
from official_bert.checkpoints.conversion.model import (
    Described,
    Model,
    Place,
    match,
)
from official_bert.checkpoints.names import Shape, is_of_task
from official_bert.config import BertConfig
from official_bert.errors import InputError

CHECKPOINT = "bert_model.ckpt"
_CONFIG = "bert_config.json"
_VOCAB = "vocab.txt"


class Stored:
    """The arrays of a TF1 checkpoint.

    Args:
        prefix: Its path without `.index`.
    """

    def __init__(self, prefix: str) -> None:
        self.where = prefix
        self._reader = tf1.open_reader(prefix)
        stored = self._reader.get_variable_to_shape_map()
        self.shapes: dict[str, Shape] = {
            name: tuple(stored[name]) for name in sorted(stored)
        }

    def read(self, name: str) -> np.ndarray:
        """Returns one of them."""
        return tf1.read_array(self._reader, self.where, name)


def place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns where a checkpoint has a weight of 2018: under its name."""
    del config
    return Place(name, shape)


def find(path: str) -> str:
    """Returns a checkpoint's prefix: of a run's folder the best or newest.

    Raises:
        InputError: There is none.
    """
    released = os.path.join(path, CHECKPOINT)
    for prefix in (path, released):
        if files.exists(prefix + ".index"):
            return prefix

    def verify(prefix: str) -> str:
        tf1.verify(prefix)
        return prefix

    directory = run_directory.require_checkpoint(path)
    found = run_directory.first_undamaged(directory, verify)
    assert found is not None
    return found


def is_model_garden(prefix: str) -> bool:
    """Whether a checkpoint has TF2's object graph."""
    return model_garden.GRAPH in Stored(prefix).shapes


def read(
    prefix: str,
    config_file: str | None = None,
    head: str | None = None,
    skip: str | None = None,
) -> Model:
    """Opens a checkpoint, of TF1 or Model Garden, and reads what is beside it.

    Args:
        prefix: Its path without `.index`.
        config_file: The model's `bert_config.json`, if not that beside it.
        head: What its classifier is for, if it has no task.json.
        skip: Regular expression of names to leave out.

    Raises:
        InputError: It is damaged, no BERT's, or without `bert_config.json`.
    """
    config_file = config_file or files.beside_checkpoint(prefix, _CONFIG)
    if config_file is None:
        raise InputError(
            f"{prefix}: the model's {_CONFIG} must be beside it. Received: "
            "none. Give --bert_config_file."
        )
    config = BertConfig.from_json_file(config_file)
    config.require_same_direction(prefix)
    described = _described(prefix, config)
    if is_model_garden(prefix):
        variables = model_garden.Variables(prefix, config, skip)
        model = match(variables, described, model_garden.place, head=head)
        skipped = tuple(variables.skipped)
        return dataclasses.replace(model, skipped=skipped)
    return match(
        Stored(prefix),
        described,
        place,
        head=head,
        skip=skip,
        ignored=loading.OPTIMIZER_STATE,
    )


def _described(prefix: str, config: BertConfig) -> Described:
    vocab_file = files.beside_checkpoint(prefix, _VOCAB)
    path = files.beside_checkpoint(prefix, task_file.NAME)
    task = task_file.read(os.path.dirname(path)) if path else {}
    labels, problem_type, head = labels_of_task(task)
    casing = None
    tokenizer_file = files.beside_checkpoint(
        prefix, huggingface_tokenizer.CONFIG
    )
    if tokenizer_file:
        folder = os.path.dirname(tokenizer_file)
        casing = huggingface_tokenizer.read_casing(folder)
    return Described(
        config=config,
        vocab=files.read_text(vocab_file) if vocab_file else None,
        do_lower_case=task.get("do_lower_case", casing),
        task=task or None,
        labels=labels,
        problem_type=problem_type,
        head=head,
    )


def write(model: Model, folder: str) -> None:
    """Writes a checkpoint and what belongs beside it."""
    described = model.described
    _write_arrays(folder, _Arrays(list(model.shapes), model))
    _write_text(folder, _CONFIG, described.config.to_json_string())
    if described.vocab is not None:
        # With the casing, which nothing else says of a pre-trained model.
        huggingface_tokenizer.write(described, folder)
    if described.task is not None:
        json_files.write(task_file.path_in(folder), described.task)


def strip(prefix: str, folder: str, skip: str | None) -> list[str]:
    """Copies a checkpoint without what only training needs.

    Args:
        prefix: Of any model, with or without other heads.
        folder: Where to; files beside the checkpoint come along.
        skip: Regular expression of more names to leave out.

    Returns:
        The names left out.
    """
    stored = Stored(prefix)
    if is_model_garden(prefix):
        raise InputError(
            f"{prefix}: --strip_optimizer needs a TF1 checkpoint. Received: "
            "one of TF2, which is converted without that flag."
        )
    out = [
        name
        for name in stored.shapes
        if re.search(loading.OPTIMIZER_STATE, name)
        or (skip and re.search(skip, name))
    ]
    kept = [name for name in stored.shapes if name not in out]
    if not kept:
        raise InputError(
            f"{prefix}: something must be left. Received: --skip={skip!r}, "
            "which leaves all out."
        )
    _write_arrays(folder, _Arrays(kept, stored))
    kept_files = [_CONFIG, _VOCAB, huggingface_tokenizer.CONFIG]
    if any(map(is_of_task, kept)):
        kept_files.append(task_file.NAME)
    for name in kept_files:
        path = files.beside_checkpoint(prefix, name)
        _write_text(folder, name, files.read_text(path) if path else None)
    return out


class _Arrays(Mapping[str, np.ndarray]):
    """Arrays that are read when they are wanted, and not kept."""

    def __init__(self, names: list[str], source: Model | Stored) -> None:
        self._names, self._source = names, source

    def __getitem__(self, name: str) -> np.ndarray:
        return self._source.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _write_arrays(folder: str, arrays: Mapping[str, np.ndarray]) -> None:
    tf1.write(os.path.join(folder, CHECKPOINT), arrays)
    # Commands that are given the folder find it by this.
    text = f'model_checkpoint_path: "{CHECKPOINT}"\n'
    _write_text(folder, "checkpoint", text)


def _write_text(folder: str, name: str, text: str | None) -> None:
    if text is not None:
        files.write_text(os.path.join(folder, name), text)
