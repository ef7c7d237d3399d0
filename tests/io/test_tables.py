import csv
import json
import logging

import pytest

from official_bert.errors import InputError
from official_bert.io import tables
from official_bert.io.rows import plain_number


def read(tmp_path, text, file_format, **options):
    path = tmp_path / f"data.{file_format}"
    path.write_bytes(text.encode())
    return list(tables.read(str(path), file_format, **options))


def numbered(**cells):
    return {str(n): cell for n, cell in enumerate(cells.values())} | cells


TWO_ROWS = [(2, numbered(a="1")), (5, numbered(a="2"))]
UNNAMED = {"Unnamed: 0": "a", "Unnamed: 1": "b", "text": "c"}


@pytest.mark.parametrize(
    ("file_format", "text", "expected"),
    [
        (
            "tsv",
            '\ufefftext\tlabel\n"x\ty"z\r\n\n it\'s , \t\n',
            [
                (2, numbered(text='"x', label='y"z')),
                (4, numbered(text=" it's , ", label="")),
            ],
        ),
        ("tsv", "a\n1\n  \n\n2\n", TWO_ROWS),
        ("csv", "a\n1\n  \n\n2\n", TWO_ROWS),
        # A carriage return within a text separates words.
        (
            "csv",
            'a\none\rtwo\r\n"three\rfour"\n',
            [(2, numbered(a="one two")), (3, numbered(a="three four"))],
        ),
        # A quoted empty cell is a row.
        ("csv", 'a\n""\n\n"b"\n', [(2, numbered(a="")), (4, numbered(a="b"))]),
        # As written by pandas: an unnamed index, then numbered columns.
        (
            "csv",
            ",0,1,y\n7,a,b,c\n",
            [(2, {"": "7", "0": "a", "1": "b", "2": "b", "3": "c", "y": "c"})],
        ),
        ("csv", ",,text\na,b,c\n", [(2, numbered(**UNNAMED))]),
        (
            "jsonl",
            '\ufeff{"text": "é", "label": [1, "b"]}\n \n{"other": null}\r\n',
            [(1, {"text": "é", "label": [1, "b"]}), (3, {"other": None})],
        ),
    ],
)
def test_rows_have_their_line_and_cells_by_name_and_number(
    tmp_path, file_format, text, expected
):
    rows = read(tmp_path, text, file_format)
    assert [(row.line, row.cells) for row in rows] == expected


@pytest.mark.parametrize("first", ["7\ta", "a"])
def test_table_that_is_read_as_lines_is_a_warning(tmp_path, caplog, first):
    rows = read(tmp_path, f"{first}\n\n8\tb\n", tables.LINES)
    assert [row.text("text") for row in rows] == [first, "8\tb"]
    is_warned = "is read as one text, but has a tab" in caplog.text
    assert is_warned == ("\t" in first)
    # --corpus_file does not take the other advice, a .tsv file.
    assert is_warned == ("keep only the texts" in caplog.text)


@pytest.mark.parametrize("first", ['{"text": "a"}', "a"])
def test_objects_that_are_read_as_lines_are_a_warning(tmp_path, caplog, first):
    rows = read(tmp_path, f'{first}\n\n{{"text": "b"}}\n', tables.LINES)
    assert [row.text("text") for row in rows] == [first, '{"text": "b"}']
    is_warned = "is read as one text, but is a JSON object" in caplog.text
    assert is_warned == (first != "a")


CELLS = [
    ["text", "label"],
    ['He said "no", twice; yes.', "a"],
    ["two\nlines\n\nand a\tblank one", "b"],
    ["plain, text", ""],
    ["tab\there", " x "],
    ["one\rtwo", "1"],
    ["", "2.5"],
    ["x" * 300_000, "long"],
]


