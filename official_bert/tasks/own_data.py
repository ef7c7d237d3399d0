"""The user's own data: `train`, `dev` and `test` files in a directory.

Columns are given by name; in TSV and CSV also by number, from 0::

    text,topics
    "Taxes rise, rents too.","money,home"

    {"text": "Taxes rise, rents too.", "topics": ["money", "home"]}

    text,money,sport,home
    "Taxes rise, rents too.",1,0,1

    {"context": "It rains.", "question": "What does she do?",
     "choices": ["She takes an umbrella.", "She swims."], "label": 0}

    question,A,B,C,label
    What is 2 + 2?,3,4,5,B

One of `context` and `question` may be missing. `id` is optional, and so is
`label` in test data, which is evaluated if every row has a known label.
"""

import abc
import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io import files, tables
from official_bert.io.rows import Row, UnknownValueError, label_key
from official_bert.options import RunClassifier
from official_bert.tasks.data_set import DataSet
from official_bert.tasks.headers import warn_of_header


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


def _columns(options: RunClassifier) -> dict[str, str]:
    """Returns {flag: its value} of the flags that name columns."""
    names = (name for name in options.fields() if name.endswith("_column"))
    values = ((name, getattr(options, name)) for name in names)
    return {name: value for name, value in values if isinstance(value, str)}


def flags_of_columns(options: RunClassifier) -> dict[str, str]:
    """Returns {column: the flag that names it}."""
    flags: dict[str, str] = {}
    for name, value in _columns(options).items():
        parts = (part.strip() for part in value.split(","))
        flags |= dict.fromkeys([value, *parts], options.flag_name(name))
    return flags


def with_column_names(options: RunClassifier, row: Row) -> RunClassifier:
    """Replaces numbers of columns by their names in the header, if any.

    Other tables, such as those of `predict.py`, may have another order.
    """
    changed: dict[str, Any] = {}
    for name, value in _columns(options).items():
        columns = row.listed_columns(value)
        named = tuple(map(row.column_name, columns))
        joined = ",".join(named)
        # Names in a list cannot have commas.
        if named != columns and row.listed_columns(joined) == named:
            changed[name] = joined
            nouns = "is the column" if len(named) == 1 else "are the columns"
            logging.info(f"{options.flag(name)} {nouns} {joined!r}")
    return options.replace(**changed) if changed else options


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


def lines(numbers: Sequence[Any]) -> str:
    """Returns "line 2" or "lines 2, 3"."""
    return f"line{'s' if len(numbers) > 1 else ''} {listed(numbers)}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnFiles(DataSet):
    """The user's own files; see `RunClassifier.own_file`.

    `training` and `held_out` are the two parts of the examples in the training
    file, once it is read.
    """

    options: RunClassifier  # The files and the columns.
    training: Sequence[Any] = ()
    held_out: Sequence[Any] = ()

    def path(self, split: str) -> str:
        return self.options.own_file(split)

    def paths(self, split: str) -> list[str]:
        return self.options.own_files(split)

    def read_part(self, split: str) -> list[Any] | None:
        """Returns `training` or `held_out`; None if the split must be read."""
        if split == "train" and self.options.do_train:
            return [*self.training]
        is_held_out = split == "dev" and self.options.holds_out
        return [*self.held_out] if is_held_out else None


