"""Writes Excel, Parquet and Arrow files with the packages that read them."""

import pytest


def write(path, names, rows):
    """Writes a table in the format of the path's ending."""
    if path.suffix == ".xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in (names, *rows):
            book.active.append(row)
        book.save(path)
        return
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(rows, schema=[*names], orient="row")
    is_parquet = path.suffix == ".parquet"
    (frame.write_parquet if is_parquet else frame.write_ipc_stream)(path)
