"""Checks of the user's own texts: missing, damaged, contradicting, repeated."""

import collections
import contextlib
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.io import files
from official_bert.io.rows import Row, to_number
from official_bert.runs.record import data_of
from official_bert.tasks.own_data import OwnData
from official_bert.tasks.own_labels import names_of
from official_bert.tasks.text import key_of

# What programs write for missing values, and Excel for errors; in lower case.
_MISSING = (
    *("", "nan", "n/a", "na", "<na>", "null", "(null)", r"\n"),
    *("#n/a", "#name?", "#ref!", "#value!", "#div/0!", "#num!", "#null!"),
)

# What programs write for missing numbers: 99, -99, 999, ...
_NINES = {sign * (10.0**size - 1) for size in range(2, 7) for sign in (1, -1)}

# How JSON, Spark, SQL and HTML write quotes, line breaks and other characters.
# Before a small letter, \n may be part of a path, or of LaTeX's \nu.
_ESCAPED = re.compile(
    r'\\("|n(?![a-z])|u[0-9a-fA-F]{4})|&(amp|lt|gt|quot|nbsp|#\d+);'
)

# 1.019, which may be the German 1,019, and numbers without a separator.
_MAYBE_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}\.\d{3}")
_BELOW_THOUSAND = re.compile(r"[-+]?\d{1,3}")


def check_training(
    data: OwnData, examples: Sequence[Any], labels: Sequence[str]
) -> None:
    """Warns of training examples that make results unreliable.

    `labels` are those of the task; () in regression and for embeddings. Raises
    `InputError` if columns seem to be swapped, or if each query has one row.
    """
    _warn_of_odd_cells(data, examples, labels)
    if data.options.task_type == "classification":
        _check_contradictions(data, examples, labels)
    if data.options.group_column:
        _check_groups(data, examples)


def _warn_of_odd_cells(
    data: OwnData, examples: Sequence[Any], labels: Sequence[str]
) -> None:
    """Warns of missing texts and labels, and of damaged texts."""
    missing = "are empty, or look like missing values (NaN, NA, None, #REF!"
    num_texts = len(data.options.text_columns)  # Others may be empty.
    placeholders = {*filter(_is_missing, labels), *_placeholders(labels)}
    scores = [e.label for e in examples if isinstance(e.label, float)]
    numbers = _placeholder_numbers(scores)
    # {problem: whether an example has it}.
    checks: dict[str, Callable[[Any], object]] = {
        f"texts {missing})": lambda e: (
            not all(e.texts[:num_texts])
            or any(map(_is_missing, filter(None, e.texts)))
        ),
        f"labels {missing}, -, ? or -1)": lambda e: (
            placeholders and placeholders.intersection(names_of(e.label))
        ),
        "labels look like missing values (99, -999), far from all others": (
            lambda e: e.label in numbers
        ),
        "texts have a wrong encoding (U+FFFD, Ã© for é, or b'...')": (
            lambda e: any(map(_is_damaged, e.texts))
        ),
        r"texts have escaped characters (\", \n, \u00e9 or &amp;)": (
            lambda e: any(map(_ESCAPED.search, e.texts))
        ),
        "pairs have a text twice, as its own match or negative": lambda e: (
            num_texts > 1 and _repeats_text(e)
        ),
    }
    for problem, is_odd in checks.items():
        if guids := [e.guid for e in examples if is_odd(e)]:
            logging.warning(
                f"{data.path('train')}: {len(guids)} of {len(examples)} "
                f"{problem}: {data.places(guids, 'train')}. Correct or remove "
                "them"
            )


def _is_missing(cell: str) -> bool:
    """Whether a cell is empty, or what programs write for an empty cell."""
    text = cell.strip()
    return text == "None" or text.lower() in _MISSING


def _repeats_text(example: Any) -> bool:
    """Whether a pair without a score has a text twice."""
    keys = [*map(key_of, filter(None, example.texts))]
    return example.label is None and len({*keys}) < len(keys)


def _is_damaged(text: str) -> bool:
    """Whether a conversion of the encoding seems to have damaged a text.

    It has U+FFFD, or is UTF-8 that was read as Windows-1252, in which é becomes
    Ã©, or is how Python shows bytes.
    """
    if "\ufffd" in text or re.fullmatch(r"b(['\"]).*\1", text, re.DOTALL):
        return True
    if text.isascii():
        return False
    for encoding in ("cp1252", "latin-1"):
        with contextlib.suppress(UnicodeError):
            return bool(text.encode(encoding).decode("utf-8"))
    return False


def _placeholders(labels: Collection[str]) -> set[str]:
    """Returns the labels that data sets write if the label is unknown.

    In SNLI, this is "-" or, with the classes 0, 1 and 2, -1. But labels may
    also be + and -, or -1, 0 and 1.
    """
    names = {"?"} if "+" in labels else {"?", "-"}
    numbers = {to_number(label): label for label in labels}
    if {-1, 0, 1, 2} <= numbers.keys() and -2 not in numbers:
        names.add(numbers[-1])
    return names.intersection(labels)


