"""Converts a model, reads it back, compares and reports."""

import dataclasses
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from absl import logging

from official_bert.config import BertConfig
from official_bert.errors import InputError, listed
from official_bert.io import files, json_files, progress
from official_bert.options.convert_checkpoint import ConvertCheckpoint
from official_bert.runs import file_names
from official_bert.sources import (
    checkpoint_paths,
    formats,
    heads,
    loading,
    model_card,
    model_changes,
    pretrained,
    task_file,
    tokenizer_files,
)
from official_bert.sources.formats import FORMATS
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.formats.tf1 import weights as tf1_weights
from official_bert.sources.stored_model import Description, Model, match
from official_bert.sources.weight_names import Shape
from official_bert.tokenization import (
    validate_case_matches_checkpoint,
)

Shapes = Mapping[str, Shape]


def open_model(options: ConvertCheckpoint) -> Model:
    """Opens the model to convert; its weights are read on demand.

    Raises `InputError` if it is damaged, or not a model of the original BERT.
    """
    arrays, description = loading.read(options.source, options.bert_config_file)
    model = match(arrays, description, head=options.head, skip=options.skip)
    task = description.task
    if task:
        message = "must be omitted: task.json names the head."
        options.require_unset(["head"], message)
    if not any(map(heads.is_finetuned, model.stored)):
        task = None  # Without its head, the model cannot do its task.
    elif options.average_checkpoints or model_card.has_other_results(arrays):
        task = _without_calibration(task) if task else None
    model = _with_tokenizer(model.describe(task=task), options)
    if options.average_checkpoints:
        model = model_changes.averaged(
            model, options.input, options.average_checkpoints
        )
    model = model_changes.with_raw_targets(model)
    if options.add_tokens:
        model = model_changes.with_added_tokens(model, options.add_tokens)
    if options.repeat_positions:
        return model_changes.with_repeated_positions(
            model, options.repeat_positions
        )
    return model


def _without_calibration(task: dict[str, Any]) -> dict[str, Any]:
    """Returns the content of `task.json` without its calibration, if any."""
    if "calibration" in task:
        logging.info(
            "The calibration, if any, is left out: it was fitted to other "
            "weights"
        )
    return {name: task[name] for name in task if name != "calibration"}


def _with_tokenizer(model: Model, options: ConvertCheckpoint) -> Model:
    """Returns a model with the tokenizer of the flags; checks the vocabulary.

    If nothing says whether the model is uncased, the vocabulary shows it.
    """
    vocab, settings = model.description.vocab, model.description.settings
    if options.vocab_file:
        vocab = files.read_text(options.vocab_file)
    if vocab is None:
        logging.warning(
            f"{options.input} has no vocabulary, and neither will the "
            "converted model. Pass --vocab_file."
        )
    elif options.do_lower_case is not None:
        validate_case_matches_checkpoint(options.do_lower_case, options.input)
    elif settings.do_lower_case is None:
        guess = pretrained.guess_casing(vocab)
        name = "uncased" if guess.is_uncased else "cased"
        logging.info(f"The vocabulary looks {name}.")
        settings = dataclasses.replace(
            settings,
            do_lower_case=guess.do_lower_case,
            strip_accents=guess.strip_accents,
        )
    settings = settings.with_flags(
        options.do_lower_case, options.strip_accents, options.never_split
    )
    task = model.description.task
    if task and settings.do_lower_case is not None:
        task = {**task, "do_lower_case": settings.do_lower_case}
    model = model.describe(vocab=vocab, settings=settings, task=task)
    if vocab is not None:
        ids = {token: i for i, token in enumerate(model.description.tokens)}
        where = options.vocab_file or options.input
        model.description.config.require_vocabulary(ids, where)
        settings.require_in(ids, where)
    return model


def convert(model: Model, options: ConvertCheckpoint) -> str:
    """Writes a model to `--output`, reads it back and returns a report.

    Raises `InputError` if the format cannot hold the model, and `RuntimeError`
    if the model that is read back differs from the written one.
    """
    exact = model
    if options.dtype != model.dtype:
        model = model_changes.rounded(model, options.dtype)
    with files.replacing_directory(options.output) as directory:
        FORMATS[options.to].weights.write(model, directory)
        if options.to == "huggingface":
            model_card.write(model, directory, options)
        for name in os.listdir(directory):
            files.sync(os.path.join(directory, name))
        arrays, description = loading.read(formats.find(directory, directory))
        # Not all formats store the type of a classifier.
        head = description.head or model.head.name
        read_back = match(arrays, description, head=head)
        difference = math.inf
        has_all = set(model.stored) <= set(read_back.stored)
        if model.head == read_back.head and has_all:
            difference = _difference(
                read_back.stored, model.read, read_back.read
            )
        if difference:
            raise RuntimeError(
                "The weights that were read back differ from the written ones "
                f"by {difference}. The output was removed. Please report this."
            )
        lost = list(_lost(model.description, read_back.description))
        if model.dtype != exact.dtype:
            gap = _difference(model.stored, exact.read, model.read)
            lost.append(f"exact weights; they differ by at most {gap:.1g}")
    return _report(model, read_back.stored, lost, options)


