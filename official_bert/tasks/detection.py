"""Detects what the flags for the user's own data leave open.

Whatever is detected is logged, with the flag that overrides it.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Container, Sequence
from typing import Any, TypeVar

import numpy as np
from absl import logging

from official_bert.errors import InputError
from official_bert.inputs import padding
from official_bert.options import RunClassifier
from official_bert.options.checks import table_format
from official_bert.options.run_classifier import OWN_FORMATS
from official_bert.tasks import tables
from official_bert.tasks.tables import Row
from official_bert.tokenization import BatchTokenizer

_Options = TypeVar("_Options", bound=RunClassifier)

# Names that identify a column if only one column has such a name.
_TEXT_NAMES = {
    *("text", "sentence", "review", "comment", "content", "body", "document"),
    *("tweet", "message", "question", "utterance", "query"),
}
_LABEL_NAMES = {
    *("label", "labels", "class", "category", "target", "sentiment", "topic"),
    *("topics", "tags", "stars", "score", "rating", "intent", "y"),
}
_ID_NAMES = {"", "id", "idx", "index", "guid", "unnamed: 0"}

# Columns are detected from this many examples.
_SAMPLE_SIZE = 1000
# Integers of more different values are numbers, not names of classes.
_MAX_INTEGER_CLASSES = 100


def complete(options: _Options) -> _Options:
    """Returns options of own texts without anything left to detect.

    Raises `InputError` if a column cannot be detected.
    """
    columns = (options.text_a_column, options.label_column)
    is_complete = (
        options.has_header is not None
        and all(columns)
        and options.task_type != "auto"
        and not options.fit_max_seq_length
    )
    if is_complete or options.task_name.lower() not in OWN_FORMATS:
        return options
    path = options.own_file(_first_split(options))
    form = table_format(path) or options.task_name.lower()
    has_header = options.has_header
    if has_header is None:
        has_header = _detect_header(options, path, form)
        options = dataclasses.replace(options, has_header=has_header)
    read = functools.partial(tables.read, path, form, has_header=has_header)
    if not all(columns):
        sample = list(itertools.islice(read(), _SAMPLE_SIZE))
        options = _detect_columns(options, sample)
    if options.task_type == "auto":
        labels = [row.get(options.label_column) for row in read()]
        task_type = infer_task_type(labels)
        logging.info(
            "Column %r has %s: --task_type=%s",
            options.label_column,
            _describe_labels(labels),
            task_type,
        )
        options = dataclasses.replace(options, task_type=task_type)
    if options.fit_max_seq_length:
        options = _fit_max_seq_length(options, list(read()))
    return options


def _first_split(options: RunClassifier) -> str:
    if options.do_train:
        return "train"
    return "dev" if options.do_eval else "test"


def _detect_header(options: RunClassifier, path: str, form: str) -> bool:
    columns = (
        options.text_a_column,
        options.text_b_column,
        options.label_column,
        options.id_column,
    )
    is_named = any(name and not name.isdecimal() for name in columns)
    if form == "jsonl" or (is_named and not options.train_file):
        return True
    records = tables.read_records(path, form)
    first, *others = itertools.islice(records, _SAMPLE_SIZE)
    line, names = first
    if is_named or looks_like_header(names, [cells for _, cells in others]):
        logging.info(
            "%s:%d: this line is the header (if it is data: --nohas_header "
            "and numbers of columns): %s",
            path,
            line,
            ", ".join(names),
        )
        return True
    logging.info(
        "%s has no header (if line %d is one: --has_header); columns are "
        "numbers from 0",
        path,
        line,
    )
    return False


def looks_like_header(
    first: Sequence[str], others: Sequence[Sequence[str]]
) -> bool:
    """Whether the first line of a table names its columns.

    It does if it has words where others have numbers. It does not if it has
    numbers or long texts, or a cell that occurs in its column again.
    """
    names = [name.strip() for name in first]
    if any(to_number(name) is not None for name in names):
        return False
    columns = list(itertools.zip_longest(*others, fillvalue=""))[: len(names)]
    for name, cells in zip(names, columns, strict=False):
        if name and all(to_number(cell) is not None for cell in cells):
            return True
    is_repeated = any(map(tuple.__contains__, columns, names))
    return not is_repeated and all(len(name.split()) <= 5 for name in names)


def _detect_columns(options: _Options, sample: Sequence[Row]) -> _Options:
    """Finds the columns of text and label that are not given."""
    names = list(sample[0].cells)
    if options.has_header and options.task_name.lower() != "jsonl":
        names = [name for name in names if not name.isdecimal()]
    given = (
        options.text_a_column,
        options.text_b_column,
        options.label_column,
        options.id_column,
    )
    free = [name for name in names if name not in given]
    text, label = options.text_a_column, options.label_column
    if not text:
        found = _with_one_of(_TEXT_NAMES, free) or [
            name for name in free if _is_text(sample, name)
        ]
        text = _only(found, "text_column", sample[0], names)
        free.remove(text)
    if not label:
        found = _with_one_of(_LABEL_NAMES, free) or [
            name for name in free if name.lower() not in _ID_NAMES
        ]
        label = _only(found, "label_column", sample[0], names)
    used = {*given, text, label}
    unused = [name for name in names if name not in used]
    logging.info(
        "--text_column=%s --label_column=%s%s",
        text,
        label,
        f"; not used: {', '.join(unused[:10])}" if unused else "",
    )
    return dataclasses.replace(options, text_a_column=text, label_column=label)


def _with_one_of(known: Container[str], names: Sequence[str]) -> list[str]:
    """Returns the name that is known, or [] if there is none or several."""
    found = [name for name in names if name.lower() in known]
    return found if len(found) == 1 else []


def _is_text(sample: Sequence[Row], name: str) -> bool:
    """Whether a column has texts, most of them different and not numbers."""
    cells = [row.cells.get(name) for row in sample]
    texts = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
    numbers = [text for text in texts if to_number(text) is not None]
    is_prose = len(texts) > len(cells) / 2 > len(numbers)
    return is_prose and len(set(texts)) > len(texts) / 2


def _only(
    found: Sequence[str], flag: str, row: Row, names: Sequence[str]
) -> str:
    if len(found) == 1:
        return found[0]
    problem = "none looks" if not found else "several look"
    raise InputError(
        f"{row.path}: --{flag} must be given: {problem} like it. The columns "
        f"are {', '.join(names[:10])}. For pairs, use --text_b_column too."
    )


def infer_task_type(labels: Sequence[Any]) -> str:
    """Returns the task type for a column of labels.

    Lists: multi-label. Fractions, or integers of many values: regression.
    Anything else: classification.
    """
    if any(isinstance(label, list) for label in labels):
        return "multilabel"
    numbers = [to_number(label) for label in labels if label != ""]
    values = {number for number in numbers if number is not None}
    if not values or None in numbers:
        return "classification"
    has_fractions = any(value % 1 for value in values)
    most = min(_MAX_INTEGER_CLASSES, len(labels) // 2)
    is_many = len(values) > max(most, 2)
    return "regression" if has_fractions or is_many else "classification"


def _describe_labels(labels: Sequence[Any]) -> str:
    if any(isinstance(label, list) for label in labels):
        return "lists"
    names = sorted({str(label) for label in labels})
    return f"{len(names)} different values ({', '.join(names[:10])})"


def to_number(cell: Any) -> float | None:
    """Returns a cell that is a finite number as a float, otherwise None."""
    if isinstance(cell, bool):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _fit_max_seq_length(options: _Options, rows: Sequence[Row]) -> _Options:
    """Lowers --max_seq_length to the 99th percentile of the data's lengths."""
    tokenizer = BatchTokenizer(options.vocab_file, options.do_lower_case)
    lengths = np.ones(len(rows), np.int64)  # [CLS]
    for column in filter(None, (options.text_a_column, options.text_b_column)):
        texts = [row.text(column) for row in rows]
        lengths += np.diff(tokenizer.encode_lines(texts).row_splits) + 1
    longest = options.max_seq_length
    wanted = int(np.percentile(lengths, 99, method="higher"))
    length = padding.padded_length(min(wanted, longest), longest, "bucket")
    logging.info(
        "--max_seq_length=%d: 99%% of the texts have at most %d tokens; %.1f%% "
        "are truncated",
        length,
        wanted,
        100 * np.mean(lengths > length),
    )
    return dataclasses.replace(
        options, max_seq_length=length, fit_max_seq_length=False
    )
