"""Tables: TSV, CSV and JSON Lines become rows; errors name file and line."""

import csv

import pytest

from official_bert.errors import InputError
from official_bert.tasks import tables


def read(tmp_path, text, file_format, **options):
    path = tmp_path / f"data.{file_format}"
    path.unlink(missing_ok=True)
    if text is not None:
        path.write_bytes(text.encode())
    return list(tables.read(str(path), file_format, **options))


def test_tsv_is_not_quoted_and_blank_lines_are_skipped(tmp_path):
    text = '\ufefftext\tlabel\n"x\ty"z\r\n\n it\'s , \t\n'
    first, second = read(tmp_path, text, "tsv")
    cells = {"text": '"x', "label": 'y"z'}
    assert first.cells == {**cells, "0": '"x', "1": 'y"z'}
    assert [second.text("text"), second.text("label")] == [" it's , ", ""]
    assert (first.line, second.line) == (2, 4)
    assert first.where == f"{tmp_path / 'data.tsv'}:2"


def test_csv_reads_what_python_writes(tmp_path):
    cells = [
        ["text", "label"],
        ['He said "no", twice.', "a"],
        ["two\nlines\n\nand a blank one", "b"],
        ["plain", ""],
        ["tab\there", " x "],
        ["x" * 300_000, "long"],
    ]
    path = tmp_path / "data.csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(cells)
    rows = list(tables.read(str(path), "csv"))
    assert [[row.cells["text"], row.cells["1"]] for row in rows] == cells[1:]
    assert [row.line for row in rows] == [2, 3, 7, 8, 9]


@pytest.mark.parametrize(
    ("file_format", "text", "expected"),
    [
        ("csv", 'text\n""\n\n"b"\n', [(2, ""), (4, "b")]),
        ("csv", "text\na\n  \n\nb\n", [(2, "a"), (5, "b")]),
        ("tsv", "text\na\n  \n\nb\n", [(2, "a"), (5, "b")]),
    ],
)
def test_a_quoted_empty_cell_is_a_row_and_a_line_of_spaces_is_not(
    tmp_path, file_format, text, expected
):
    rows = read(tmp_path, text, file_format)
    assert [(row.line, row.text("text")) for row in rows] == expected


def test_json_lines_keep_their_types(tmp_path):
    text = '\ufeff{"text": "é", "label": [1, "b"]}\n \n{"other": null}\r\n'
    rows = read(tmp_path, text, "jsonl")
    assert [(row.line, row.cells) for row in rows] == [
        (1, {"text": "é", "label": [1, "b"]}),
        (3, {"other": None}),
    ]


def test_columns_have_numbers_unless_the_header_uses_them_as_names(tmp_path):
    rows = read(tmp_path, "a\tb\nc\td\n", "tsv", has_header=False)
    assert [(row.line, row.cells) for row in rows] == [
        (1, {"0": "a", "1": "b"}),
        (2, {"0": "c", "1": "d"}),
    ]
    # As written by pandas: an unnamed index, then numbered columns.
    [row] = read(tmp_path, ",0,1,label\n7,a,b,c\n", "csv")
    assert [row.text(name) for name in ("0", "1", "label")] == ["a", "b", "c"]
    assert [row.text(number) for number in "23"] == ["b", "c"]


@pytest.mark.parametrize(
    ("file_format", "text", "line", "received"),
    [
        ("tsv", "a\tb\nx\n", 2, "1"),
        ("tsv", "a\tb\nx\ty\nx\ty\tz\n", 3, "3"),
        ("csv", "a,b\nx,y\nx, y, z\n", 3, "3"),
        ("csv", 'a,b\nx,y\n"x,y\nz\n', 3, "unexpected end"),
        ("csv", 'a,b\n"x"y,z\n', 2, "',' expected"),
        ("csv", 'a,b\n"x\n\n",y\n"x" y,z\n', 5, "',' expected"),
        ("tsv", "a\tb\ta\nx\ty\tz\n", 1, "'a' twice"),
        ("jsonl", '{"a": 1}\n{"a": }\n', 2, "character 7"),
        ("jsonl", '{"a": "\\ud83d"}\n', 1, "surrogate"),
        ("jsonl", '{"a": ' + 5000 * "1" + "}\n", 1, "digits"),
        ("jsonl", 200_000 * "[" + "\n", 1, "recursion"),
        ("jsonl", '{"a": 1}\n["a"]\n', 2, "list"),
        ("jsonl", "{}\n{}{}\n", 2, "character 3"),
    ],
)
def test_malformed_lines_are_reported_with_file_and_line(
    tmp_path, file_format, text, line, received
):
    message = rf"data\.{file_format}:{line}: (.|\n)*{received}"
    with pytest.raises(InputError, match=message):
        read(tmp_path, text, file_format)


@pytest.mark.parametrize(
    ("file_format", "texts"),
    [
        ("tsv", ["", "text\tlabel\n", "\n\n", None]),
        ("csv", ["", "text,label\n\n", None]),
        ("jsonl", ["\n", None]),
    ],
)
def test_files_without_rows_are_an_error(tmp_path, file_format, texts):
    for text in texts:
        with pytest.raises(InputError, match=rf"data\.{file_format}"):
            read(tmp_path, text, file_format)


JSON_CELLS = (
    '{"a": "x ", "n": 3, "f": 0.5, "t": true, "e": " ", "l": [], "s": "7", '
    f'"big": {401 * "9"}, "nan": NaN, "inf": -Infinity, "null": null}}'
)


def test_cells_are_converted(tmp_path):
    [row] = read(tmp_path, JSON_CELLS, "jsonl")
    assert row.text("a") == "x "
    names = [row.name(column) for column in ("a", "n", "f", "t", "big")]
    assert names == ["x", "3", "0.5", "true", 401 * "9"]
    assert [row.number(column) for column in "nfs"] == [3.0, 0.5, 7.0]


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ("text", ["n", "l", "null"]),
        ("name", ["e", "l", "nan", "inf", "null"]),
        ("number", ["a", "e", "t", "l", "nan", "inf", "null", "big"]),
        ("get", ["b"]),
    ],
)
def test_cells_of_the_wrong_type_are_reported(tmp_path, method, columns):
    [row] = read(tmp_path, JSON_CELLS, "jsonl")
    for column in columns:
        with pytest.raises(InputError, match=rf"jsonl:1: .*column '{column}'"):
            getattr(row, method)(column)


def test_label_files_have_one_label_per_line(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufeffgood\r\n\n bad \nso so\n".encode())
    assert tables.read_labels(str(path)) == ("good", "bad", "so so")
    for text, message in [
        ("good\nbad\ngood\n", "labels.txt:3: .*'good'.* line 1"),
        ("\n", "labels.txt: "),
    ]:
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            tables.read_labels(str(path))


def test_written_tsv_is_read_by_python(tmp_path):
    rows = [["id", "prediction"], ["1", "a b"], ["2\t3", 'two\n"lines"']]
    text = tables.to_tsv(rows)
    assert text.startswith("id\tprediction\n1\ta b\n")
    lines = csv.reader(text.splitlines(keepends=True), delimiter="\t")
    assert list(lines) == rows