@pytest.mark.parametrize(
    "quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("file_format", "delimiter"), [("csv", ","), ("csv", ";"), ("tsv", "\t")]
)
def test_table_that_python_writes_is_read(
    tmp_path, file_format, delimiter, mark, line_end, quoting
):
    """pandas writes with the csv module of Python."""
    path = tmp_path / f"data.{file_format}"
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(mark)
        dialect = {"delimiter": delimiter, "lineterminator": line_end}
        csv.writer(file, quoting=quoting, **dialect).writerows(CELLS)
    rows = list(tables.read(str(path), file_format))
    found = [[row.cells["text"], row.cells["1"]] for row in rows]
    found[4][0] = found[4][0].replace(" ", "\r")  # CSV has a space instead.
    assert found == CELLS[1:]
    assert [row.line for row in rows] == [2, 3, 7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # Excel also quotes cells with commas.
        (['"a, b"', "c"], ["a, b", "c"]),
        (['"a, b"', "c, d"], None),
        (['"Great film," he said', '"Great film"', '5" pipe'], None),
        (['"Great film"', "a quotation"], None),
        (['"said ""a"""', '5" pipe'], None),
        (['"a', 'b"'], None),  # As many columns in each line.
    ],
)
def test_quotes_in_tsv_are_text_if_mixed(tmp_path, caplog, texts, expected):
    lines = "".join(f'{text}\t5"\n' for text in texts)
    rows = read(tmp_path, f"text\tsize\n{lines}", "tsv")
    assert [row.cells["text"] for row in rows] == (expected or texts)
    assert {row.cells["size"] for row in rows} == {'5"'}
    is_mixed = '5" pipe' in texts and '"said ""a"""' in texts
    assert ("tsv:3: column 0 (from 0) is not quoted" in caplog.text) == is_mixed


NEGATIVE = "text,label\nodd,\nso bad,neg\n"
JOINED = f'{NEGATIVE}"So good,pos\nnot good,neg\nawful",neg\nfine,pos\n'


@pytest.mark.parametrize(
    ("file_format", "text", "message"),
    [
        ("tsv", "text\tlabel\ngood\n film\t1\n", "2: .* 1. A text with a tab"),
        ("tsv", 'a\tb\n5" x\t1\ngood\n film\t0\n', "3: .* on line 2 do not"),
        # R writes this with write.table.
        ("csv", '"a","b"\n"1","a","x"\n"2","b","y"\n', "2: .* add a name"),
        ("csv", "text,label\na,x\nb,y,\n", "3: .* separator at the end of th"),
        # Another separator.
        ("csv", "text|label\ngood|1\nbad, really|0\n", "3: .* tabs as .tsv"),
        ("csv", 'text|label\n"a ""fine"" x"|1\n', "2: .* separate the columns"),
        ("csv", "text\tlabel\nbad, really\t0\n", "2: .* separate the columns"),
        ("csv", JOINED, "4: .* 3 lines between quo"),
        # Joined files.
        ("csv", "a,b\na,1\na,b\n", "3: .* the first line again"),
        ("tsv", "a\tb\na\t1\n\ufeffa\tb\nb\t0\n", "3: .* the first line again"),
    ],
)
def test_malformed_table_is_an_error_with_its_cause(
    tmp_path, file_format, text, message
):
    with pytest.raises(InputError, match=f":{message}"):
        read(tmp_path, text, file_format)


@pytest.mark.parametrize(
    ("first", "second", "has_header", "received"),
    [
        ("b,a\n1,2\n", "b,a\n3,4\n", True, None),
        ("b,a\n1,2\n", "b;a\n3;4\n", True, None),
        ("1,2\n", "3,4\n", False, None),
        ("b,a\n1,2\n", "a,b\n3,4\n", True, "a, b"),
        ("b,a\n1,2\n", "3,4\n", True, "3, 4"),
        ("1,2\n", "3\n", False, "3"),
    ],
)
def test_several_tables_must_have_the_same_columns(
    tmp_path, first, second, has_header, received
):
    paths = [str(tmp_path / name) for name in ("y.csv", "x.csv")]
    for path, text in zip(paths, (first, second), strict=True):
        with open(path, "w") as file:
            file.write(text)
    if received is None:
        rows = [*tables.read(paths, "csv", has_header=has_header)]
        assert [[row.cells["0"], row.path] for row in rows] == [
            *(["1", paths[0]], ["3", paths[1]])
        ]
        assert [row.line for row in rows] == [1 + has_header] * 2
        return
    message = rf"x\.csv:1: must .* as .*y\.csv, here .*: {received}\."
    with pytest.raises(InputError, match=message):
        list(tables.read(paths, "csv", has_header=has_header))