def _difference(
    names: Iterable[str],
    before: Callable[[str], np.ndarray],
    after: Callable[[str], np.ndarray],
) -> float:
    """Returns the largest absolute difference between the arrays."""
    largest = 0.0
    for name in progress.bar(names, description="Comparing", unit=" arrays"):
        old, new = before(name), after(name)
        if not np.array_equal(old, new):
            largest = max(largest, float(np.abs(old - new).max()))
    return largest


def _lost(before: Description, after: Description) -> Iterable[str]:
    """Yields descriptions of lost settings; weights are not compared."""
    ours, theirs = before.config.to_dict(), after.config.to_dict()
    for name in sorted({*ours, *theirs}):
        old, new = ours.get(name), theirs.get(name)
        # A dropout of null means 0, and activations are case-insensitive.
        if (old or 0) != (new or 0) and str(old).lower() != str(new).lower():
            yield f"{name}: {old!r} becomes {new!r}"
    if before.vocab != after.vocab:
        yield "line ends or spaces of the vocabulary"
    if before.embedding != after.embedding:
        yield "how a text becomes a vector, the files of sentence-transformers"
    old, new = before.settings, after.settings
    if new.do_lower_case not in (None, old.do_lower_case):
        yield f"do_lower_case: becomes {new.do_lower_case}"


def _report(
    model: Model,
    written_names: Iterable[str],
    lost: list[str],
    options: ConvertCheckpoint,
) -> str:
    written = {name: model.shapes[name] for name in written_names}
    initialized = [name for name in written if name not in model.stored]
    # Copies of tied weights are not counted.
    names = [*model.stored.values(), *model.left_out]
    read = {name: model.arrays.shapes[name] for name in names}
    left_out = set(model.left_out)
    state = {n for n in left_out if re.search(tf1.OPTIMIZER_STATE, n)}
    # A mean does not have the weights of the checkpoint that was opened.
    is_mean = options.average_checkpoints
    source = options.input if is_mean else model.arrays.where
    lines = [
        _table(source, read, options.output, written),
        f"Head: {model.head.name}. Read back: {len(written)} arrays, largest "
        "difference 0.",
    ]
    if state:
        lines.append(f"Left out: {len(state)} arrays of optimizer state.")
    if model.description.embedding:  # Which has the dense layer.
        left_out -= {n for n in left_out if re.match(heads.EMBEDDING_LAYER, n)}
    if others := sorted(left_out - state):
        lines.append(f"Left out: {listed(others)}.")
    if initialized:
        lines.append(f"Newly initialized: {listed(initialized)}.")
    if options.add_tokens:
        size = model.description.config.vocab_size
        lines.append(f"vocab_size: {size}, with new tokens.")
    if period := options.repeat_positions:
        lines.append(f"The first {period} position embeddings are repeated.")
    lines += [f"Not kept by {options.to}: {item}." for item in lost]
    if model.description.settings.do_lower_case is not None:
        lower = model.description.settings.do_lower_case
        lines.append(f"do_lower_case: {lower}.")
    return "\n".join(lines)


def _table(source: str, read: Shapes, target: str, written: Shapes) -> str:
    """Returns the sizes of the arrays that were read and written."""
    lines = [f"{'':7}{'arrays':>7}{'values':>14}"]
    sides = ("input", source, read), ("output", target, written)
    for name, path, shapes in sides:
        num_values = sum(map(math.prod, shapes.values()))
        lines.append(f"{name:7}{len(shapes):7,}{num_values:14,}  {path}")
    return "\n".join(lines)


def strip_optimizer(options: ConvertCheckpoint) -> str:
    """Copies a TF1 checkpoint without optimizer state; returns a report.

    Raises `InputError` if it is damaged, or not a TF1 checkpoint, and
    `RuntimeError` if the copy that is read back differs from the original.
    """
    before = tf1_weights.open_arrays(options.input)
    prefix = before.where
    patterns = [tf1.OPTIMIZER_STATE, *filter(None, [options.skip])]
    kept = [
        name
        for name in before.shapes
        if not any(re.search(pattern, name) for pattern in patterns)
    ]
    if not kept:
        raise InputError(
            f"--skip={options.skip} leaves out everything in {prefix}. Use a "
            "narrower regular expression."
        )
    names = [file_names.CONFIG, *tokenizer_files.NAMES]
    if any(map(heads.is_finetuned, kept)):
        names.append(file_names.TASK)
    with files.replacing_directory(options.output) as directory:
        arrays = ((name, before.read(name)) for name in kept)
        tf1_weights.write_arrays(directory, arrays)
        for name in names:
            if path := checkpoint_paths.beside(prefix, name):
                copy = os.path.join(directory, name)
                files.write_text(copy, files.read_text(path))
        task = task_file.read_beside(directory)
        if "calibration" in task and model_card.has_other_results(before):
            path = task_file.path_in(directory)
            json_files.write(path, _without_calibration(task))
        if embedding := loading.read_embedding(prefix, before.read):
            config_file = os.path.join(directory, file_names.CONFIG)
            size = BertConfig.from_json_file(config_file).hidden_size
            sentence_transformers.write(embedding, directory, size)
        after = tf1_weights.open_arrays(directory)
        if gap := _difference(kept, before.read, after.read):
            raise RuntimeError(f"The copy differs from the original by {gap}.")
    table = _table(prefix, before.shapes, options.output, after.shapes)
    return (
        f"{table}\nLeft out: {len(before.shapes) - len(kept)} arrays. Read "
        f"back: {len(kept)} arrays, largest difference 0."
    )
