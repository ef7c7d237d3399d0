"""Tables in TSV, CSV and JSON Lines, read as rows of named cells.

Files are UTF-8. A byte-order mark, blank lines and rows of several empty cells
are ignored.
"""

import csv
import difflib
import io
import itertools
import json
import math
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.io import binary_tables, files, json_files, tsv
from official_bert.io.tsv import NumberedCells, log_once

# Endings of file names, and values of --task_name. Rows are lines of cells or,
# in `OBJECTS`, JSON objects.
OBJECTS = ("jsonl", "parquet", "arrow")
FORMATS = ("tsv", "csv", "xlsx", *OBJECTS)
# Lines of text, the cells of a column `text`: only for sentence embeddings.
LINES = "txt"

_DOUBLE_QUOTES = (
    'A cell that starts with a quote (") must end with one, and quotes inside '
    "it must be doubled."
)
_QUOTE_SEPARATORS = (
    "Cells that contain the separator need quotes. To choose the separator, "
    "write it into a line before the header, such as sep=;"
)
_NOT_EMPTY = "not be empty: fill it in, or remove the row"

csv.field_size_limit(2**31 - 1)  # Documents exceed the default.

# Currencies, percent signs and spaces in numbers.
_UNITS = re.compile(r"[$€£¥%\s]")

# The first line of a CSV file that names the separator, for Excel.
_SEPARATOR = re.compile('"?sep=([,;\t|])"?\n?$')

