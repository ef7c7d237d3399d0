"""Tables in TSV, CSV and JSON Lines, read as rows of named cells.

Files are UTF-8. A byte-order mark, blank lines and rows of several empty cells
are ignored.
"""

import csv
import itertools
import math
import re
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from official_bert.errors import InputError, listed, log_once
from official_bert.io import binary_tables, files, json_files, tsv
from official_bert.io.rows import Row, separator_advice
from official_bert.io.tsv import NumberedCells

# Endings of file names, and values of --task_name. Rows are lines of cells or,
# in `OBJECTS`, JSON objects.
OBJECTS = ("jsonl", "parquet", "arrow")
FORMATS = ("tsv", "csv", "xlsx", *OBJECTS)
# Lines of text, the cells of a column `text`: for sentence embeddings and
# unlabeled texts.
LINES = "txt"

# Limits of what is read again to describe texts.
_NUM_FIRST, _MAX_FILES, _MAX_CHARACTERS = 2048, 32, 1000

# The lines that show how the cells of a CSV file are separated.
_NUM_SAMPLE = 200

# Lines of prose hardly ever begin like lines of HTML, XML or JSON.
_MAX_SHARE_MARKED = 0.01

_DOUBLE_QUOTES = (
    'A cell that starts with a quote (") must end with one, and quotes inside '
    "it must be doubled."
)
_QUOTE_SEPARATORS = (
    "Cells that contain the separator need quotes. To choose the separator, "
    "write it into a line before the header, such as sep=;"
)
csv.field_size_limit(2**31 - 1)  # Documents exceed the default.

# The first line of a CSV file that names the separator, for Excel.
_SEPARATOR = re.compile('"?sep=([,;\t|])"?\n?$')


def format_of(path: str) -> str:
    """Returns one of `FORMATS`, from the name of a file, or ""."""
    ending = path.lower().removesuffix(".gz").rpartition(".")[2]
    return ending if ending in FORMATS else ""


def is_lines(path: str) -> bool:
    """Whether a file has lines of text, by its name."""
    return path.lower().removesuffix(".gz").endswith(f".{LINES}")


def first_lines(paths: Sequence[str]) -> list[str]:
    """Returns the starts of a few lines of each text file, except of pipes.

    Raises `InputError` like `files.numbered_lines`.
    """
    number = math.ceil(_NUM_FIRST / len(paths))
    return [
        line[:_MAX_CHARACTERS]
        for path in filter(files.can_reread, paths[:_MAX_FILES])
        for _, line in itertools.islice(files.numbered_lines(path), number)
    ]


def warn_of_lines(paths: Sequence[str]) -> list[str]:
    """Warns if lines of text are read from files of another format.

    Returns the lines that were checked, those of `first_lines`.
    """
    for path in filter(format_of, paths):
        logging.warning(
            f"{path} is not read as a table: each line, including a header, is "
            "a text"
        )
    lines = first_lines(paths)
    num_marked = sum(line.lstrip().startswith(("<", "{")) for line in lines)
    if num_marked > _MAX_SHARE_MARKED * len(lines):
        logging.warning(
            f"{num_marked} of the first {len(lines):,} lines begin with < or "
            "{, like HTML, XML or JSON, which is read as text, too. Extract "
            "the text before"
        )
    return lines


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
        return _read_lines(path)
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


