"""Detects the values of omitted flags from the user's own data.

Detected values are logged, with the flag that overrides them. TensorFlow is not
imported, so that errors in the data are reported at once.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.io import tables
from official_bert.io.label_vectors import numbers_in, size_of
from official_bert.io.rows import (
    Row,
    only_item,
    plain_number,
    separator_advice,
    to_bit,
    to_number,
)
from official_bert.options import RunClassifier

_Options = TypeVar("_Options", bound=RunClassifier)

_ID_NAME = re.compile(r"|id|idx|index|guid|unnamed: \d+(\.\d+)*", re.IGNORECASE)
# Columns with one choice each: A, B or choice_0, option 1, endingA.
CHOICE_COLUMN = re.compile(
    r"[A-Z]|(choice|option|ending|answer)[ _-]?([A-Z]|\d+)", re.IGNORECASE
)
_WORD_OR_TAG = re.compile(r"tokens?|words?|(.*_)?tags?", re.IGNORECASE)
# Cells that are not texts: without letters, or like ids, such as u017.
_CODE = re.compile(r"[\W\d_]*|(?=\D*\d)[-a-z0-9_.,:+/#]*", re.IGNORECASE)
# What separates labels in exports of other programs, such as <java><spring>.
_SEPARATORS = (";", "|", "/", "#", ">", " ")
# Header and columns are detected from this many examples.
_SAMPLE_SIZE = 1000
# Columns of similar texts, of texts that are not similar, and of similarities.
_PAIRS_OF_COLUMNS = (
    ("query", "positive"),
    ("anchor", "positive"),
    ("question", "answer"),
    ("sentence1", "sentence2"),
    ("text_a", "text_b"),
)
_NEGATIVE = re.compile(r"(hard_)?negative([ _-]?\d+)?", re.IGNORECASE)
_SCORES = ("score", "similarity", "label")
_PAIRS = " For pairs of texts, add --text_b_column."
_ONE_LABEL = " (--task_type=classification for one label per text)"
_COLUMN_PER_LABEL = (
    " For a 0 or 1 per label, list the columns, such as "
    "--label_column=toxic,insult."
)
# A column with more different integers than this, or than half of its rows,
# holds numbers, not names of classes.
_MAX_INTEGER_CLASSES = 100


def detect_omitted(options: _Options) -> tuple[_Options, list[Row]]:
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
    if options.text_b_column and options.text_b_column == options.text_a_column:
        message = f"must differ from {options.flag_name('text_a_column')}."
        raise options.error("text_b_column", message)
    is_embedding = options.task_type == "embedding"
    detect = _detect_pairs if is_embedding else _detect_labels
    options = detect(options, rows, split)
    flags = flags_of_columns(options)
    accepted = [*accepted_rows(rows, flags)]
    if num_rejected := len(rows) - len(accepted):
        logging.warning(
            f"{rows[0].path}: {num_rejected} of {len(rows)} rows are left out, "
            "because their `answer` is reject or ignore, as Prodigy writes it. "
            "To predict the answers, set --label_column=answer"
        )
    return options, [row._replace(flags=flags) for row in accepted]


def _detect_labels(options: _Options, rows: list[Row], split: str) -> _Options:
    """Finds the columns of texts and labels, and the type of the task."""
    sample = rows[:_SAMPLE_SIZE]
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
        options = _detect_task_type(options, rows)
    elif options.task_type == "multilabel":
        cells = [row.cells.get(options.label_column) for row in sample]
        texts = {cell for cell in cells if isinstance(cell, str)}
        if not size_of(cells):
            _warn_of_lists(texts, _SEPARATORS, "")
    return options


def accepted_rows(
    rows: Iterable[Row], used_columns: Collection[str]
) -> Iterator[Row]:
    """Yields rows that were not rejected in Prodigy.

    Yields all rows if the column `answer` is used. Raises `InputError` if all
    were rejected.
    """
    rejected = () if "answer" in used_columns else ("reject", "ignore")
    row, num_accepted = None, 0
    for row in rows:
        if row.cells.get("answer") not in rejected:
            num_accepted += 1
            yield row
    if row and not num_accepted:
        raise tables.no_examples(row.path)


class PairColumns(NamedTuple):
    """The columns of a table for sentence embeddings."""

    text: str
    match: str | None  # A similar text; None: there are only single texts.
    negatives: tuple[str, ...] = ()  # Texts that are not similar.
    score: str = ""  # The similarity of the two texts; "": there is none.

    @property
    def texts(self) -> tuple[str, ...]:
        """All columns of texts."""
        return (self.text, *filter(None, [self.match]), *self.negatives)


def pair_columns(options: RunClassifier, rows: Sequence[Row]) -> PairColumns:
    """Returns the columns of a file: those of the flags, or detected ones."""
    first, sample = rows[0], rows[:_SAMPLE_SIZE]
    columns = _all_columns(rows)
    known = {*first.cells, *columns}
    names = {name.lower(): name for name in columns}
    text: str = options.text_a_column
    match = options.text_b_column
    if match not in known:  # Other files may have single texts.
        match = None
    has_given = bool(text) and text in known
    score = options.label_column
    if not score or score not in known:
        score = next((names[name] for name in _SCORES if name in names), "")
    negatives = tuple(filter(_NEGATIVE.fullmatch, columns))
    pairs = [pair for pair in _PAIRS_OF_COLUMNS if names.keys() >= {*pair}]
    if not has_given and pairs:
        text, match = (names[name] for name in pairs[0])
    elif not has_given:
        others = (score, options.id_column, *negatives)
        texts = [
            name
            for name in columns
            if not (name in others or _ID_NAME.fullmatch(name))
            and _is_text(sample, name)
        ]
        if len(texts) not in (1, 2):
            raise InputError(
                f"{first.path}: the columns of similar texts cannot be "
                "detected. Add --text_column and --text_b_column. The columns "
                f"are {listed(columns)}."
            )
        queries = {query for query, _ in _PAIRS_OF_COLUMNS}
        texts.sort(key=lambda name: name.lower() not in queries)
        text, match = texts[0], texts[1] if len(texts) > 1 else None
    if match is None and options.teacher:
        score = ""
    elif match is None and (score or negatives):
        raise InputError(
            f"{first.path}: column {score or negatives[0]!r} needs a second "
            "text in each row. Add --text_b_column."
        )
    return PairColumns(text, match, () if score else negatives, score)


def _all_columns(rows: Sequence[Row]) -> list[str]:
    """Returns the columns of all rows; JSON objects may have different keys."""
    return [*dict.fromkeys(name for row in rows for name in row.columns)]


def _detect_pairs(options: _Options, rows: list[Row], split: str) -> _Options:
    """Finds the columns of texts for sentence embeddings, and of scores.

    Other files than the training file may have other columns.
    """
    if options.text_b_column and not options.text_a_column:
        raise options.error("text_b_column", "needs --text_column. Add it.")
    given = (*options.own_columns, options.label_column)
    for column in filter(None, given if split == "train" else ()):
        rows[0].get(column)  # Raises an `InputError` if it is missing.
    columns = pair_columns(options, rows)
    if columns.score and not options.label_column:
        scores = {to_number(row.get(columns.score)) for row in rows}
        if scores <= {-1, 0, 1, 2} and 2 in scores:
            logging.warning(
                f"{rows[0].path}: column {columns.score!r} is used as the "
                "similarity of the texts, larger for more similar ones. If it "
                "has the classes of NLI, where 0 is entailment, keep the rows "
                "with 0, and remove the column. Otherwise, set --label_column"
            )
    options = options.replace(
        text_a_column=columns.text,
        text_b_column=columns.match,
        label_column=columns.score,
    )
    used = (*columns.texts, columns.score, options.id_column)
    unused = [name for name in _all_columns(rows) if name not in used]
    parts = {
        "texts": columns.texts,
        "scores": (columns.score,) * bool(columns.score),
        "not used": unused,
    }
    shown = [
        f"{kind}: {listed(names)}" for kind, names in parts.items() if names
    ]
    logging.info(f"Columns of {rows[0].path}: {'; '.join(shown)}")
    has_pairs = columns.match is not None and not columns.score
    _warn_of_unused(rows[:_SAMPLE_SIZE], unused, may_have_scores=has_pairs)
    return options


def _warn_of_unused(
    sample: Sequence[Row], unused: Sequence[str], *, may_have_scores: bool
) -> None:
    """Warns if columns that are not used may have texts or scores of pairs."""
    for name in unused:
        cells = [row.cells.get(name) for row in sample]
        numbers = {*map(to_number, cells)}
        are_numbers = None not in numbers and len(numbers) > 1
        if (
            isinstance(cells[0], list)
            or name.lower().startswith("neg")
            or (may_have_scores and are_numbers and not _are_ids(cells))
            or (may_have_scores and "label" in name.lower())
        ):
            logging.warning(
                f"{sample[0].path}: column {name!r} is not used. If it has "
                "scores of the pairs, set --label_column; if it says which "
                "texts are similar, keep only their rows. Texts must be in "
                "columns with one text each, such as positive, negative and "
                "negative_2"
            )


def read_rows(options: RunClassifier, split: str) -> Iterator[Row]:
    """Yields the rows of the user's `train`, `dev` or `test` file.

    The texts of lines are in the column of texts.
    """
    file_format = options.own_format(split)
    rows = tables.read(
        options.own_files(split),
        file_format,
        has_header=options.reads_header,
        flags=flags_of_columns(options),
    )
    column = options.text_a_column
    if file_format != tables.LINES or not column:
        return rows
    return (
        row._replace(cells={column: row.text("text")}, columns=[column])
        for row in rows
    )


def flags_of_columns(options: RunClassifier) -> dict[str, str]:
    """Returns {column: the flag that names it}."""
    flags: dict[str, str] = {}
    for name in options.fields():
        value = getattr(options, name)
        if name.endswith("_column") and isinstance(value, str):
            parts = (part.strip() for part in value.split(","))
            flags |= dict.fromkeys([value, *parts], options.flag_name(name))
    return flags


def _read_with_header(
    options: _Options, split: str
) -> tuple[_Options, list[Row]]:
    """Detects whether a file has a header, and returns its rows."""
    labels = options.label_column.split(",")
    columns = filter(None, (*options.own_columns, *map(str.strip, labels)))
    has_names = not all(map(str.isdecimal, columns))
    has_keys = options.own_format(split) in (*tables.OBJECTS, tables.LINES)
    is_known = has_keys or (has_names and not options.train_file)
    if is_known and options.has_header is None:
        options = options.replace(has_header=True)
    if options.has_header is not None:
        return options, list(read_rows(options, split))
    rows = list(read_rows(options.replace(has_header=False), split))
    # Several files have the same header, or none.
    sample = [r for r in rows[:_SAMPLE_SIZE] if r.path == rows[0].path]
    has_header = _detect_header(options, sample, has_names)
    if has_header:
        rows = list(tables.name_columns(rows))
        if not rows:
            raise tables.no_examples(options.own_file(split))
    else:
        _require_no_other_header(rows, sample)
    return options.replace(has_header=has_header), rows


def _require_no_other_header(
    rows: Sequence[Row], sample: Sequence[Row]
) -> None:
    """Raises `InputError` if files after that of the sample have a header."""
    others = [list(row.cells.values()) for row in sample]
    for before, row in itertools.pairwise(rows):
        is_first = row.path != before.path
        if is_first and looks_like_header([*row.cells.values()], others):
            raise InputError(
                f"{row.where}: this line looks like a header, but "
                f"{sample[0].path} has none. Several files must have the same "
                "header, or none. If it is data, add --nohas_header."
            )


def _detect_header(
    options: RunClassifier, sample: Sequence[Row], has_names: bool
) -> bool:
    """Whether a table has a header; `has_names` if columns were named."""
    first, *others = (list(row.cells.values()) for row in sample)
    is_single = others and _num_filled(first) == 1 < _num_filled(others[0])
    if is_single and options.task_type != "multilabel":
        cell = quoted(next(filter(None, first)))
        raise InputError(
            f"{sample[0].where}: has a single cell, {cell}. If it is a title, "
            "remove it: the first line must be the header. Otherwise, add "
            "--has_header or --nohas_header."
        )
    has_header = has_names or looks_like_header(first, others)
    verdict = "is the header (otherwise: --nohas_header)"
    if not has_header:
        verdict = (
            "is data; columns have numbers from 0 (otherwise: --has_header)"
        )
    logging.info(f"{sample[0].where}: this line {verdict}: {first}")
    return has_header


def _num_filled(cells: Sequence[str]) -> int:
    return sum(cell != "" for cell in cells)


def looks_like_header(
    first: Sequence[str], others: Sequence[Sequence[str]]
) -> bool:
    """Whether the first line of a table names its columns.

    A line with a number is not a header, except for the numbers 0, 1, ... that
    pandas writes for columns without names. A line with a word above a column
    of numbers is one. Any other line is one, unless it has a cell of more than
    five words, or a cell that occurs in its column again.
    """
    names = [*first]
    if names[:1] == [""]:  # The column of the index.
        del names[0]
    if names and names == [*map(str, range(len(names)))]:
        # Otherwise, this is a table of numbers.
        return any(None in map(to_number, row) for row in others)
    if any(to_number(name) is not None for name in first):
        return False
    # Joined files have several headers.
    others = [row for row in others if [*row] != [*first]]
    columns = list(zip(first, zip(*others, strict=False), strict=False))
    for name, cells in columns:
        if name and None not in map(to_number, cells):
            return True
    is_repeated = any(name and name in cells for name, cells in columns)
    return not is_repeated and all(len(name.split()) <= 5 for name in first)


def _detect_columns(options: _Options, sample: Sequence[Row]) -> _Options:
    """Finds the columns of the text and the label if they are not given."""
    text, label = options.text_a_column, options.label_column
    names = sample[0].columns
    labels = sample[0].listed_columns(label)
    taken = (*options.own_columns, *labels)
    free = [name for name in names if name not in taken]
    advice = "" if options.text_b_column else _PAIRS
    if not text:
        possible = [name for name in free if _is_text(sample, name)]
        text = _choose("text", free, possible, sample[0], advice)
        free.remove(text)
    if not label:
        possible = [name for name in free if not _ID_NAME.fullmatch(name)]
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
        if sum(bool(CHOICE_COLUMN.fullmatch(name)) for name in names) > 1:
            advice += (
                " For questions with choices, use --task_name=choices "
                "--data_dir=DIRECTORY instead of --train_file."
            )
        raise InputError(
            f"--{default}_column must be given: it cannot be detected. Choose "
            f"from the columns: {listed(names)}.{advice}"
        )
    return possible[0]


def _is_text(sample: Sequence[Row], name: str) -> bool:
    """Whether more than half of a column's cells are different texts.

    Numbers, dates and ids are not texts.
    """
    cells = [row.cells.get(name) for row in sample]
    texts = {cell.strip() for cell in cells if isinstance(cell, str)}
    return sum(not _CODE.fullmatch(text) for text in texts) > len(cells) / 2


def _detect_task_type(options: _Options, rows: Sequence[Row]) -> _Options:
    column = options.label_column
    if len(names := rows[0].listed_columns(column)) > 1:
        bits = ([to_bit(row.cells.get(name)) for name in names] for row in rows)
        hint = _ONE_LABEL if all(b.count(1) == 1 for b in bits) else ""
        message = f"--label_column lists columns{hint}"
        logging.info(f"--task_type=multilabel: {message}")
        return options.replace(task_type="multilabel")
    labels = [row.get(column) for row in rows]
    for row, label in zip(rows, labels, strict=True):
        items = label if isinstance(label, list) else []
        if any(isinstance(item, list | dict) for item in items):
            must = "be a name or a list of names. For spans of the text, "
            must += "add --task_name=ner"
            raise row.error(column, must, label)
    alternative, single = "", [*map(only_item, labels)]
    if single != labels and not any(isinstance(x, list) for x in single):
        labels, alternative = single, " (otherwise: --task_type=multilabel)"
    task_type = infer_task_type(labels)
    if options.label_file and task_type == "regression":
        task_type = "classification"
    if all(to_number(label) is not None for label in labels):
        is_class = task_type == "classification"
        other_type = "regression" if is_class else "classification"
        alternative = f" (otherwise: --task_type={other_type})"
    if all(sum(numbers_in(label) or ()) == 1 for label in labels):
        alternative = _ONE_LABEL
    message = f"from the labels in column {column}{alternative}"
    logging.info(f"--task_type={task_type}: {message}")
    if task_type == "regression" and _are_ids(labels):
        logging.warning(
            f"{rows[0].path}: column {column!r} has a different integer in "
            "each row, like an id. If it is not the number to predict, choose "
            "another --label_column"
        )
    if task_type == "classification":
        _require_plain_numbers(rows, column)
        _check_commas(labels, f"{rows[0].path}: {column!r}")
    return options.replace(task_type=task_type)


def _are_ids(labels: Sequence[Any]) -> bool:
    """Whether all labels are integers, and no integer occurs twice."""
    numbers = {to_number(label) for label in labels}
    is_whole = all(number is not None and number % 1 == 0 for number in numbers)
    return is_whole and len(numbers) == len(labels)


def _require_plain_numbers(rows: Sequence[Row], column: str) -> None:
    """Raises `InputError` if labels look like numbers, but not all are plain.

    Numbers with a currency or thousands separators are not plain.
    """
    plain = [plain_number(row.get(column)) for row in rows]
    numbers = [number for number in plain if number is not None]
    others = [row for row in rows if to_number(row.get(column)) is None]
    are_mostly_numbers = len(numbers) > 0.9 * len(rows)
    if not are_mostly_numbers or infer_task_type(numbers) != "regression":
        return
    cells = [str(row.get(column)) for row in others]
    if None not in [to_number(cell.replace(",", ".")) for cell in cells]:
        return  # They may be decimal commas.
    raise InputError(
        f"{others[0].where}: column {column!r} has mostly numbers, but "
        f"{quoted(others[0].get(column))} here, and {len(others)} such rows in "
        "total. Write numbers as 1399.5, without a comma, currency or unit, "
        "and remove rows without a number; or, if they are names of classes, "
        "use --task_type=classification."
    )


def _check_commas(labels: Sequence[Any], where: str) -> None:
    """Warns if labels may be lists; raises `InputError` for decimal commas."""
    texts = {label for label in labels if isinstance(label, str)}
    lists = sorted(label for label in texts if "," in label)
    decimals = [to_number(label.replace(",", ".")) for label in texts]
    if lists and None not in decimals:
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
    different integers, regression; anything else, classification.
    """
    is_list = any(isinstance(x, list) or numbers_in(x) for x in labels)
    if is_list or size_of(labels) > 2:  # "1,0" may be a decimal.
        return "multilabel"
    numbers = {to_number(label) for label in labels if label != ""}
    if not numbers or None in numbers:
        return "classification"
    max_classes = max(2, min(_MAX_INTEGER_CLASSES, len(labels) // 2))
    has_fractions = any(number % 1 for number in numbers if number)
    is_regression = has_fractions or len(numbers) > max_classes
    return "regression" if is_regression else "classification"