# Such as "['a', 'b']", which pandas writes for a list, or "{'a': 1}".
_PRINTED = re.compile(
    r"""\s*(\[\s*(["'].*["']\s*)?\]|\{.*:.*\})\s*""", re.DOTALL
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
        cells: {column: cell}. Cells are strings; in `OBJECTS`, any JSON value.
            In other formats, columns have the numbers "0", "1", ... in addition
            to the names of the header, which take precedence.
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
        hint = "Check the file."
        if flag:
            hint = f"Set {flag} to one of these."
        if flag and has_numbers:
            hint += (
                " If the file has no header, add --nohas_header and set "
                f"{flag} to the number of a column, from 0."
            )
        by_lower_case = {name.lower(): name for name in names}
        similar = difflib.get_close_matches(column.lower(), by_lower_case, n=1)
        if advice := _separator_advice(names):
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
        return UnknownValueError(
            f"{where}: must have a column {column!r}{shown}. Received: "
            f"{listed(names) or 'none'}. {hint}"
        )

    def listed_columns(self, names: str) -> tuple[str, ...]:
        """Returns the columns in a flag's value: one, or "a,b"."""
        if names in self.cells:
            return (names,)
        return tuple(name.strip() for name in names.split(","))

    def text(self, column: str) -> str:
        """Returns a cell that must be a string; it may be empty."""
        value = self.get(column)
        if not isinstance(value, str):
            raise self.error(column, "be a text", value)
        return value

    def name(self, column: str, advice: str = "") -> str:
        """Returns a cell that must be a word or a number, as a string.

        `advice` ends the messages for lists and empty cells.
        """
        return self.to_name(column, self.get(column), advice)

    def to_name(self, column: str, value: Any, advice: str = "") -> str:
        """Converts a cell, or an item of a list in a cell, like `name`."""
        if _has_several(value):
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
            if value.strip()[:1] == "[" and value.strip()[-1:] == "]":
                must = (
                    "have labels without brackets and quotes, such as a,b, or "
                    "a 0 or 1 for each label, such as [1, 0]"
                )
                raise self.error(column, must, value)
            value = [part for part in value.split(",") if part.strip()]
        must = 'be a list of names, such as ["a", "b"], or [] without any'
        if _is_empty(value):
            raise self.error(column, must, value, UnknownValueError)
        if not isinstance(value, list) or any(map(_has_several, value)):
            raise self.error(column, must, value)
        return tuple(self.to_name(column, part) for part in value)

    def number(self, column: str) -> float:
        """Returns a cell that must be a finite number."""
        value = self.get(column)
        number = to_number(value)
        if number is not None:
            return number
        if plain_number(value) is not None:
            must = (
                "be a number such as 1399.5, without a comma, currency or unit"
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


def format_of(path: str) -> str:
    """Returns one of `FORMATS`, from the name of a file, or ""."""
    ending = path.lower().removesuffix(".gz").rpartition(".")[2]
    return ending if ending in FORMATS else ""


def _is_empty(cell: Any) -> bool:
    is_nan = isinstance(cell, float) and math.isnan(cell)
    return cell is None or is_nan or not str(cell).strip()


def _has_several(cell: Any) -> bool:
    """Whether a cell is a list or an object, or shows one."""
    if isinstance(cell, str):
        return _PRINTED.fullmatch(cell) is not None
    return isinstance(cell, list | dict)


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
    if "," in text and "." in text:  # The first one separates thousands.
        text = text.replace(min(",.", key=text.index), "")
    return to_number(text.replace(",", "."))


def read(
    paths: str | Sequence[str],
    file_format: str,
    *,
    has_header: bool = True,
    flags: Mapping[str, str] = {},
) -> Iterator[Row]:
    """Yields the rows of a table, or of several ones with the same columns.

    For `flags` see `Row`.

    In `tsv`, tabs separate the cells, which may be quoted; see `io/tsv.py`. In
    `csv`, a cell in double quotes may contain commas, line breaks and doubled
    quotes; semicolons may separate the cells, see `_delimiter`. In `jsonl`,
    every line is a JSON object. For other formats see `binary_tables`. Raises
    `InputError` for other files.
    """
    paths = [paths] if isinstance(paths, str) else paths
    rows: Iterator[Row] = itertools.chain.from_iterable(
        _read(path, file_format) for path in paths
    )
    if file_format not in (*OBJECTS, LINES):
        rows = name_columns(rows) if has_header else _equally_wide(rows)
    row = None
    for row in rows:
        yield row._replace(flags=flags)
    if row is None:
        raise no_examples(", ".join(paths))


def _read(path: str, file_format: str) -> Iterator[Row]:
    """Yields the rows of a file; columns have numbers, except in JSON."""
    files.require(path, "The table")
    if file_format == "jsonl":
        return _read_objects(path)
    if file_format == LINES:
        lines = ((n, line.strip()) for n, line in files.numbered_lines(path))
        return (Row(path, n, {"text": s}, ["text"]) for n, s in lines if s)
    if file_format in OBJECTS:
        objects = binary_tables.read_objects(path, file_format)
        numbered_objects = enumerate(objects, start=1)
        return (Row(path, n, cells, [*cells]) for n, cells in numbered_objects)
    numbered, advice = _read_csv(path), _QUOTE_SEPARATORS
    if file_format == "xlsx":
        numbered = binary_tables.read_excel(path)
    elif file_format == "tsv":
        numbered, advice = tsv.read(path)
    return _number_cells(path, numbered, advice)


def _equally_wide(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields rows without a header; requires the same width in all files."""
    first = None
    for row in rows:
        first = first or row
        if row.columns != first.columns:
            raise _other_columns(row, [*first.cells.values()], first.path)
        yield row


def _other_columns(row: Row, names: Sequence[str], path: str) -> InputError:
    """Returns the error for the first row of a file with other columns."""
    return InputError(
        f"{row.where}: must have the same columns as {path}, here "
        f"{listed(names)}. Received: {listed(row.cells.values())}. Several "
        "files must have the same header, or none."
    )


def by_number(cells: Iterable[str]) -> dict[str, str]:
    """Returns {"0": the first cell, "1": the second, ...}."""
    return {str(number): cell for number, cell in enumerate(cells)}


def no_examples(path: str) -> InputError:
    """Returns the error for a file without examples."""
    return InputError(f"{path}: must contain examples. Received: none.")


def _read_csv(path: str) -> Iterator[NumberedCells]:
    all_lines = (line + "\n" for _, line in files.numbered_lines(path))
    lines, ahead = itertools.tee(all_lines)  # A pipe can be read only once.
    first_lines = _first_lines(ahead)
    del ahead  # Otherwise, all lines would stay in memory.
    delimiter = _delimiter(first_lines)
    skips_row = _SEPARATOR.match(first_lines[0]) is not None
    if delimiter != ",":
        message = f"{path}: columns are separated by {delimiter!r}"
        log_once(logging.INFO, message)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    line, advice = 1, ""  # `line` is the one on which a row begins.
    try:
        for cells in reader:
            # A line `""` is a row with one empty cell, not a blank line.
            is_blank = not cells or (len(cells) == 1 and cells[0].isspace())
            if not is_blank:
                if not skips_row:
                    yield line, cells
                skips_row = False
            if line == 1:
                advice = _separator_advice(cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}:{line}: must be CSV. Received: {error}. "
            + (advice or _DOUBLE_QUOTES)
        ) from error


def _first_lines(lines: Iterable[str]) -> list[str]:
    """Returns up to 200 lines that are not blank; [""] if there are none."""
    return [*itertools.islice(filter(str.strip, lines), 200)] or [""]


def _delimiter(first_lines: Sequence[str]) -> str:
    """Returns the separator of the cells.

    Excel may write it into the first line, as "sep=;". Otherwise, it is ",", or
    ";", which Excel writes in many countries. It is ";" if the first row has
    semicolons but no commas, or if the first 20 rows have equally many
    semicolons: texts and numbers may have commas. Characters in quoted cells do
    not count.
    """
    if named := _SEPARATOR.match(first_lines[0]):
        return named[1]
    commas, semicolons = (
        [len(cells) for cells in _first_rows(first_lines, delimiter)]
        for delimiter in ",;"
    )
    if semicolons[0] > 1 and (commas[0] <= 1 or len({*semicolons}) == 1):
        return ";"
    return ","


def _first_rows(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        return [*itertools.islice(reader, 20)] or [[]]
    except csv.Error:  # Raised again when the table is read.
        return [[]]


def csv_style(path: str) -> tuple[str, str]:
    """Returns a CSV's delimiter and byte-order mark, for similar output.

    The delimiter is "," or ";", the mark may be "". Spreadsheet programs in
    many countries need a semicolon and this mark.
    """
    first, *others = _first_lines(f"{s}\n" for s in files.read_lines(path))
    mark = "\ufeff" if first.startswith("\ufeff") else ""
    delimiter = _delimiter([first.removeprefix(mark), *others])
    return delimiter if delimiter == ";" else ",", mark


def _separator_advice(first_row: Sequence[str]) -> str:
    """Returns advice if the only cell has other separators, otherwise ""."""
    for separator in "|\t,":
        if len(first_row) == 1 and separator in first_row[0]:
            return (
                f"{separator!r} seems to separate the columns. Save the file "
                "with commas as .csv, or with tabs as .tsv."
            )
    return ""


def _number_cells(
    path: str, numbered: Iterable[NumberedCells], advice: str
) -> Iterator[Row]:
    """Yields rows with columns numbered from 0, and requires equal lengths."""
    width = first_empty = 0
    for line, cells in numbered:
        if len(cells) > 1 and not any(cells):
            first_empty = first_empty or line
            continue
        if first_empty:  # Not at the end, where spreadsheets write such rows.
            log_once(
                logging.WARNING,
                f"{path}:{first_empty}: the row is empty. Empty rows are "
                "ignored",
            )
        if not width:
            width, advice = len(cells), _separator_advice(cells) or advice
        if len(cells) != width:
            raise InputError(
                f"{path}:{line}: must have {width} columns, like the first "
                f"line. Received: {len(cells)}. {advice}"
            )
        by_column = by_number(cells)
        yield Row(path, line, by_column, [*by_column])


def name_columns(rows: Iterable[Row]) -> Iterator[Row]:
    """Yields rows; the first one of each file names the columns.

    Raises `InputError` if several files have different names of columns.
    """
    path = first_path = ""
    names: list[str] = []
    for row in rows:
        if row.path == path:
            by_name = dict(zip(names, row.cells.values(), strict=True))
            yield row._replace(cells={**row.cells, **by_name}, columns=names)
            continue
        path, others = row.path, names
        names = [cell.strip() for cell in row.cells.values()]
        if names.count("") > 1:  # Uses the names that pandas gives.
            names = [name or f"Unnamed: {i}" for i, name in enumerate(names)]
        _require_different(row.where, names)
        if first_path and names != others:
            raise _other_columns(row, others, first_path)
        first_path = first_path or path


def _require_different(where: str, names: Sequence[str]) -> None:
    for name in names:
        if name and names.count(name) > 1:
            raise InputError(
                f"{where}: columns must have different names. Received: "
                f"{name!r} twice. Rename one. If the file has no header, use "
                "--nohas_header and column numbers."
            )


def _read_objects(path: str) -> Iterator[Row]:
    for line, text in files.numbered_lines(path):
        if not text.strip():
            continue
        value = json_files.parse_line(text, f"{path}:{line}")
        if not isinstance(value, dict):
            raise InputError(
                f"{path}:{line}: must be a JSON object, such as "
                '{"text": "Good.", "label": "positive"}. Received: '
                f"{type(value).__name__}. {json_files.WRITE_LINES}"
            )
        yield Row(path, line, value, [*value])


def read_labels(path: str) -> tuple[str, ...]:
    """Reads a file of different labels, one per line."""
    lines: dict[str, int] = {}
    for line, text in files.numbered_lines(path):
        label = text.strip()
        if label in lines:
            raise InputError(
                f"{path}:{line}: labels must differ. Received: {label!r}, also "
                f"on line {lines[label]}. Remove one."
            )
        if label:
            lines[label] = line
    if not lines:
        raise InputError(f"{path}: must have one label per line. It is empty.")
    return tuple(lines)


def to_csv(rows: Iterable[Sequence[Any]], delimiter: str = ",") -> str:
    """Returns CSV text; cells are quoted where this is necessary."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return text.getvalue()


def to_tsv(rows: Iterable[Sequence[Any]]) -> str:
    """Returns TSV text; cells with tabs, line breaks or quotes are quoted."""
    return to_csv(rows, "\t")