def _read_lines(path: str) -> Iterator[Row]:
    have_tabs, are_objects = set[bool](), set[bool]()
    for line, text in files.numbered_lines(path, " "):
        if text := text.strip():
            have_tabs.add("\t" in text)
            are_objects.add(json_files.looks_like_object(text))
            yield Row(path, line, {"text": text}, ["text"])
    start = f"{path}: each line is read as one text, but"
    if have_tabs == {True}:
        log_once(
            logging.WARNING,
            f"{start} has a tab. If the lines are rows of a table, keep only "
            "the texts or, for a file that may be a table, add a header and "
            "the ending .tsv",
        )
    if are_objects == {True}:
        log_once(
            logging.WARNING,
            f"{start} is a JSON object. Extract the texts or, for a file that "
            "may be a table, use the ending .jsonl",
        )


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
    # Within a cell, a carriage return separates words.
    lines = (line + "\n" for _, line in files.numbered_lines(path, " "))
    head = [*itertools.islice(lines, _NUM_SAMPLE)]  # Pipes are read once.
    sample = _sample(head)
    delimiter = _delimiter(sample)
    skips_row = _SEPARATOR.match(sample[0]) is not None
    if delimiter != ",":
        message = f"{path}: columns are separated by {delimiter!r}"
        log_once(logging.INFO, message)
    first_rows = _first_rows(sample, delimiter)
    spaces = {cell.startswith(" ") for row in first_rows for cell in row[1:]}
    # Written by hand, cells may be separated by ", ", also before a quote.
    reader = csv.reader(
        itertools.chain(head, lines),
        delimiter=delimiter,
        strict=True,
        skipinitialspace=spaces == {True},
    )
    line, advice = 1, ""  # `line` is the one on which a row begins.
    try:
        for cells in reader:
            # A line `""` is a row with one empty cell, not a blank line.
            is_blank = not cells or (len(cells) == 1 and cells[0].isspace())
            if not is_blank:
                if reader.line_num > line:
                    _require_one_row(cells, first_rows, delimiter)
                if not skips_row:
                    yield line, cells
                skips_row = False
            if line == 1:
                advice = separator_advice(cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(
            f"{path}:{line}: must be CSV. Received: {error}. "
            + (advice or _DOUBLE_QUOTES)
        ) from error


def _require_one_row(
    cells: Sequence[str], first_rows: Sequence[Sequence[str]], delimiter: str
) -> None:
    """Raises `csv.Error` if quotes seem to join several rows to this one.

    Then, each line has all columns, and a column has only values that other
    rows have, too, such as labels, and no empty cells.
    """
    lines = [s.split(delimiter) for s in delimiter.join(cells).split("\n")]
    if {*map(len, lines)} != {len(cells)}:
        return
    known = zip(*first_rows, cells, strict=False)
    columns = zip(zip(*lines, strict=False), known, strict=False)
    if any({*found} <= {*others} - {""} for found, others in columns):
        raise csv.Error(f"{len(lines)} lines between quotes, each like a row")


def _sample(lines: Iterable[str]) -> list[str]:
    """Returns the first lines that are not blank; [""] if there are none."""
    return [*itertools.islice(filter(str.strip, lines), _NUM_SAMPLE)] or [""]


def _delimiter(sample: Sequence[str]) -> str:
    """Returns the separator of the cells.

    Excel may write it into the first line, as "sep=;". Otherwise, it is ",", or
    ";", which Excel writes in many countries. It is ";" if the first row has
    semicolons but no commas, or if the first 20 rows have equally many
    semicolons: texts and numbers may have commas. Characters in quoted cells do
    not count.
    """
    if named := _SEPARATOR.match(sample[0]):
        return named[1]
    commas, semicolons = (
        [len(cells) for cells in _first_rows(sample, delimiter)]
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
    first, *others = _sample(f"{s}\n" for s in files.read_lines(path))
    mark = "\ufeff" if first.startswith("\ufeff") else ""
    delimiter = _delimiter([first.removeprefix(mark), *others])
    return delimiter if delimiter == ";" else ",", mark


def _number_cells(
    path: str, numbered: Iterable[NumberedCells], advice: str
) -> Iterator[Row]:
    """Yields rows with columns numbered from 0, and requires equal lengths."""
    width = first_empty = num_rows = 0
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
        num_rows += 1
        if num_rows == 1:
            width, advice = len(cells), separator_advice(cells) or advice
        if len(cells) != width:
            if width == 1:
                title = "If that line is a title or a comment, remove it. "
                advice = title + advice
            elif len(cells) == width + 1 and not cells[-1]:
                advice = f"Omit the separator at the end of the row. {advice}"
            elif num_rows == 2 and len(cells) == width + 1:
                advice = (
                    "If the first line lacks the name of the first column, "
                    f"such as numbers of rows, add a name. {advice}"
                )
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
    header: list[str] = []
    names: list[str] = []
    for row in rows:
        cells = [*row.cells.values()]
        if row.path == path:
            if cells == header and len(cells) > 1:
                raise InputError(
                    f"{row.where}: must be an example. Received: the first "
                    "line again. Remove this line. If the file has no header, "
                    "use --nohas_header and column numbers."
                )
            by_name = dict(zip(names, cells, strict=True))
            yield row._replace(cells={**row.cells, **by_name}, columns=names)
            continue
        path, others, header = row.path, names, cells
        names = [cell.strip() for cell in cells]
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
    # Before Python 3.13, only characters of the line end are quoted, but
    # readers take a carriage return for one, too.
    file: Any = types.SimpleNamespace(write=lambda line: line[:-2] + "\n")
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\r\n")
    return "".join(map(writer.writerow, rows))


def to_tsv(rows: Iterable[Sequence[Any]]) -> str:
    """Returns TSV text; cells with tabs, line breaks or quotes are quoted."""
    return to_csv(rows, "\t")
