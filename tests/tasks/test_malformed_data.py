"""Malformed data of every task is reported with its file and line."""

import json
import re

import pytest
from support import tiny

from official_bert import tasks
from official_bert.errors import InputError


def cases_of(task_name, file, *rows, start="", **flags):
    """Returns a case for each (end of the file, message after its name)."""
    return [(task_name, file, start + end, text, flags) for end, text in rows]


def choices(**changes):
    """Returns the second of two lines of multiple choice."""
    line = {"context": "a", "choices": ["b", "c"], "label": 1}
    return json.dumps(line) + "\n" + json.dumps({**line, **changes})


def hellaswag(**flags):
    """Returns a case with a flag whose column is missing or unsuitable."""
    [column] = flags.values()
    flags = {"context_column": "ctx", "choices_column": "endings", **flags}
    row = {"ind": 24, "ctx": "On a roof, he", "endings": ["a", "b"], "label": 1}
    case = (json.dumps(row), f"1: .*'{column}'")
    return cases_of("choices", "train.jsonl", case, **flags)


CSV = "text,label\na,1\n"
CASES = [
    *cases_of(
        "cola",
        "dev.tsv",
        ("\ng\t1\t\tx\n", "2: .*Received: 1"),
        ("g\t1\t\tx\n\n", "3: .*Received: 1"),
        ("g\t1\n", "2: .*Received: 2.* own data, use --train_file"),
        ("g\t2\t\tx\n", "2: .*Received: '2'.* own data, use --train_file"),
        start="g\t1\t\tx\n",
    ),
    *cases_of("rte", "train.tsv", ("", " .*none"), ("header\n", " .*none")),
    *cases_of(
        "sts-b",
        "dev.tsv",
        *((s, f"2: .*Received: {s!r}") for s in ("good", "nan", "inf", "")),
        start="header\n" + 9 * "\t",
    ),
    *cases_of(
        "xnli",
        "xnli.dev.tsv",
        ("zh\tneutral\ta\tb", "3: .*8 columns"),
        ("\n", "3: .*8 columns"),
        ("zh\tx\t\t\t\t\ta\tb", "3: .*'x'"),
        start="header\nzh\tneutral\t\t\t\t\ta\tb\n",
    ),
    *cases_of(
        "swag",
        "val.csv",
        *((s, "2: .*'label'") for s in ("4", "1.5", '""', "a")),
        start="sent1,sent2,ending0,ending1,ending2,ending3,label\na,b,1,2,3,4,",
    ),
    *cases_of("swag", "val.csv", ("sent1,label\na,0", " .*'sent2'")),
    *cases_of(
        "choices",
        "train.jsonl",
        (choices(label=2), "2: .*2"),
        (choices(label=True), "2: .*True"),
        (choices(choices=["a"]), "2: .*list of at least two"),
        (choices(label="C"), "2: .*A to B.*'C'"),
        (choices(choices=["a", 5]), "2: .*5"),
        (choices(context=None), "2: .*none"),
        ('{"choices": ["b"]}', "1: .*'choices'"),
    ),
    *cases_of(
        "choices",
        "train.csv",
        ("d ?,b,,c,C\n", "3: column 'B' must not be empty"),
        start="question,A,B,C,label\nd ?,b,c,,B\n",
    ),
    *cases_of(
        "choices",
        "train.csv",
        ("question,A,B,C,label\nd ?,b,c,e,B\n", " .*a column 'Cc'"),
        choices_column="A,B,Cc",
    ),
    *hellaswag(choices_column="choices"),
    *hellaswag(context_column="context"),
    *hellaswag(question_column="ctx_c"),
    *hellaswag(label_column="gold"),
    *hellaswag(id_column="id"),
    *hellaswag(label_column="ind"),
    *hellaswag(choices_column="ctx"),
    *hellaswag(context_column="ind"),
    *cases_of(
        "ner",
        "train.txt",
        ("a O\n\nb X O\n", "3: .* 2 columns.* 3"),
        ("a O\nb\n", "2: .* 2 columns.* 1"),
        ("# a comment\na O\n", "2: .* 3 columns.* 2"),
        ("a\tO\n\tO\n", "2: .*word"),
        ("a\tO\nb\t\n", "2: .*tag"),
        ("", " .*none"),
        ("\n-DOCSTART- O\n\n", " .*none"),
    ),
    *cases_of("ner", "train.txt", ("a O", "1: .* column 2"), token_column=2),
    *cases_of(
        "ner",
        "dev.txt",
        *((tag, f"3: .* O, P. .*'{tag}'") for tag in ("Q", "o", "")),
        start="a\tO\n\nb\t",
        label_file="labels",
    ),
    *cases_of(
        "csv",
        "train.csv",
        ('"b",', "3: .*'label'"),
        ("b,1,2", "3: .*2 columns.* 3"),
        ('"x,y\nz\n', "3: .*unexpected end"),
        ('"x"y,z\n', "3: .*',' expected"),
        ('"x\n\n",y\n"x" y,z\n', "6: .*',' expected"),
        start=CSV,
    ),
    *cases_of(
        "csv",
        "dev.csv",
        ("b,high", "3: .*'high'"),
        ("b,nan", "3: .*'nan'"),
        start=CSV,
        task_type="regression",
        do_train=False,
    ),
    *cases_of(
        "csv",
        "dev.csv",
        (CSV, " .*'c'.* text, label"),
        text_b_column="c",
        label_file="labels",
        do_train=False,
    ),
    *cases_of(
        "jsonl",
        "dev.jsonl",
        ('{"text": "a"}', "1: .*'id'"),
        ('{"text": "a", "id": 1, "label": 1}', "1: .*'label'.* O, P. .*'1'"),
        label_file="labels",
        id_column="id",
        do_train=False,
    ),
    *cases_of(
        "tsv",
        "train.tsv",
        ("text\tlabel\nx\n", "2: .*2 columns.* 1"),
        ("text\tlabel\nx\ty\nx\ty\tz\n", "3: .*2 columns.* 3"),
        ("text\tlabel\ttext\nx\ty\tz\n", "1: .*'text' twice"),
        *((text, " .*none") for text in ("", "a\tb", "\n\n")),
    ),
    *cases_of("csv", "train.csv", ("", " .*none"), ("a,b\n\n", " .*none")),
    *cases_of(
        "jsonl",
        "train.jsonl",
        ('{"text": "", "label": 1}\n{"a": }\n', "2: .*character 7"),
        ('{"a": "\\ud83d"}\n', "1: .*surrogate"),
        ('{"text": "", "label": 1}\n["a"]', "2: .*list"),
        ('[{"text": "", "label": 1}]', r"1: .*list. .* pandas .*lines=True"),
        ('[\n{"text": "", "label": 1}\n]', r"1: .* pandas .*lines=True"),
        ('[{"text": "", "label": 1},\n]', r"1: .* pandas .*lines=True"),
        ('{\n"text": "", "label": 1}', r"1: .* pandas .*lines=True"),
        ('{"text": "", "label": 1}\n{}{}\n', "2: .*character 3"),
        ("\n", " .*none"),
    ),
]


@pytest.mark.parametrize(
    ("task_name", "file", "text", "message", "flags"),
    CASES,
    ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)],
)
def test_malformed_data_is_reported_with_file_and_line(
    tmp_path, monkeypatch, task_name, file, text, message, flags
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "labels").write_text("O\nP\n")
    (tmp_path / file).write_text(text)
    split = "train" if "train" in file else "dev"
    options = tiny.options(tmp_path, task_name=task_name, **flags)
    with pytest.raises(InputError, match=rf"(?s){re.escape(file)}:{message}"):
        tasks.get(options).data.read(split)


@pytest.mark.parametrize(
    "task_name",
    ["cola", "xnli", "tsv", "csv", "jsonl", "choices", "swag", "ner"],
)
def test_missing_file_is_reported(tmp_path, task_name):
    options = tiny.options(tmp_path, task_name=task_name)
    with pytest.raises(InputError, match=re.escape(str(tmp_path))):
        tasks.get(options).data.read("train")
