"""Rows of named cells, which `io/tables.py` reads, and their conversion."""

import difflib
import json
import math
import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.errors import InputError, listed, quoted

_NOT_EMPTY = "not be empty: fill it in, or remove the row"

# Currencies, percent signs, spaces and apostrophes in numbers.
_UNITS = re.compile(r"[$€£¥%\s'’]")
# Several separators of thousands, such as those of 1.234.567.
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(?:([.,])\d{3})(?:\1\d{3})+")

# How programs write lists, tuples, sets, objects and arrays, such as
# "['a', 'b']", "[a, b]", "[[0, 3, 'a']]", "('a',)", "{'a', 'b'}", "{'a': 1}" or
# "tensor([1, 0])".
_QUOTED, _UNQUOTED = r"""\s*["'].*["'],?\s*""", r"[^][{}]*,[^][{}]*"
_NESTED = r"\s*[\[({].*[\])}]\s*"
_PRINTED = re.compile(
    rf"\s*(\[({_QUOTED}|{_UNQUOTED}|{_NESTED}|\s*)\]|\({_QUOTED}\)|set\(\)"
    rf"|\{{({_QUOTED}|{_UNQUOTED}|.*:.*|\s*)\}}|(array|tensor)\(.*\))\s*",
    re.DOTALL,
)

_BITS = {"1": 1, "1.0": 1, "true": 1, "0": 0, "0.0": 0, "false": 0}


class UnknownValueError(InputError):
    """A cell is missing, is empty, or is none of the known values."""


