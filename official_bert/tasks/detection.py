"""Detects the values of omitted flags from the user's own data.

Detected values are logged, with the flag that overrides them. TensorFlow is not
imported, so that errors in the data are reported at once.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io import tables
from official_bert.io.rows import (
    Row,
    only_item,
    plain_number,
    separator_advice,
    to_bit,
    to_number,
)
from official_bert.options import RunClassifier
from official_bert.tasks import embedding_columns, headers, own_data
from official_bert.tasks.columns import (
    CHOICE_NAME,
    ID_NAME,
    SAMPLE_SIZE,
    are_ids,
    is_text,
)
from official_bert.tasks.label_vectors import numbers_in, size_of

_WORD_OR_TAG = re.compile(r"tokens?|words?|(.*_)?tags?", re.IGNORECASE)
# What separates labels in exports of other programs, such as <java><spring>.
_SEPARATORS = (";", "|", "/", "#", ">", "，", "、", " ")
_PAIRS = " For pairs of texts, add --text_b_column."
_ONE_LABEL = " (--task_type=classification for one label per text)"
_COLUMN_PER_LABEL = (
    " For a 0 or 1 per label, list the columns, such as "
    "--label_column=toxic,insult."
)
# A column with more different integers than this, or than half of its rows,
# holds numbers, not names of classes.
_MAX_INTEGER_CLASSES = 100


def detect_omitted(options: RunClassifier) -> tuple[RunClassifier, list[Row]]:
    """Detects the values of omitted flags from the user's own texts.

    Returns complete options and the rows of the first file in use, so that it
    is read once. In other tasks, the options are unchanged and there are no
    rows. Raises `InputError` if the file is not a table, lacks a given column,
    or does not show the value of an omitted flag.
    """
    if not (options.used_splits and options.has_own_texts):
        return options, []
    split = options.used_splits[0]
    options, rows = _read_with_header(options, split)
    options = own_data.with_column_names(options, rows[0])
    if options.text_b_column and options.text_b_column == options.text_a_column:
        message = f"must differ from {options.flag_name('text_a_column')}."
        raise options.error("text_b_column", message)
    is_embedding = options.task_type == "embedding"
    detect = embedding_columns.detect if is_embedding else _detect_labels
    options = detect(options, rows, split)
    flags = own_data.flags_of_columns(options)
    accepted = [*own_data.accepted_rows(rows, flags)]
    if num_rejected := len(rows) - len(accepted):
        logging.warning(
            f"{rows[0].path}: {num_rejected} of {len(rows)} rows are left out, "
            "because their `answer` is reject or ignore, as Prodigy writes it. "
            "To predict the answers, set --label_column=answer"
        )
    return options, [row._replace(flags=flags) for row in accepted]


def _detect_labels(
    options: RunClassifier, rows: list[Row], split: str
) -> RunClassifier:
    """Finds the columns of texts and labels, and the type of the task."""
    sample = rows[:SAMPLE_SIZE]
    labels = sample[0].listed_columns(options.label_column)
    for name in ("text_a_column", "text_b_column", "weight_column"):
        if getattr(options, name) and getattr(options, name) in labels:
            message = f"must differ from {options.flag_name('label_column')}."
            raise options.error(name, message)
    if repeated := [name for name in labels if labels.count(name) > 1]:
        message = f"names the column {repeated[0]!r} twice."
        raise options.error("label_column", message)
    columns = (*options.own_columns, *(labels if split != "test" else ()))
    for column in filter(None, columns):
        sample[0].get(column)  # Raises an `InputError` if it is missing.
    if not (options.text_a_column and options.label_column):
        options = _detect_columns(options, sample)
    if options.task_type == "auto":
        options = options.replace(task_type=_detect_task_type(options, rows))
    elif options.task_type == "multilabel":
        cells = [row.cells.get(options.label_column) for row in sample]
        texts = {cell for cell in cells if isinstance(cell, str)}
        if not size_of(cells):
            _warn_of_lists(texts, _SEPARATORS, "")
    return options


def _read_with_header(
    options: RunClassifier, split: str
) -> tuple[RunClassifier, list[Row]]:
    """Detects whether a file has a header, and returns its rows."""
    labels = options.label_column.split(",")
    columns = filter(None, (*options.own_columns, *map(str.strip, labels)))
    has_names = not all(map(str.isdecimal, columns))
    has_keys = options.own_format(split) in (*tables.OBJECTS, tables.LINES)
    is_known = has_keys or (has_names and not options.train_file)
    if is_known and options.has_header is None:
        options = options.replace(has_header=True)
    if options.has_header is not None:
        return options, list(own_data.read_rows(options, split))
    rows = [*own_data.read_rows(options.replace(has_header=False), split)]
    # Several files have the same header, or none.
    sample = [r for r in rows[:SAMPLE_SIZE] if r.path == rows[0].path]
    has_header = headers.detect(options, sample, has_names)
    if has_header:
        rows = list(tables.name_columns(rows))
        if not rows:
            raise tables.no_examples(options.own_file(split))
    else:
        headers.require_no_other_header(rows, sample)
    return options.replace(has_header=has_header), rows


def _detect_columns(
    options: RunClassifier, sample: Sequence[Row]
) -> RunClassifier:
    """Finds the columns of the text and the label if they are not given."""
    text, label = options.text_a_column, options.label_column
    names = sample[0].columns
    taken = (*options.own_columns, *sample[0].listed_columns(label))
    free = [name for name in names if name not in taken]
    advice = "" if options.text_b_column else _PAIRS
    if not text:
        possible = [name for name in free if is_text(sample, name)]
        text = _choose("text", free, possible, sample[0], advice)
        free.remove(text)
    if not label:
        possible = [name for name in free if not ID_NAME.fullmatch(name)]
        advice += _COLUMN_PER_LABEL
        label = _choose("label", free, possible, sample[0], advice)
    unused = [name for name in names if name not in (*taken, text, label)]
    note = f" (not used: {listed(unused)})" if unused else ""
    logging.info(f"--text_column={text} --label_column={label}{note}")
    return options.replace(text_a_column=text, label_column=label)


def _choose(
    default: str, names: list[str], possible: list[str], row: Row, advice: str
) -> str:
    """Returns the column with the default name, or the only possible one."""
    if default in names:
        return default
    if not names:
        raise InputError(
            f"{row.path}: must have a column of texts and a column of labels. "
            f"Received: one column. {separator_advice(row.columns)}".rstrip()
        )
    if len(possible) != 1:
        if any(map(_WORD_OR_TAG.fullmatch, names)):
            advice += " For words with tags, add --task_name=ner."
        if sum(bool(CHOICE_NAME.fullmatch(name)) for name in names) > 1:
            advice += (
                " For questions with choices, use --task_name=choices "
                "--data_dir=DIRECTORY instead of --train_file."
            )
        raise InputError(
            f"--{default}_column must be given: it cannot be detected. Choose "
            f"from the columns: {listed(names)}.{advice}"
        )
    return possible[0]


def _detect_task_type(options: RunClassifier, rows: Sequence[Row]) -> str:
    """Detects the type of the task from the labels; logs it with the reason."""
    column = options.label_column
    if len(names := rows[0].listed_columns(column)) > 1:
        bits = ([to_bit(row.cells.get(name)) for name in names] for row in rows)
        hint = _ONE_LABEL if all(b.count(1) == 1 for b in bits) else ""
        message = f"--label_column lists columns{hint}"
        logging.info(f"--task_type=multilabel: {message}")
        return "multilabel"
    labels = [row.get(column) for row in rows]
    alternative, single = "", [*map(only_item, labels)]
    lists = [label for label in single if isinstance(label, list)]
    if single != labels and not lists:
        labels, alternative = single, " (otherwise: --task_type=multilabel)"
    elif single != labels and not any(lists):
        logging.warning(
            f"{rows[0].path}: {len(lists)} of {len(rows)} texts have no label "
            f"in column {column!r}, the others have one each. If these texts "
            "are not labeled yet, remove them, and use "
            "--task_type=classification"
        )
    task_type = infer_task_type(labels)
    if options.label_file and task_type == "regression":
        task_type = "classification"
    if task_type == "regression" or None not in map(to_number, labels):
        is_class = task_type == "classification"
        other_type = "regression" if is_class else "classification"
        alternative = f" (otherwise: --task_type={other_type})"
    if all(sum(numbers_in(label) or ()) == 1 for label in labels):
        alternative = _ONE_LABEL
    message = f"from the labels in column {column}{alternative}"
    logging.info(f"--task_type={task_type}: {message}")
    if task_type == "regression" and are_ids(labels):
        logging.warning(
            f"{rows[0].path}: column {column!r} has a different integer in "
            "each row, like an id. If it is not the number to predict, choose "
            "another --label_column"
        )
    if task_type == "classification":
        _check_commas(labels, f"{rows[0].path}: {column!r}")
    return task_type


def _are_mostly_numbers(labels: Sequence[Any]) -> bool:
    """Whether most labels are numbers to predict, some in another format.

    Not if all of the others may have decimal commas.
    """
    others = [str(label) for label in labels if to_number(label) is None]
    if None not in [to_number(label.replace(",", ".")) for label in others]:
        return False
    numbers = [n for n in map(plain_number, labels) if n is not None]
    is_most = len(numbers) > 0.9 * len(labels)
    return is_most and infer_task_type(numbers) == "regression"


def _check_commas(labels: Sequence[Any], where: str) -> None:
    """Warns if labels may be lists; raises `InputError` for numbers in them."""
    texts = {label for label in labels if isinstance(label, str)}
    lists = sorted(label for label in texts if "," in label)
    parts = [part for label in texts for part in label.split(",")]
    if lists and None not in [to_number(part or 0) for part in parts]:
        raise InputError(
            f"{where}: labels such as {lists[0]!r} are ambiguous. If they are "
            "numbers, write them with a decimal point, such as 3.5. If they "
            "are several labels per text, add --task_type=multilabel; if they "
            "are names of classes, --task_type=classification."
        )
    advice = ", and use --task_type=multilabel"
    _warn_of_lists(texts, (",", *_SEPARATORS), advice)


def _warn_of_lists(
    labels: Collection[str], separators: Iterable[str], advice: str
) -> None:
    """Warns if labels look like lists of labels with these separators."""
    labels = {label.strip() for label in labels}
    for separator in separators:
        lists = sorted(label for label in labels if separator in label)
        parts = {p.strip() for label in labels for p in label.split(separator)}
        # Names of classes may have spaces, such as "very good".
        factor = 1.5 if separator == " " else 1
        if lists and factor * len(parts - {""}) < len(labels):
            example = max(lists, key=len)
            logging.warning(
                f"Labels such as {example!r} contain {separator!r}. If these "
                "are several labels per text, separate them with "
                f"commas{advice}"
            )


def infer_task_type(labels: Sequence[Any]) -> str:
    """Returns the task type for a column of labels.

    Lists mean multi-label, also lists of numbers in texts; fractions or many
    different integers, regression, even if a few cells are no numbers; anything
    else, classification.
    """
    is_list = any(isinstance(x, list) or numbers_in(x) for x in labels)
    if is_list or size_of(labels) > 2:  # "1,0" may be a decimal.
        return "multilabel"
    numbers = {to_number(label) for label in labels if label != ""}
    max_classes = max(2, min(_MAX_INTEGER_CLASSES, len(labels) // 2))
    if None in numbers:
        is_regression = _are_mostly_numbers(labels)
    else:
        has_fractions = any(number % 1 for number in numbers if number)
        is_regression = has_fractions or len(numbers) > max_classes
    return "regression" if is_regression else "classification"
