"""Tables: what is between tabs, commas and braces, and on which line."""

import csv
import re

import pytest

from official_bert.errors import InputError
from official_bert.tasks import tables


def read(tmp_path, text, kind, **how):
    path = tmp_path / f"data.{kind}"
    path.write_bytes(text.encode())
    return list(tables.read(str(path), kind, **how))


def named(row):
    """Returns the cells that have a name."""
    return {
        name: cell for name, cell in row.cells.items() if not name.isdigit()
    }


def test_tsv_takes_quotes_as_they_are(tmp_path):
    text = '\ufefftext\tlabel\n"x\ty"z\r\n\n it\'s , \t\n'
    rows = read(tmp_path, text, "tsv")
    assert [named(row) for row in rows] == [
        {"text": '"x', "label": 'y"z'},
        {"text": " it's , ", "label": ""},
    ]
    assert [row.line for row in rows] == [2, 4]
    assert rows[0].cells["0"] == '"x'
    assert rows[0].where == f"{tmp_path / 'data.tsv'}:2"


def test_csv_is_what_python_writes(tmp_path):
    cells = [
        ["text", "label"],
        ['He said "no", twice.', "a"],
        ["two\nlines\n\nand a blank one", "b"],
        ["plain", ""],
        ["tab\there", " x "],
    ]
    path = tmp_path / "data.csv"
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(cells)
    rows = list(tables.read(str(path), "csv"))
    assert [[row.cells["text"], row.cells["1"]] for row in rows] == cells[1:]
    assert [row.line for row in rows] == [2, 3, 6 + 1, 8]


def test_csv_takes_whole_documents(tmp_path):
    text = "text\n" + "x" * 300_000 + "\n"
    [row] = read(tmp_path, text, "csv")
    assert len(row.cells["text"]) == 300_000


def test_an_empty_cell_in_quotes_is_a_row(tmp_path):
    """As what Python writes for one; without quotes the line is blank."""
    rows = read(tmp_path, 'text\n"good"\n""\n\n"bad"\n', "csv")
    assert [row.text("text") for row in rows] == ["good", "", "bad"]
    assert [row.line for row in rows] == [2, 3, 5]


def test_json_lines(tmp_path):
    text = '\ufeff{"text": "é", "label": [1, "b"]}\n \n{"other": null}\r\n'
    rows = read(tmp_path, text, "jsonl")
    assert [row.cells for row in rows] == [
        {"text": "é", "label": [1, "b"]},
        {"other": None},
    ]
    assert [row.line for row in rows] == [1, 3]


def test_without_a_header_columns_are_numbers(tmp_path):
    rows = read(tmp_path, "a\tb\nc\td\n", "tsv", has_header=False)
    assert [row.cells for row in rows] == [
        {"0": "a", "1": "b"},
        {"0": "c", "1": "d"},
    ]
    assert rows[0].line == 1


def test_a_name_goes_before_a_number(tmp_path):
    """Such as of pandas: numbers name columns, after one without a name."""
    [row] = read(tmp_path, ",0,1,label\n7,a,b,c\n", "csv")
    assert [row.text(name) for name in ("0", "1", "label")] == ["a", "b", "c"]
    assert [row.text(number) for number in "23"] == ["b", "c"]