class Row(NamedTuple):
    """One row of a table. Its methods raise errors that name file and line.

    Attributes:
        path: The file.
        line: The line on which the row begins, from 1; in binary files, the
            number of the row.
        cells: {column: cell}. Cells are strings; in formats with objects, such
            as JSON Lines, any JSON value. In other formats, columns have the
            numbers "0", "1", ... in addition to the names of the header, which
            take precedence.
        columns: The names of the columns; several unnamed ones are
            `Unnamed: N`. Without a header, their numbers.
        flags: {column: the flag that names it}, for messages.
    """

    path: str
    line: int
    cells: Mapping[str, Any]
    columns: Sequence[str]
    flags: Mapping[str, str] = {}

    @property
    def where(self) -> str:
        """`FILE:LINE`, the prefix of error messages."""
        return f"{self.path}:{self.line}"

    def get(self, column: str) -> Any:
        """Returns a cell; raises `InputError` if there is no such column."""
        if column not in self.cells:
            raise self._no_column(column)
        return self.cells[column]

    def _no_column(self, column: str) -> InputError:
        names, flag = self.columns, self.flags.get(column)
        has_numbers = "0" in self.cells  # Not in JSON Lines.
        hint = "If it has another name, rename it."
        if flag:
            hint = f"Set {flag} to one of these, or rename the column."
        if flag and has_numbers:
            hint += (
                " If the file has no header, add --nohas_header and set "
                f"{flag} to the number of a column, from 0."
            )
        by_lower_case = {name.lower(): name for name in names}
        similar = difflib.get_close_matches(column.lower(), by_lower_case, n=1)
        if advice := separator_advice(names):
            hint = advice
        elif similar:
            hint = f"Did you mean {by_lower_case[similar[0]]!r}? {hint}"
        elif column.isdecimal():
            hint = "Columns are counted from 0."
        elif "0" in names:
            hint = "Without a header, give the numbers of columns, from 0."
        # The line matters only in JSON Lines: each object has its own keys.
        where = self.path if has_numbers else self.where
        shown = f" ({flag})" if flag else ""
        # A name in another case is a mistake, not a table without the column.
        is_mistake = column.lower() in by_lower_case
        kind = InputError if is_mistake else UnknownValueError
        return kind(
            f"{where}: must have a column {column!r}{shown}. Received: "
            f"{listed(names) or 'none'}. {hint}"
        )

    def listed_columns(self, names: str) -> tuple[str, ...]:
        """Returns the columns in a flag's value: one, or "a,b"."""
        if names in self.cells:
            return (names,)
        return tuple(name.strip() for name in names.split(","))

    def column_name(self, column: str) -> str:
        """Returns the name of a column that may be given by number."""
        is_number = column in self.cells and column not in self.columns
        return (self.columns[int(column)] if is_number else "") or column

    def text(self, column: str) -> str:
        """Returns a cell that must be a string; it may be empty."""
        value = self.get(column)
        if not isinstance(value, str):
            must = _NOT_EMPTY if _is_empty(value) else "be a text"
            raise self.error(column, must, value)
        return value

    def name(self, column: str, advice: str = "") -> str:
        """Returns a cell that must be a word or a number, as a string.

        It may be the only item of a list. `advice` ends the messages for
        other lists and for empty cells.
        """
        return self.to_name(column, only_item(self.get(column)), advice)

    def to_name(self, column: str, value: Any, advice: str = "") -> str:
        """Converts a cell, or an item of a list in a cell, like `name`."""
        if has_several(value):
            must = f"be a single name, not a list or an object{advice}"
            raise self.error(column, must, value)
        if isinstance(value, str) and value.strip():
            if "\n" in value.strip():
                raise self.error(column, "be on one line", value)
            return value.strip()
        is_whole = isinstance(value, bool | int)
        if is_whole or (isinstance(value, float) and math.isfinite(value)):
            return json.dumps(value)
        if _is_empty(value):
            must = _NOT_EMPTY + advice
            raise self.error(column, must, value, UnknownValueError)
        raise self.error(column, "be a word or a number", value)

    def names_in(self, column: str) -> tuple[str, ...]:
        """Converts the items of a list, or of a text "a,b", like `name`."""
        value = self.get(column)
        if isinstance(value, str):
            is_list = value.strip()[:1] == "[" and value.strip()[-1:] == "]"
            if is_list or has_several(value):
                must = (
                    "have labels without brackets and quotes, such as a,b, or "
                    "a 0 or 1 for each label, such as [1, 0]"
                )
                raise self.error(column, must, value)
            value = [part for part in value.split(",") if part.strip()]
        must = 'be a list of names, such as ["a", "b"], or [] without any'
        if _is_empty(value):
            raise self.error(column, must, value, UnknownValueError)
        if not isinstance(value, list) or any(map(has_several, value)):
            must += ". For spans of the text, add --task_name=ner"
            raise self.error(column, must, value)
        return tuple(self.to_name(column, part) for part in value)

    def number(self, column: str) -> float:
        """Returns a cell, or the only item of a list: a finite number."""
        value = only_item(self.get(column))
        number = to_number(value)
        if number is not None:
            return number
        if plain_number(value) is not None:
            must = (
                "be a number such as 1399.5, without commas, separators of "
                "thousands, currency or unit"
            )
            raise self.error(column, must, value)
        must = _NOT_EMPTY if _is_empty(value) else "be a number"
        is_unknown = isinstance(value, str) or _is_empty(value)
        kind = UnknownValueError if is_unknown else InputError
        raise self.error(column, must, value, kind)

    def bit(self, column: str) -> int:
        """Returns 1 or 0: whether the row has the label of a column."""
        value = self.get(column)
        bit = to_bit(value)
        if bit is None:
            must = (
                "be 1 or 0, whether the text has this label: correct the cell, "
                "or remove the row. Names of labels need a single column"
            )
            raise self.error(column, must, value, UnknownValueError)
        return bit

    def choice(
        self, column: str, num_choices: int, names: Sequence[str] = ()
    ) -> int:
        """Returns the number, from 0, of the choice that a cell names.

        The cell must be one of `names`, this number, or a letter from A.
        """
        value, letters = self.get(column), string.ascii_uppercase[:num_choices]
        name, *known_names = (
            str(name).strip().removesuffix(".0") for name in (value, *names)
        )
        digits = [str(number) for number in range(num_choices)]
        for candidates in (known_names, digits, list(letters)):
            if name in candidates:
                return candidates.index(name)
        expected = (
            f"name a choice: 0 (the first) to {digits[-1]}, or A to "
            f"{letters[-1]}"
        )
        raise self.error(column, expected, value, UnknownValueError)

    def require_label(self, column: str, label: str, labels: Any) -> None:
        """Raises `InputError` unless a label is one of the known ones."""
        if label not in labels:
            must = f"be one of {listed(labels)}"
            forms = {unicodedata.normalize("NFC", name) for name in labels}
            if unicodedata.normalize("NFC", label) in forms:
                must += ", in the same Unicode normalization form (such as NFC)"
            raise self.error(column, must, label, UnknownValueError)

    def error(
        self,
        column: str,
        must: str,
        value: Any,
        kind: type[InputError] = InputError,
    ) -> InputError:
        """Returns the error "column must ...", for the caller to raise."""
        return kind(
            f"{self.where}: column {column!r} must {must}. Received: "
            f"{quoted(value)}."
        )