@dataclasses.dataclass(frozen=True)
class OwnData(OwnFiles):
    """Tables, whose columns the options name."""

    def rows(self, split: str) -> Iterator[Row]:
        rows = read_rows(self.options, split)
        return accepted_rows(rows, flags_of_columns(self.options))

    @property
    def input_ending(self) -> str:
        """The format of the training file."""
        return self.options.own_format("train")

    @functools.cached_property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of the label or, with one for each label, of all."""
        names = self.options.label_column
        if "," not in names:
            return (names,)
        first = next(self.rows(self.options.used_splits[0]))
        return first.listed_columns(names)

    def require_same_width(self) -> None:
        """Raises `InputError` if tables without a header have other columns.

        Test data may lack all labels. With a header, a missing column is an
        error when its cells are read.
        """
        options, expected = self.options, set[str]()
        if options.reads_header:
            return
        for split in options.used_splits:
            has_keys = options.own_format(split) in tables.OBJECTS
            exist = all(map(files.exists, self.paths(split)))
            # Only the texts of unlabeled data are read.
            if split == "unlabeled" or has_keys or not exist:
                continue
            rows = self.rows(split)
            if split != "train":
                rows = warn_of_header(rows, options.text_columns)
            columns = {*next(rows).columns}
            expected = expected or columns
            if columns ^ expected not in (set(), {*self.label_columns}):
                raise InputError(
                    f"{self.path(split)}: must have {len(expected)} columns, "
                    f"like the training file. Received: {len(columns)}."
                )

    def guid(self, row: Row, split: str) -> str:
        """Returns the cell of `--id_column`; by default, split and place."""
        column = self.options.id_column
        if column is not None and split != "unlabeled":
            return row.name(column)
        return f"{split}-{self.place(row, split)}"

    def place(self, row: Row, split: str) -> str:
        """Returns the line of a row; with several files, FILE:LINE."""
        return str(row.line) if row.path == self.path(split) else row.where

    def file_and_line(self, guid: str) -> tuple[str, str]:
        """Returns the file and the line in a `guid` without `--id_column`."""
        split, _, place = guid.partition("-")
        file, _, line = place.rpartition(":")
        return file or self.path(split), line

    def places(self, guids: Sequence[str], split: str) -> str:
        """Returns the ids or lines of examples, for a message."""
        if self.options.id_column is not None:
            return listed(guids)
        return lines([guid.removeprefix(f"{split}-") for guid in guids])

    def training_column(self, name: str | None) -> str:
        """Returns a column and its file, for a message."""
        return f"column {name!r} of {self.path('train')!r}"

    @abc.abstractmethod
    def label(self, row: Row) -> Any:
        """Returns the label of a row; raises `InputError` if it is unknown."""

    def label_if_known(self, row: Row, split: str) -> Any | None:
        """Returns the label of a row; in test data, None if it is unknown.

        Test data may lack the column of labels, or have values such as -1.
        Labels of the split `unlabeled` are not read.
        """
        if split == "unlabeled":
            return None
        try:
            return self.label(row)
        except UnknownValueError:
            num_present = sum(x in row.cells for x in self.label_columns)
            if split != "test" or 0 < num_present < len(self.label_columns):
                raise
            return None

    def check_test_labels(
        self, examples: list[Any], expected: str, labels: Sequence[str] = ()
    ) -> list[Any]:
        """Warns if some labels are unknown; raises `InputError` if all are.

        One unknown value in all rows, such as -1, means that there are no
        labels. Returns the examples; if none has a known label, without labels.
        `expected` describes the known labels, for the message; `labels` are
        their names, if they have some.
        """
        missing = [e.guid for e in examples if e.label is None]
        if len(missing) == len(examples):
            rows = [row.cells for row in self.rows("test")]
            cells = [
                row.get(name) for row in rows for name in self.label_columns
            ]
            unknown = {str(cell) for cell in cells if cell not in (None, "")}
            shown = (
                f"{self.path('test')}: column {self.options.label_column!r} "
                f"must have {expected}. Received: {listed(sorted(unknown))}."
            )
            if len(unknown) > 1:
                raise InputError(f"{shown} Correct or remove them.")
            if unknown:
                _report_only_value(unknown.pop(), labels, shown)
        elif missing:
            logging.warning(
                f"The test set is not evaluated: {len(missing)} of "
                f"{len(examples)} rows have no known label, the first is "
                f"{missing[0]}"
            )
        if any(e.label not in (None, ()) for e in examples):
            return examples
        return [example._replace(label=None) for example in examples]


def _report_only_value(value: str, labels: Iterable[str], shown: str) -> None:
    """Reports a value that all rows of a test set have in place of a label.

    `shown` is the start of the message. Raises `InputError` if the value is
    another spelling of one of the labels.
    """
    for label in labels:
        if label_key(label) == label_key(value):
            raise InputError(f"{shown} Write {label!r}, as in training.")
    # Data sets without labels have a number such as -1, or "?".
    is_name = any(map(str.isalpha, value))
    level = logging.WARNING if is_name else logging.INFO
    logging.log(level, f"{shown} The test set is not evaluated")