@pytest.mark.parametrize(
    ("kind", "text", "line", "complaint"),
    [
        ("tsv", "a\tb\nx\n", 2, "must have 2 columns"),
        ("tsv", "a\tb\nx\ty\nx\ty\tz\n", 3, "Received: 3"),
        ("csv", "a,b\nx,y\nx, y, z\n", 3, "must have 2 columns"),
        ("csv", 'a,b\nx,y\n"x,y\nz\n', 3, "must be CSV"),
        ("csv", 'a,b\n"x"y,z\n', 2, "must be CSV"),
        ("csv", 'a,b\n"x\n\n",y\n"x" y,z\n', 5, "must be CSV"),
        ("tsv", "a\tb\ta\nx\ty\tz\n", 1, "'a' twice"),
        ("jsonl", '{"a": 1}\n{"a": }\n', 2, "must be a JSON value"),
        ("jsonl", '{"a": "\\ud83d"}\n', 1, "half a surrogate pair"),
        ("jsonl", '{"a": ' + 5000 * "1" + "}\n", 1, "digits"),
        ("jsonl", 200_000 * "[" + "\n", 1, "must be a JSON value.*recursion"),
        ("jsonl", '{"a": 1}\n["a"]\n', 2, "Received: list"),
        ("jsonl", "{}\n{}{}\n", 2, "character 3"),
    ],
)
def test_wrong_lines_are_named(tmp_path, kind, text, line, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        read(tmp_path, text, kind)
    path = tmp_path / f"data.{kind}"
    assert str(caught.value).startswith(f"{path}:{line}: ")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(("tsv", ""), ("tsv", "text\tlabel\n"), ("tsv", "\n\n")),
        *(("csv", ""), ("csv", "text,label\n\n"), ("jsonl", "\n")),
    ],
)
def test_empty_files_are_refused(tmp_path, kind, text):
    with pytest.raises(InputError, match="must hold examples"):
        read(tmp_path, text, kind)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(InputError, match=r"no\.csv"):
        list(tables.read(str(tmp_path / "no.csv"), "csv"))


def test_cells(tmp_path):
    text = (
        '{"a": "x ", "n": 3, "f": 0.5, "t": true, "e": " ", "l": [], "s": "7"}'
    )
    [row] = read(tmp_path, text, "jsonl")
    assert row.text("a") == "x "
    assert row.name("a") == "x"
    assert [row.name(column) for column in "nft"] == ["3", "0.5", "true"]
    assert [row.number(column) for column in "nfs"] == [3.0, 0.5, 7.0]
    for function, column, complaint in [
        (row.text, "n", "column 'n' must be a text. Received: 3."),
        (row.name, "e", "column 'e' must be a word or a number"),
        (row.name, "l", "column 'l' must be a word or a number"),
        (row.number, "a", "column 'a' must be a number. Received: 'x '."),
        (row.number, "t", "must be a number. Received: True."),
        (row.number, "l", "must be a number"),
        (row.get, "b", "must have a column 'b'. Received: a, n, f, t, e, l"),
    ]:
        with pytest.raises(InputError, match=re.escape(complaint)) as caught:
            function(column)
        assert str(caught.value).startswith(f"{tmp_path}/data.jsonl:1: ")


@pytest.mark.parametrize("value", ["NaN", "Infinity", '"nan"', "null", '""'])
def test_numbers_are_finite(tmp_path, value):
    [row] = read(tmp_path, f'{{"n": {value}}}', "jsonl")
    with pytest.raises(InputError, match="must be a number"):
        row.number("n")


def test_numbers_may_have_any_number_of_digits(tmp_path):
    [row] = read(tmp_path, '{"n": ' + 401 * "9" + "}", "jsonl")
    assert row.name("n") == 401 * "9"
    with pytest.raises(InputError, match="must be a number"):
        row.number("n")


@pytest.mark.parametrize("value", ["NaN", "-Infinity"])
def test_what_is_no_number_names_nothing(tmp_path, value):
    [row] = read(tmp_path, f'{{"n": {value}}}', "jsonl")
    with pytest.raises(InputError, match="must be a word or a number"):
        row.name("n")


def test_labels(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes("\ufeffgood\r\n\n bad \nso so\n".encode())
    assert tables.read_labels(str(path)) == ("good", "bad", "so so")
    path.write_text("good\nbad\ngood\n")
    with pytest.raises(InputError, match=r"labels.txt:3: .* also on line 1"):
        tables.read_labels(str(path))
    path.write_text("\n")
    with pytest.raises(InputError, match="label per line"):
        tables.read_labels(str(path))


def test_what_is_written_can_be_read(tmp_path):
    rows = [["id", "prediction"], ["1", "a b"], ["2\t3", 'two\n"lines"']]
    text = tables.to_tsv(rows)
    assert text.startswith("id\tprediction\n1\ta b\n")
    lines = csv.reader(text.splitlines(keepends=True), delimiter="\t")
    assert list(lines) == rows


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_lines_of_spaces_are_blank(tmp_path, kind):
    rows = read(tmp_path, "text\na\n  \n\nb\n", kind)
    assert [(row.line, row.text("text")) for row in rows] == [
        (2, "a"),
        (5, "b"),
    ]
