"""A model from one format to another, read back and compared."""

import dataclasses
import os
import re

import numpy as np
from absl import logging

from official_bert import files
from official_bert.checkpoints.conversion import (
    huggingface,
    huggingface_files,
    keras_hub,
    keras_hub_names,
    tf1_folder,
)
from official_bert.checkpoints.conversion.model import Described, Model, match
from official_bert.checkpoints.conversion.report import (
    HEADER,
    compare,
    report,
    row,
)
from official_bert.errors import InputError
from official_bert.options.convert_checkpoint import (
    ConvertCheckpoint,
    refuse_same_format,
)
from official_bert.tokenization import validate_case_matches_checkpoint


def read(options: ConvertCheckpoint) -> Model:
    """Opens what is to be converted; weights are read when they are wanted.

    Raises:
        InputError: It is damaged, or no BERT as of 2018.
    """
    found, head, skip = (
        options.resolved_input_format,
        options.head,
        options.skip,
    )
    if found == "huggingface":
        model = _read_huggingface(options.input, head, skip)
    elif found == "keras_hub":
        model = _read_keras_hub(options.input, skip)
    else:
        prefix = tf1_folder.find(options.input)
        _check_checkpoint(prefix, options)
        model = tf1_folder.read(prefix, options.bert_config_file, head, skip)
    described = _completed(model.described, options)
    if not model.head.is_of_task:
        # Its own was left out, and it answers nothing any more.
        described = dataclasses.replace(described, task=None)
    return dataclasses.replace(model, described=described)


def _read_huggingface(
    folder: str, head: str | None = None, skip: str | None = None
) -> Model:
    return match(
        huggingface.SafeTensors(folder),
        huggingface_files.read(folder),
        huggingface.place,
        head=head,
        skip=skip,
        ignored=huggingface.IGNORED,
    )


def _read_keras_hub(folder: str, skip: str | None = None) -> Model:
    arrays, described = keras_hub.read(folder)
    return match(arrays, described, keras_hub_names.place, skip=skip)


def _check_checkpoint(prefix: str, options: ConvertCheckpoint) -> None:
    """Checks what only a look into a checkpoint can tell."""
    is_garden = tf1_folder.is_model_garden(prefix)
    asked = options.input_format
    if asked != "auto" and is_garden != (asked == "model_garden"):
        raise InputError(
            f"{prefix}: must be as --input_format says. Received: {asked}, and "
            f"a checkpoint {'with' if is_garden else 'without'} TF2's object "
            "graph."
        )
    if options.to == "tf1" and not is_garden:
        refuse_same_format("tf1")


def _completed(described: Described, options: ConvertCheckpoint) -> Described:
    """Adds what the flags say, and checks the vocabulary."""
    vocab = described.vocab
    if options.vocab_file:
        vocab = files.read_text(options.vocab_file)
    if vocab is None:
        logging.warning(
            "%s comes without a vocabulary, and so will what is made of it. "
            "Give --vocab_file.",
            options.input,
        )
        return _cased(described, options.do_lower_case)
    lines = vocab.removesuffix("\n").split("\n")
    described.config.require_vocabulary(
        {line.strip(): index for index, line in enumerate(lines)},
        options.vocab_file or options.input,
    )
    lower = options.do_lower_case
    if lower is None:
        lower = described.do_lower_case
    else:
        validate_case_matches_checkpoint(lower, options.input)
    if lower is None:
        lower = _looks_lower_case(vocab)
        logging.info(
            "The vocabulary looks %s.", "uncased" if lower else "cased"
        )
    return _cased(dataclasses.replace(described, vocab=vocab), lower)


def _cased(described: Described, lower: bool | None) -> Described:
    """Returns a description with its casing, if that is known."""
    if lower is None:
        return described
    task = described.task and {**described.task, "do_lower_case": lower}
    return dataclasses.replace(described, do_lower_case=lower, task=task)


def _looks_lower_case(vocab: str) -> bool:
    """Whether next to no piece has a capital; special tokens do."""
    pieces = vocab.split()
    capitals = [p for p in pieces if re.search("[A-Z]", p) and p[0] != "["]
    return len(capitals) < len(pieces) / 100


def convert(model: Model, options: ConvertCheckpoint) -> str:
    """Writes a model, reads it back and compares.

    Returns:
        What to tell the user.

    Raises:
        InputError: The format cannot hold the model.
        RuntimeError: What was read back is not what was written.
    """
    with files.replacing_directory(options.output) as folder:
        write(model, folder, options.to)
        difference = compare(model, _read_back(folder, model, options.to))
        if difference.largest != 0.0:
            raise RuntimeError(
                "What was written must come back as it was. Received: a "
                f"difference of {difference.largest}. Nothing was kept."
            )
    return report(model, difference, options)


def write(model: Model, folder: str, to: str) -> None:
    """Writes a model into a folder, in one of the formats."""
    if to == "huggingface":
        huggingface_files.write(model, folder)
        huggingface.write(model, folder)
    elif to == "keras_hub":
        keras_hub.write(model, folder)
    else:
        tf1_folder.write(model, folder)
    for name in os.listdir(folder):
        files.sync(os.path.join(folder, name))


def _read_back(folder: str, model: Model, to: str) -> Model:
    """Opens what `write` wrote."""
    if to == "huggingface":
        return _read_huggingface(folder)
    if to == "keras_hub":
        return _read_keras_hub(folder)
    # Without a task.json, only the user has said what a classifier is for.
    return tf1_folder.read(tf1_folder.find(folder), head=model.head.name)


def strip(options: ConvertCheckpoint) -> str:
    """Copies a TF1 checkpoint without what only training needs.

    Returns:
        What to tell the user.

    Raises:
        InputError: It is damaged, or not of TF1.
        RuntimeError: What was read back is not what was written.
    """
    prefix = tf1_folder.find(options.input)
    with files.replacing_directory(options.output) as folder:
        out = tf1_folder.strip(prefix, folder, options.skip)
        before = tf1_folder.Stored(prefix)
        after = tf1_folder.Stored(os.path.join(folder, tf1_folder.CHECKPOINT))
        for name in after.shapes:
            old, new = before.read(name), after.read(name)
            has_nan = old.dtype.kind == "f"
            if not np.array_equal(old, new, equal_nan=has_nan):
                raise RuntimeError(f"{name} must come back as it was.")
    return "\n".join(
        [
            HEADER,
            row("input", before.shapes, prefix),
            row("output", after.shapes, options.output),
            f"Left out: {len(out)} arrays. Read back: {len(after.shapes)} "
            "arrays, largest difference 0.",
        ]
    )
