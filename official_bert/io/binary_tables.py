"""Tables in Parquet, Arrow and Excel files, with the extra `tables`."""

import contextlib
import io
import json
import warnings
from collections.abc import Iterator
from typing import Any

from absl import logging

from official_bert import errors
from official_bert.errors import InputError, listed, log_once
from official_bert.io import files, frames, signals
from official_bert.io.tsv import NumberedCells


@contextlib.contextmanager
def _content(path: str, package: str) -> Iterator[io.BytesIO]:
    """Yields the content of a file, for a package that may be missing.

    Raises `InputError` if it is missing, or if it cannot read the file.
    """
    errors.require_package(package, f"{path}:")
    with files.open_binary(path) as file:
        content = io.BytesIO(file.read())
    try:
        with (
            signals.interruptible_waits(),  # polars changes the handler.
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # Of formats and styles of cells.
            yield content
    except Exception as error:  # Both packages raise many kinds.
        raise InputError(
            f"{path}: must be a table in the format of its ending. Received: "
            f"{errors.first_line(error)}. Save it again, or export it as CSV "
            "in UTF-8."
        ) from error


def read_objects(path: str, file_format: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a `parquet` or `arrow` file as JSON objects.

    Dates, decimal numbers and bytes are texts. Arrow has a format of files and
    one of streams, in which Hugging Face saves data sets.
    """
    with _content(path, "polars") as content:
        import polars

        read = polars.read_ipc_stream
        if file_format == "parquet":
            read = polars.read_parquet
        elif content.getbuffer()[:6] == b"ARROW1":
            read = polars.read_ipc
        table = read(content)
    for cells in table.iter_rows(named=True):
        yield json.loads(json.dumps(cells, default=frames.to_json))


def read_excel(path: str) -> Iterator[NumberedCells]:
    """Yields the rows of the first sheet, with the values of formulas."""
    with _content(path, "openpyxl") as content:
        import openpyxl

        book = openpyxl.load_workbook(content, read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # Some programs write wrong ones.
        sheet, *others = book.worksheets
        rows = [[*map(_shown, row)] for row in sheet.values]
        unread = [repr(s.title) for s in others if any(map(any, s.values))]
    if unread:
        message = f"{path}: only the first sheet is read, not {listed(unread)}"
        log_once(logging.WARNING, f"{message}. Export these as CSV")
    for row in rows:
        while row and not row[-1]:
            row.pop()
    width = max(map(len, rows), default=0)
    for line, row in enumerate(rows, start=1):
        if row or width > 1:
            yield line, row + [""] * (width - len(row))


def _shown(value: Any) -> str:
    """Returns a cell as Excel shows it: 1, not 1.0."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"{value:.15g}"
    text = str(value).removesuffix(" 00:00:00")
    # Excel writes a carriage return like this.
    return text.replace("_x000D_\n", "\n").replace("_x000D_", " ")