def test_first_line_may_occur_again_without_a_header(tmp_path):
    rows = read(tmp_path, "a,b\n1,2\na,b\n", "csv", has_header=False)
    assert [row.text("0") for row in rows] == ["a", "1", "a"]


@pytest.mark.parametrize(
    "lines",
    [
        '"So good;pos\nawful",neg',
        '"Hi John,\nthank you",pos',
        '"Hi John,\nthank you",',
        '"Ann, hi,\nthank you",pos',
    ],
)
def test_text_in_quotes_may_have_lines_with_separators(tmp_path, lines):
    text = f"{NEGATIVE}{lines}\nfine,pos\n"
    assert len(read(tmp_path, text, "csv")) == 4


@pytest.mark.parametrize("text", ['"a, ""b"""', "a"])
def test_space_may_follow_the_separators(tmp_path, text):
    rows = read(tmp_path, f"id, text, label\n1, {text}, x\n2, c, y\n", "csv")
    expected = 'a, "b"' if '"' in text else "a"
    assert [row.text("text") for row in rows] == [expected, "c"]
    # Other spaces are part of the cells.
    rows = read(tmp_path, "text, label\n b,x\n", "csv")
    assert rows[0].text("text") == " b"


JSON_CELLS = (
    '{"one": [" y"], "ones": [2.5], '
    '"a": "x ", "n": 3, "f": 0.5, "t": true, "e": " ", "l": [], "s": "7", '
    f'"two": "a\\nb", "big": {401 * "9"}, '
    '"nan": NaN, "inf": -Infinity, "null": null}'
)


def test_cells_are_converted(tmp_path):
    [row] = read(tmp_path, JSON_CELLS, "jsonl")
    assert row.text("a") == "x "
    names = [row.name(column) for column in ("a", "n", "f", "t", "big")]
    assert names == ["x", "3", "0.5", "true", 401 * "9"]
    assert [row.number(column) for column in "nfs"] == [3.0, 0.5, 7.0]
    assert (row.name("one"), row.number("ones")) == ("y", 2.5)


@pytest.mark.parametrize(
    ("method", "columns"),
    [
        ("text", ["n", "l", "null"]),
        ("name", ["e", "two", "l", "nan", "inf", "null"]),
        ("number", ["a", "e", "t", "l", "nan", "inf", "null", "big"]),
        ("get", ["b"]),
    ],
)
def test_cells_of_the_wrong_type_are_reported(tmp_path, method, columns):
    [row] = read(tmp_path, JSON_CELLS, "jsonl")
    for column in columns:
        with pytest.raises(InputError, match=rf"jsonl:1: .*column '{column}'"):
            getattr(row, method)(column)
    with pytest.raises(InputError, match="'e' must not be empty: fill it in"):
        row.name("e")


@pytest.mark.parametrize(
    "cell",
    [
        *("['a', 'b']", "['a' 'b']", "[]", "[a, b]", '["a"]', "[[0, 3, 'a']]"),
        *("{'a', 'b'}", "{a,b}", "{}", "set()", "{'a': 1}"),
        *("('a', 'b')", "('a',)"),
    ],
)
def test_printed_lists_are_not_names(tmp_path, cell):
    [row] = read(tmp_path, json.dumps({"a": cell}), "jsonl")
    for method in (row.name, row.names_in):
        with pytest.raises(InputError, match="jsonl:1: column 'a' must "):
            method("a")


@pytest.mark.parametrize("cell", ["[UNK]", "(13.0, 26.0]", "(a, b)", "don't"])
def test_brackets_may_be_in_names(tmp_path, cell):
    [row] = read(tmp_path, json.dumps({"a": cell}), "jsonl")
    assert row.name("a") == cell


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


def test_written_tsv_is_read_by_python():
    rows = [
        ["id", "prediction"],
        ["1", "a b"],
        ["2\t3", 'two\n"lines"'],
        ["a\rb", "c"],
    ]
    text = tables.to_tsv(rows)
    assert text.startswith("id\tprediction\n1\ta b\n")
    lines = csv.reader(text.splitlines(keepends=True), delimiter="\t")
    assert list(lines) == rows


