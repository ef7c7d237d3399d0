"""A TF1 checkpoint and the files beside it, as released or trained."""

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping

import numpy as np

from official_bert import files, json_files, task_file
from official_bert.checkpoints import loading, run_directory, tf1, weights
from official_bert.checkpoints.conversion import (
    bert_tokenizer_files,
    huggingface_config,
    model_garden,
)
from official_bert.checkpoints.conversion.model import (
    Description,
    Model,
    Place,
    match,
)
from official_bert.checkpoints.weights import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.convert_checkpoint import (
    ConvertCheckpoint,
    refuse_same_format,
)

CHECKPOINT = "bert_model.ckpt"
_CONFIG = "bert_config.json"
_VOCAB = "vocab.txt"


class Checkpoint:
    """The arrays of a TF1 checkpoint."""

    def __init__(self, prefix: str) -> None:
        self.where = prefix
        self._reader = tf1.open_reader(prefix)
        stored = self._reader.get_variable_to_shape_map()
        self.shapes: dict[str, Shape] = {
            name: tuple(stored[name]) for name in sorted(stored)
        }

    def read(self, name: str) -> np.ndarray:
        """Returns one array."""
        return tf1.read_array(self._reader, self.where, name)


def get_place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns the place of a weight in a TF1 checkpoint: its own name."""
    del config
    return Place(name, shape)


def find_checkpoint(path: str) -> str:
    """Returns a checkpoint prefix; of a run directory the best or newest.

    Raises:
        InputError: There is no checkpoint.
    """
    for prefix in (path, os.path.join(path, CHECKPOINT)):
        if files.exists(prefix + tf1.INDEX):
            return prefix

    def verify(prefix: str) -> str:
        tf1.verify(prefix)
        return prefix

    directory = run_directory.require_checkpoint(path)
    found = run_directory.first_undamaged(directory, verify)
    assert found is not None
    return found


def _is_model_garden(prefix: str) -> bool:
    """Whether a checkpoint has TF2's object graph."""
    return model_garden.GRAPH in Checkpoint(prefix).shapes


def check_format(prefix: str, options: ConvertCheckpoint) -> None:
    """Raises `InputError` unless a checkpoint has the format of the flags."""
    is_garden = _is_model_garden(prefix)
    given = options.input_format
    if given != "auto" and is_garden != (given == "model_garden"):
        raise InputError(
            f"--input_format={given}, but {prefix} is a checkpoint "
            f"{'with' if is_garden else 'without'} TF2's object graph."
        )
    if options.to == "tf1" and not is_garden:
        refuse_same_format("tf1")


def open_model(
    prefix: str,
    config_file: str | None = None,
    head: str | None = None,
    skip: str | None = None,
) -> Model:
    """Opens a checkpoint of TF1 or Model Garden and the files beside it.

    Args:
        prefix: The checkpoint prefix.
        config_file: The `bert_config.json`; None: the one beside it.
        head: The type of its classifier, if it has no task.json.
        skip: Regular expression of arrays to leave out.

    Raises:
        InputError: It is damaged, not a BERT model, or has no config.
    """
    config_file = config_file or files.beside_checkpoint(prefix, _CONFIG)
    if config_file is None:
        raise InputError(
            f"{prefix}: there is no {_CONFIG} beside the checkpoint. Give "
            "--bert_config_file."
        )
    config = BertConfig.from_json_file(config_file)
    config.require_same_direction(prefix)
    description = _read_description(prefix, config)
    if _is_model_garden(prefix):
        variables = model_garden.Variables(prefix, config, skip)
        model = match(variables, description, model_garden.get_place, head=head)
        skipped = tuple(variables.skipped)
        return dataclasses.replace(model, skipped=skipped)
    return match(
        Checkpoint(prefix),
        description,
        get_place,
        head=head,
        skip=skip,
        ignored=loading.OPTIMIZER_STATE,
    )


def _read_description(prefix: str, config: BertConfig) -> Description:
    vocab_file = files.beside_checkpoint(prefix, _VOCAB)
    path = files.beside_checkpoint(prefix, task_file.NAME)
    task = task_file.read(os.path.dirname(path)) if path else {}
    labels, problem_type, head = huggingface_config.labels_of_task(task)
    casing = None
    path = files.beside_checkpoint(prefix, bert_tokenizer_files.CONFIG)
    if path:
        casing = bert_tokenizer_files.read_casing(os.path.dirname(path))
    return Description(
        config=config,
        vocab=files.read_text(vocab_file) if vocab_file else None,
        do_lower_case=task.get("do_lower_case", casing),
        task=task or None,
        labels=labels,
        problem_type=problem_type,
        head=head,
    )


def write(model: Model, directory: str) -> None:
    """Writes a checkpoint and the files beside it."""
    description = model.description
    _write_arrays(directory, _LazyArrays(list(model.shapes), model))
    _write_text(directory, _CONFIG, description.config.to_json_string())
    if description.vocab is not None:
        # With the casing, which no other file of a pre-trained model has.
        bert_tokenizer_files.write(description, directory)
    if description.task is not None:
        json_files.write(task_file.path_in(directory), description.task)


def strip_optimizer(prefix: str, directory: str, skip: str | None) -> list[str]:
    """Copies a checkpoint without the state that only training needs.

    Args:
        prefix: The checkpoint of a model with any heads.
        directory: Where to write; the files beside the checkpoint are copied.
        skip: Regular expression of more arrays to leave out.

    Returns:
        The names left out.
    """
    stored = Checkpoint(prefix)
    if _is_model_garden(prefix):
        raise InputError(
            f"{prefix}: --strip_optimizer needs a TF1 checkpoint. This one has "
            "TF2's object graph; convert it without the flag."
        )
    left_out = [
        name
        for name in stored.shapes
        if re.search(loading.OPTIMIZER_STATE, name)
        or (skip and re.search(skip, name))
    ]
    kept = [name for name in stored.shapes if name not in left_out]
    if not kept:
        raise InputError(f"--skip={skip} leaves out everything in {prefix}.")
    _write_arrays(directory, _LazyArrays(kept, stored))
    names = [_CONFIG, _VOCAB, bert_tokenizer_files.CONFIG]
    if any(map(weights.is_finetuned, kept)):
        names.append(task_file.NAME)
    for name in names:
        if path := files.beside_checkpoint(prefix, name):
            _write_text(directory, name, files.read_text(path))
    return left_out


class _LazyArrays(Mapping[str, np.ndarray]):
    """Arrays that are read when they are accessed, and not kept."""

    def __init__(self, names: list[str], source: Model | Checkpoint) -> None:
        self._names, self._source = names, source

    def __getitem__(self, name: str) -> np.ndarray:
        return self._source.read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _write_arrays(directory: str, arrays: Mapping[str, np.ndarray]) -> None:
    tf1.write(os.path.join(directory, CHECKPOINT), arrays)
    # With this, commands accept the directory as a run directory.
    text = f'model_checkpoint_path: "{CHECKPOINT}"\n'
    _write_text(directory, "checkpoint", text)


def _write_text(directory: str, name: str, text: str) -> None:
    files.write_text(os.path.join(directory, name), text)
