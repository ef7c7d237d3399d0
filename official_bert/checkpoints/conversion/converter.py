"""Converts a model, reads it back, compares and reports."""

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from official_bert import files, progress
from official_bert.checkpoints import loading
from official_bert.checkpoints.conversion import (
    huggingface,
    keras_hub,
    tf1_directory,
)
from official_bert.checkpoints.conversion.model import Description, Model
from official_bert.checkpoints.weights import Shape
from official_bert.options.convert_checkpoint import ConvertCheckpoint
from official_bert.tokenization import validate_case_matches_checkpoint

_WRITERS = {
    "tf1": tf1_directory.write,
    "huggingface": huggingface.write,
    "keras_hub": keras_hub.write,
}


def open_model(options: ConvertCheckpoint) -> Model:
    """Opens the model to convert; its weights are read on demand.

    Raises:
        InputError: It is damaged, or not a model of the original BERT.
    """
    found, head, skip = (
        options.resolved_input_format,
        options.head,
        options.skip,
    )
    if found == "huggingface":
        model = huggingface.open_model(options.input, head, skip)
    elif found == "keras_hub":
        model = keras_hub.open_model(options.input, skip)
    else:
        prefix = tf1_directory.find_checkpoint(options.input)
        tf1_directory.check_format(prefix, options)
        model = tf1_directory.open_model(
            prefix, options.bert_config_file, head, skip
        )
    description = _completed(model.description, options)
    if not model.head.is_finetuned:
        # Its fine-tuned head was left out; it can no longer do its task.
        description = dataclasses.replace(description, task=None)
    return dataclasses.replace(model, description=description)


def _completed(
    description: Description, options: ConvertCheckpoint
) -> Description:
    """Adds the values of flags, and checks the vocabulary."""
    vocab = description.vocab
    if options.vocab_file:
        vocab = files.read_text(options.vocab_file)
    if vocab is None:
        logging.warning(
            "%s has no vocabulary, and neither will the converted model. Pass "
            "--vocab_file.",
            options.input,
        )
        return _with_casing(description, options.do_lower_case)
    lines = vocab.removesuffix("\n").split("\n")
    description.config.require_vocabulary(
        {line.strip(): index for index, line in enumerate(lines)},
        options.vocab_file or options.input,
    )
    lower = options.do_lower_case
    if lower is None:
        lower = description.do_lower_case
    else:
        validate_case_matches_checkpoint(lower, options.input)
    if lower is None:
        lower = _looks_uncased(vocab)
        logging.info(
            "The vocabulary looks %s.", "uncased" if lower else "cased"
        )
    return _with_casing(dataclasses.replace(description, vocab=vocab), lower)


def _with_casing(description: Description, lower: bool | None) -> Description:
    if lower is None:
        return description
    task = description.task and {**description.task, "do_lower_case": lower}
    return dataclasses.replace(description, do_lower_case=lower, task=task)


def _looks_uncased(vocab: str) -> bool:
    """Whether less than 1% of the tokens have capitals; [CLS] etc. do."""
    tokens = vocab.split()
    capitals = [t for t in tokens if re.search("[A-Z]", t) and t[0] != "["]
    return len(capitals) < len(tokens) / 100


def convert(model: Model, options: ConvertCheckpoint) -> str:
    """Writes a model to `--output`, reads it back and compares.

    Returns:
        A report.

    Raises:
        InputError: The format cannot hold the model.
        RuntimeError: The model read back is not the one written.
    """
    with files.replacing_directory(options.output) as directory:
        _WRITERS[options.to](model, directory)
        for name in os.listdir(directory):
            files.sync(os.path.join(directory, name))
        comparison = _compare(model, _read_back(directory, model, options.to))
        if comparison.difference != 0.0:
            raise RuntimeError(
                "The model read back must equal the one written. Received: a "
                f"difference of {comparison.difference}. Nothing was kept."
            )
    return _report(model, comparison, options)


def _read_back(directory: str, model: Model, to: str) -> Model:
    if to == "huggingface":
        return huggingface.open_model(directory)
    if to == "keras_hub":
        return keras_hub.open_model(directory)
    # Without a task.json, the type of a classifier is known from --head only.
    prefix = tf1_directory.find_checkpoint(directory)
    return tf1_directory.open_model(prefix, head=model.head.name)


class _Comparison(NamedTuple):
    """A model compared with itself after conversion.

    Attributes:
        num_arrays: Number of arrays compared.
        difference: The largest absolute difference of any two values.
        lost: What differs besides the weights.
    """

    num_arrays: int
    difference: float
    lost: list[str]