def _placeholder_numbers(numbers: Collection[float]) -> set[float]:
    """Returns the numbers of `_NINES` that are far from all others."""
    others = {*numbers} - _NINES
    low, high = min(others, default=0.0), max(others, default=0.0)
    margin = 5 * (high - low)
    nines = _NINES.intersection(numbers) if others else set()
    return {n for n in nines if not low - margin <= n <= high + margin}


def warn_of_thousands(data: OwnData, rows: Sequence[Row]) -> None:
    """Warns if the points in a column of numbers may separate thousands."""
    column = data.options.label_column
    cells = [str(row.get(column)).strip() for row in rows]
    whole = [*filter(_BELOW_THOUSAND.fullmatch, cells)]
    others = [cell for cell in cells if not _BELOW_THOUSAND.fullmatch(cell)]
    if whole and others and all(map(_MAYBE_THOUSANDS.fullmatch, others)):
        logging.warning(
            f"{data.training_column(column)} has {whole[0]} and {others[0]}, "
            f"which is read as {to_number(others[0]):g}: all numbers with a "
            "point have three digits after it. If the points separate "
            "thousands, remove them"
        )


def _check_contradictions(
    data: OwnData, examples: Sequence[Any], labels: Sequence[str]
) -> None:
    """Warns if the same text has different labels.

    Raises `InputError` if there are more labels than different texts.
    """
    labels_of: dict[Any, set[str]] = collections.defaultdict(set)
    for example in examples:
        # Another warning is about labels that differ only in case.
        labels_of[example.texts].add(example.label.casefold())
    options = data.options
    if len(labels) > len(labels_of):
        raise InputError(
            f"{data.training_column(options.label_column)} has {len(labels)} "
            f"different labels, but column {options.text_a_column!r} has only "
            f"{len(labels_of)} different texts. Are --text_column and "
            "--label_column swapped?"
        )
    ambiguous = [
        text
        for (text, _), labels_of_text in labels_of.items()
        if len(labels_of_text) > 1 and not _is_missing(text)
    ]
    if ambiguous:
        advice = "If a second column belongs to the text, add --text_b_column. "
        logging.warning(
            f"{data.path('train')}: the same text occurs with different labels "
            f"(number of such texts: {len(ambiguous)}, such as "
            f"{quoted(ambiguous[0])}). Correct the labels. "
            f"{'' if options.text_b_column else advice}If a text can have "
            "several labels, use --task_type=multilabel"
        )


def _check_groups(data: OwnData, examples: Sequence[Any]) -> None:
    """Warns of queries with one row; raises `InputError` if all have one."""
    sizes = collections.Counter(example.group for example in examples)
    where = data.training_column(data.options.group_column)
    if len(sizes) == len(examples):
        raise InputError(
            f"{where} must have the same value in all rows of a query. "
            "Received: a different value in each row. Check --group_column."
        )
    num_single = [*sizes.values()].count(1)
    if num_single > len(sizes) / 2:
        logging.warning(
            f"{where}: {num_single} of {len(sizes)} queries have a single "
            "row, so there is nothing to rank. Check --group_column"
        )


def check_weights(data: OwnData, training: Sequence[Any]) -> None:
    """Warns of labels without weights; `InputError` if all are 0."""
    where = data.training_column(data.options.weight_column)
    weighted = [e for e in training if np.float32(e.weight)]
    if not weighted:
        raise InputError(
            f"{where} must have a weight above 0. Received: only 0 in the "
            "training examples."
        )
    if data.options.task_type == "regression":
        return
    found, learned = (
        {name for e in examples for name in names_of(e.label)}
        for examples in (training, weighted)
    )
    if unlearned := sorted(found - learned):
        logging.warning(
            f"{where} has only 0 for the labels {listed(unlearned)}: they are "
            "not learned"
        )


def warn_of_training_texts(
    data: OwnData, split: str, examples: Sequence[Any]
) -> None:
    """Warns if labeled texts of a file are also in the training data.

    A run that does not train has no training texts to compare. It only
    recognizes the training file, by its fingerprint.
    """
    if not data.options.do_train and split == "dev":
        record = data.options.run_directory.record
        trained_on = record.fingerprints.get("training data", [])
        for path in data.paths(split):
            if data_of(files.fingerprint(path)) in map(data_of, trained_on):
                logging.warning(
                    f"{path} is the training data, so the metrics "
                    "overestimate the model"
                )

    def key(example: Any) -> tuple[str, ...]:
        return tuple(map(key_of, example.texts[:2]))

    # Searches need no labels.
    is_search = split == "test" and data.options.task_type == "embedding"
    trained = {*map(key, data.training)}
    repeated = [
        example.guid
        for example in examples
        if (split == "dev" or is_search or example.label is not None)
        and key(example) in trained
    ]
    if repeated:
        logging.warning(
            f"{data.path(split)}: {len(repeated)} of {len(examples)} texts are "
            "also in the training data, so the metrics overestimate the model: "
            f"{data.places(repeated, split)}. Remove these rows"
        )