LONG = f"{','.join(map('x{}'.format, range(30)))}\na{',' * 29}\n"


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("Label,text\n1,a\n", "label", r"'label' \(--label_column\)\. Rec"),
        ("Label,text\n1,a\n", "label", "Label, text. Did you mean 'Label'?"),
        ("Label,text\n1,a\n", "2", "'2'.*Columns are counted from 0"),
        ("text|label\na|1\n", "label", "'|' seems to separate .* commas"),
        (LONG, "label", r"x9, \.\.\. and 20 more\. Set --label_column to one"),
    ],
)
def test_missing_column_is_named_with_its_flag_and_a_near_match(
    tmp_path, text, column, message
):
    flags = {"label": "--label_column"}
    [row] = read(tmp_path, text, "csv", flags=flags)
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        row.get(column)


def test_semicolons_may_separate_columns_as_in_spreadsheets(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="absl")
    text = '\n"text";label\n"good; ""bad""";1\na, b;0\n;\n'
    rows = read(tmp_path, text, "csv")
    found = [(row.text("text"), row.text("label")) for row in rows]
    assert found == [('good; "bad"', "1"), ("a, b", "0")]
    assert "separated by ';'" in caplog.text
    for separator in ";,|":  # As Excel may write it.
        text = "sep=/\ntext/label\na/1\n".replace("/", separator)
        for start, line in (("", 3), ("\n", 4)):
            [row] = read(tmp_path, start + text, "csv")
            found = (row.line, row.text("text"), row.text("label"))
            assert found == (line, "a", "1")


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ('"text; long"\na\n', ["a"]),
        ("text,label;stars\na,b\n", ["a", "b"]),
        ("text,label\na;b,c;d\n", ["a;b", "c;d"]),
        # The header and the numbers have commas.
        ("text, free;price\na, b;1,50\n", ["a, b", "1,50"]),
        ('text, free;price\n"a;\n\nb";1,50\n', ["a;\n\nb", "1,50"]),
    ],
)
def test_separator_divides_all_first_rows_alike(tmp_path, text, cells):
    [row] = read(tmp_path, text, "csv")
    numbers = [str(number) for number in range(len(row.columns))]
    assert [row.cells[number] for number in numbers] == cells
    style = tables.csv_style(str(next(tmp_path.iterdir())))
    assert style == (";" if "price" in text else ",", "")


def test_empty_row_between_others_is_ignored_with_a_warning(tmp_path, caplog):
    read(tmp_path, "text,label\na,1\n,\n", "csv")
    assert not caplog.text
    rows = read(tmp_path, "text,label\na,1\n,\nb,0\n,\nc,1\n,\n", "csv")
    assert [row.line for row in rows] == [2, 4, 6]
    assert caplog.text.count("Empty rows are ignored") == 1
    assert ":3: the row is empty" in caplog.text


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("1.399,50 €", 1399.5),
        ("$1,399.50", 1399.5),
        ("1.234.567", 1234567.0),
        ("-1,234,567.5", -1234567.5),
        ("1'234'567", 1234567.0),
        ("1\u202f234,5", 1234.5),
        ("1.2.3", None),
        ("0,5", 0.5),
        ("12 %", 12.0),
        (7, 7.0),
        ("a", None),
        (None, None),
    ],
)
def test_numbers_of_other_formats_are_recognized(cell, number):
    assert plain_number(cell) == number


def test_long_value_is_cut_in_a_message(tmp_path):
    [row] = read(tmp_path, f"label\n{'x' * 30000}\n", "csv")
    labels = list(map(str, range(9999)))
    with pytest.raises(InputError) as caught:
        row.require_label("label", row.name("label"), labels)
    assert len(str(caught.value)) < 500
    assert "8, 9, ... and 9989 more" in str(caught.value)


def test_label_in_another_unicode_form_is_an_error_that_says_so(tmp_path):
    [row] = read(tmp_path, "label\ncafe\u0301\n", "csv")
    with pytest.raises(InputError, match="in the same Unicode normalization"):
        row.require_label("label", row.name("label"), ["caf\xe9", "tea"])
