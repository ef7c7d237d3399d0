"""Tables that users bring: TSV, CSV and JSON lines, as rows of named cells.

Text is UTF-8; a byte-order mark is dropped, and blank lines are left out.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from official_bert import files, json_files
from official_bert.errors import InputError

Record = tuple[int, list[str]]


class Row(NamedTuple):
    """One row of a table, which complains of its cells by file and line.

    Attributes:
        path: The file.
        line: Where the row begins, from 1.
        cells: Texts; in JSON lines anything. Those of TSV and CSV are there by
            name, if there is a header, and by number, such as "0", as well,
            unless that is another one's name.
    """

    path: str
    line: int
    cells: Mapping[str, Any]

    @property
    def where(self) -> str:
        """What an error begins with."""
        return f"{self.path}:{self.line}"

    def get(self, column: str) -> Any:
        """Returns a cell, whatever it is.

        Raises:
            InputError: There is no such column.
        """
        if column not in self.cells:
            raise InputError(
                f"{self.where}: must have a column {column!r}. Received: "
                f"{', '.join(self.cells)}. Check the file; for data of your "
                "own, also --text_a_column and its like, --nohas_header, and "
                "for choices --context_column and its like."
            )
        return self.cells[column]

    def text(self, column: str) -> str:
        """Returns a cell that must be a text, perhaps an empty one."""
        value = self.get(column)
        if not isinstance(value, str):
            raise self.fault(column, "be a text", value)
        return value

    def name(self, column: str) -> str:
        """Returns a cell that must name something: a word, or a number."""
        return self.as_name(column, self.get(column))

    def as_name(self, column: str, value: Any) -> str:
        """Returns a cell, or a part of it, as a name."""
        if isinstance(value, str) and value.strip():
            return value.strip()
        is_whole = isinstance(value, bool | int)
        if is_whole or (isinstance(value, float) and math.isfinite(value)):
            return json.dumps(value)
        raise self.fault(column, "be a word or a number", value)

    def number(self, column: str) -> float:
        """Returns a cell that must be a number, and finite."""
        value = self.get(column)
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if isinstance(value, bool) or not math.isfinite(number):
            raise self.fault(column, "be a number", value)
        return number

    def fault(self, column: str, must: str, value: Any) -> InputError:
        """Returns an error to raise.

        Args:
            column: Where it is.
            must: What the cell must do, such as "be a text".
            value: What stands there.
        """
        return InputError(
            f"{self.where}: column {column!r} must {must}. Received: {value!r}."
        )


def read(path: str, kind: str, *, has_header: bool = True) -> Iterator[Row]:
    """Yields the rows of a table.

    Args:
        path: The file.
        kind: tsv: cells are between tabs, and quotes are ordinary characters.
            csv: cells are between commas; those in double quotes may contain
            commas, line ends, and quotes that are doubled. jsonl: every line is
            a JSON object.
        has_header: Whether the first line of TSV and CSV names the columns.

    Raises:
        InputError: The file is missing or empty, or not what it should be.
    """
    files.require(path, "The data")
    if kind == "jsonl":
        rows = _objects(path)
    else:
        records = _comma_separated(path) if kind == "csv" else _numbered(path)
        rows = _named(path, records, has_header)
    is_empty = True
    for row in rows:
        is_empty = False
        yield row
    if is_empty:
        raise InputError(
            f"{path}: must hold examples. Received: none. Check the file."
        )


def tab_separated(path: str) -> Iterator[list[str]]:
    """Yields the cells of every line, blank ones too, as in 2018."""
    for _, line in files.numbered_lines(path):
        yield line.split("\t")


def _numbered(path: str) -> Iterator[Record]:
    for line, cells in enumerate(tab_separated(path), start=1):
        if len(cells) > 1 or cells[0].strip():
            yield line, cells


def _comma_separated(path: str) -> Iterator[Record]:
    csv.field_size_limit(2**31 - 1)  # Documents are longer than the default.
    lines = (line + "\n" for _, line in files.numbered_lines(path))
    reader = csv.reader(lines, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"{path}:{line}: must be CSV, its cells plain or in double "
                f'quotes, quotes in those doubled: "". Received: {error}.'
            ) from error
        # A line of `""` is not blank, but has an empty cell.
        if cells and not (len(cells) == 1 and cells[0].isspace()):
            yield line, cells


def _named(
    path: str, records: Iterable[Record], has_header: bool
) -> Iterator[Row]:
    """Yields rows whose cells have the names of the first line."""
    names: list[str] | None = None
    width = 0
    for line, cells in records:
        if names is None:
            names, width = [], len(cells)
            if has_header:
                names = _header(f"{path}:{line}", cells)
                continue
        if len(cells) != width:
            raise InputError(
                f"{path}:{line}: must have {width} columns, like the first "
                f"line. Received: {len(cells)}. Texts may not contain tabs in "
                "TSV, and commas only inside quotes in CSV."
            )
        by_name = dict(zip(names, cells, strict=False))
        by_number = {str(number): cell for number, cell in enumerate(cells)}
        yield Row(path, line, {**by_number, **by_name})


def _header(where: str, cells: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    for name in filter(None, names):
        if names.count(name) > 1:
            raise InputError(
                f"{where}: columns must have different names. Received: "
                f"{name!r} twice. Rename one; or has the file no header? Then "
                "give --nohas_header, and columns by number."
            )
    return names


def _objects(path: str) -> Iterator[Row]:
    for line, text in files.numbered_lines(path):
        if not text.strip():
            continue
        found = json_files.parse_line(text, f"{path}:{line}")
        if not isinstance(found, dict):
            raise InputError(
                f"{path}:{line}: must be a JSON object, such as "
                '{"text": "Good.", "label": "positive"}. Received: '
                f"{type(found).__name__}."
            )
        yield Row(path, line, found)


def read_labels(path: str) -> tuple[str, ...]:
    """Reads a file with a label on each line.

    Raises:
        InputError: It has none, or one twice.
    """
    found: dict[str, int] = {}
    for line, text in files.numbered_lines(path):
        label = text.strip()
        if label in found:
            raise InputError(
                f"{path}:{line}: labels must differ. Received: {label!r}, as "
                f"on line {found[label]}. Remove one."
            )
        if label:
            found[label] = line
    if not found:
        raise InputError(
            f"{path}: must have a label on each line. Received: no label."
        )
    return tuple(found)


def write_scores(
    folder: str, split: str, answers: Iterable[Iterable[Any]]
) -> None:
    """Writes `scores_name`: a line of numbers for each answer."""
    lines = ("\t".join(map(str, scores)) + "\n" for scores in answers)
    files.write_text(os.path.join(folder, scores_name(split)), "".join(lines))


def scores_name(split: str) -> str:
    """Returns `test_results.tsv`, or `test_results_mismatched.tsv`."""
    return split.replace("test", "test_results", 1) + ".tsv"


def to_tsv(rows: Iterable[Sequence[Any]]) -> str:
    """Returns lines of cells; those with tabs, line ends or quotes are quoted.

    So do spreadsheets; `read` takes a quote of TSV for an ordinary character.
    """
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator="\n").writerows(rows)
    return text.getvalue()