def _compare(model: Model, again: Model) -> _Comparison:
    largest = 0.0
    compared = [name for name in model.shapes if name in again.places]
    missing = [name for name in model.places if name not in again.places]
    if missing or model.head.scopes != again.head.scopes:
        largest = math.inf
    for name in progress.bar(compared, description="Comparing", unit=" arrays"):
        before, after = model.read(name), again.read(name)
        if not np.array_equal(before, after, equal_nan=True):
            gap = np.abs(before - after)
            largest = max(largest, float(np.nan_to_num(gap, nan=np.inf).max()))
    lost = list(_lost(model.description, again.description))
    return _Comparison(len(compared), largest, lost)


def _lost(before: Description, after: Description) -> Iterable[str]:
    ours, theirs = before.config.to_dict(), after.config.to_dict()
    for name in sorted({*ours, *theirs}):
        old, new = ours.get(name), theirs.get(name)
        if (old or 0) != (new or 0) and _lower(old) != _lower(new):
            yield f"{name}: {old!r} becomes {new!r}"
    if before.vocab != after.vocab:
        yield "line ends or spaces of the vocabulary"
    if after.do_lower_case not in (None, before.do_lower_case):
        yield f"do_lower_case: becomes {after.do_lower_case}"


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _report(
    model: Model, comparison: _Comparison, options: ConvertCheckpoint
) -> str:
    is_huggingface = options.to == "huggingface"
    written = {
        name: shape
        for name, shape in model.shapes.items()
        if name in model.places or not is_huggingface
    }
    used = {place.name for place in model.places.values()}
    unused = {name for name in model.arrays.shapes if name not in used}
    state = {n for n in unused if re.search(loading.OPTIMIZER_STATE, n)}
    lines = [
        *_table(model.arrays.shapes, model.arrays.where, written, options),
        f"Head: {model.head.name}. Read back: {comparison.num_arrays} arrays, "
        f"largest difference {comparison.difference:g}.",
    ]
    if state:
        lines.append(f"Left out: {len(state)} arrays of optimizer state.")
    if left_out := sorted({*unused, *model.skipped} - state):
        shown = ", ".join(left_out[:4])
        rest = f", and {len(left_out) - 4} more" if len(left_out) > 4 else ""
        lines.append(f"Left out: {shown}{rest}.")
    if model.initialized and not is_huggingface:
        lines.append(f"Newly initialized: {', '.join(model.initialized)}.")
    for lost in comparison.lost:
        lines.append(f"Not kept by {options.to}: {lost}.")
    if model.description.do_lower_case is not None:
        lines.append(f"do_lower_case: {model.description.do_lower_case}.")
    return "\n".join(lines)


def _table(
    before: Mapping[str, Shape],
    where: str,
    after: Mapping[str, Shape],
    options: ConvertCheckpoint,
) -> list[str]:
    lines = [f"{'':7}{'arrays':>7}{'MB':>9}"]
    for name, shapes, path in [
        ("input", before, where),
        ("output", after, options.output),
    ]:
        megabytes = 4e-6 * sum(map(math.prod, shapes.values()))
        lines.append(f"{name:7}{len(shapes):7,}{megabytes:9,.1f}  {path}")
    return lines


def strip_optimizer(options: ConvertCheckpoint) -> str:
    """Copies a TF1 checkpoint without the state that only training needs.

    Returns:
        A report.

    Raises:
        InputError: It is damaged, or not a TF1 checkpoint.
        RuntimeError: The copy read back is not the one written.
    """
    prefix = tf1_directory.find_checkpoint(options.input)
    with files.replacing_directory(options.output) as directory:
        left_out = tf1_directory.strip_optimizer(
            prefix, directory, options.skip
        )
        before = tf1_directory.Checkpoint(prefix)
        after = tf1_directory.Checkpoint(
            os.path.join(directory, tf1_directory.CHECKPOINT)
        )
        for name in after.shapes:
            old, new = before.read(name), after.read(name)
            has_nan = old.dtype.kind == "f"
            if not np.array_equal(old, new, equal_nan=has_nan):
                raise RuntimeError(f"{name} must be unchanged in the copy.")
    return "\n".join(
        [
            *_table(before.shapes, prefix, after.shapes, options),
            f"Left out: {len(left_out)} arrays. Read back: "
            f"{len(after.shapes)} arrays, largest difference 0.",
        ]
    )