def _is_empty(cell: Any) -> bool:
    is_nan = isinstance(cell, float) and math.isnan(cell)
    return cell is None or is_nan or not str(cell).strip()


def has_several(cell: Any) -> bool:
    """Whether a cell is a list or an object, or shows one."""
    if isinstance(cell, str):
        return _PRINTED.fullmatch(cell) is not None
    return isinstance(cell, list | dict)


def label_cell(label: Any) -> Any:
    """Returns a label as a cell.

    Several labels become "a,b" or, if one of them has a comma, a JSON list.
    """
    if not isinstance(label, list | tuple):
        return label
    if any("," in name for name in label):
        return json.dumps(label, ensure_ascii=False)
    return ",".join(label)


def label_key(label: str) -> Any:
    """Returns a key that is the same for spellings of a label that look alike.

    They may differ in what is hard to see in a table, and in the form of a
    number or truth value.
    """
    characters = unicodedata.normalize("NFKC", label.casefold())
    characters = characters.replace("\ufe0f", "")  # Makes an emoji colored.
    visible = (c for c in characters if unicodedata.category(c) != "Cf")
    text = "".join(visible).strip("\"'")
    text = re.sub(r"(?<=[^\W_])[-_](?=[^\W_])", " ", text)
    plain = " ".join(text.split())
    for value in (to_bit(plain), to_number(plain)):
        if value is not None:
            return value
    return plain


def only_item(cell: Any) -> Any:
    """Returns the item of a list of one item, and other cells unchanged."""
    return cell[0] if isinstance(cell, list) and len(cell) == 1 else cell


def to_bit(cell: Any) -> int | None:
    """Returns 1 or 0 for such a number, for true or false; otherwise None."""
    return _BITS.get(str(cell).strip().lower())


def to_number(cell: Any) -> float | None:
    """Returns a cell that is a finite number as a float, otherwise None."""
    if "_" in str(cell):  # Python reads "1_000" as a number.
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return None
    is_number = math.isfinite(number) and not isinstance(cell, bool)
    return number if is_number else None


def plain_number(cell: Any) -> float | None:
    """Returns a number in another format, such as "1.399,50 €" or "12%"."""
    text = _UNITS.sub("", str(cell))
    if match := _THOUSANDS.fullmatch(text):
        text = text.replace(match[1], "")
    if "," in text and "." in text:  # The first one separates thousands.
        text = text.replace(min(",.", key=text.index), "")
    return to_number(text.replace(",", "."))


def separator_advice(first_row: Sequence[str]) -> str:
    """Returns advice if the only cell has other separators, otherwise ""."""
    for separator in "|\t,":
        if len(first_row) == 1 and separator in first_row[0]:
            return (
                f"{separator!r} seems to separate the columns. Save the file "
                "with commas as .csv, or with tabs as .tsv."
            )
    return ""
