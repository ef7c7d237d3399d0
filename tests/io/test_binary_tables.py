import datetime
import decimal
import os
import signal
import subprocess
import sys
import threading

import pytest
from support import binary_tables

from official_bert.errors import InputError
from official_bert.io import tables

DAY = datetime.datetime(2024, 1, 5)
SHOWN = [
    ("two\nlines", "two\nlines"),
    ("two_x000D_\nlines", "two\nlines"),
    ("two_x000D_words", "two words"),
    (7, "7"),
    (1.0, "1"),
    (0.1 + 0.2, "0.3"),
    (True, "TRUE"),
    (None, ""),
    (DAY, "2024-01-05"),
    (DAY.replace(hour=9), "2024-01-05 09:00:00"),
    ("=1+1", ""),  # Excel stores the values of formulas; openpyxl does not.
]


def test_cells_of_excel_are_read_as_excel_shows_them(tmp_path, caplog):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["text", "value", None])
    for value, _ in SHOWN:
        sheet.append(["a", value])
    sheet.cell(len(SHOWN) + 4, 1, "b")  # After two empty rows.
    sheet.cell(40, 9).font = openpyxl.styles.Font(bold=True)  # Empty cells.
    book.create_sheet("empty")
    book.create_sheet("more").append([None, "not read"])
    path = str(tmp_path / "a.xlsx")
    book.save(path)
    rows = list(tables.read(path, "xlsx"))
    assert [row.cells["value"] for row in rows] == [
        *(shown for _, shown in SHOWN),
        "",
    ]
    assert [row.line for row in rows[-2:]] == [len(SHOWN) + 1, len(SHOWN) + 4]
    assert rows[0].columns == ["text", "value"]
    message = caplog.messages[0]
    assert "a.xlsx: only the first sheet is read, not 'more'. Ex" in message


def test_single_column_of_excel_has_no_empty_rows(tmp_path):
    path = tmp_path / "a.xlsx"
    binary_tables.write(path, ["text"], [["a"], [None], ["b"]])
    rows = list(tables.read(str(path), "xlsx"))
    assert [(row.line, row.text("text")) for row in rows] == [
        (2, "a"),
        (4, "b"),
    ]


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_values_of_parquet_and_arrow_are_json(tmp_path, file_format):
    path = tmp_path / f"a.{file_format}"
    names = ("text", "label", "share", "tags", "day", "price", "raw")
    day, price = DAY.date(), decimal.Decimal("1.50")
    others = (day, price, "ä".encode())
    rows = [("ä", 1, 0.5, ["x"], *others), (None, 0, None, [], *others)]
    binary_tables.write(path, names, rows)
    first, second = tables.read(str(path), file_format, flags={"text": "--t"})
    expected = ("ä", 1, 0.5, ["x"], "2024-01-05", "1.50", "ä")
    assert first.cells == dict(zip(names, expected, strict=True))
    assert [second.line, second.cells["share"]] == [2, None]
    message = rf"a\.{file_format}:2: .*'text' must not be empty.*: None"
    with pytest.raises(InputError, match=message):
        second.text("text")
    with pytest.raises(InputError, match=r"'x'\. .* text, label, share, tags"):
        first.get("x")


def test_both_formats_of_arrow_are_read(tmp_path):
    polars = pytest.importorskip("polars")
    path = str(tmp_path / "a.arrow")
    table = polars.DataFrame({"text": ["a", "b"]})
    for write in (table.write_ipc, table.write_ipc_stream):
        write(path)
        assert [r.text("text") for r in tables.read(path, "arrow")] == [
            "a",
            "b",
        ]


@pytest.mark.parametrize("file_format", ["xlsx", "parquet", "arrow"])
def test_damaged_or_unsupported_binary_table_is_an_error(
    tmp_path, monkeypatch, file_format
):
    path = tmp_path / f"a.{file_format}"
    binary_tables.write(path, ("text", "label"), [("good", 1)] * 99)
    data = path.read_bytes()
    for damaged in (data[:-200], data[:500], b"text\na\n", b""):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.\w+: must be a table in the"):
            list(tables.read(str(path), file_format))
    package = "openpyxl" if file_format == "xlsx" else "polars"
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"a\..*needs the package {package}\. .*'\.\[tables\]'"
    with pytest.raises(InputError, match=message):
        list(tables.read(str(path), file_format))


def test_ctrl_c_interrupts_waiting_after_a_table_was_read(tmp_path):
    path = tmp_path / "a.parquet"
    binary_tables.write(path, ("text",), [("a",)])
    assert len(list(tables.read(str(path), "parquet"))) == 1
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    interrupts = [
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)),
        threading.Timer(5, child.kill),  # Ends a wait without interrupt.
    ]
    with child:
        for timer in interrupts:
            timer.start()
        with pytest.raises(KeyboardInterrupt):
            child.wait()
        assert child.poll() is None
        child.kill()
        interrupts[1].cancel()
