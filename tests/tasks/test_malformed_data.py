"""Malformed data of every task is reported with its file and line."""

import json
import re

import pytest
from support import tiny

from official_bert import tasks
from official_bert.errors import InputError


def choices(**changes):
    """Returns the second of two lines of multiple choice."""
    line = {"context": "a", "choices": ["b", "c"], "label": 1}
    return json.dumps(line) + "\n" + json.dumps({**line, **changes})


CSV = "text,label\na,1\n"
JSON = '{"text": "", "label": 1}'
QUESTIONS = "question,A,B,C,label\nd ?,b,c,,B\n"
SWAG = "sent1,sent2,ending0,ending1,ending2,ending3,label\na,b,1,2,3,4,"
XNLI = "header\nzh\tneutral\t\t\t\t\ta\tb\n"
NONE = " .*none"
# Pairs of a flag and its value.
LABELS, LATER = ("label_file", "labels"), ("do_train", False)
NUMBERS, SECOND = ("task_type", "regression"), ("text_b_column", "c")
ID, CHOICES = ("id_column", "id"), ("choices_column", "A,B,Cc")
# {(task, file, its beginning, flags ...): [(its end, message after its name)]}
ENDS = {
    ("cola", "dev.tsv", "g\t1\t\tx\n"): [
        ("\ng\t1\t\tx\n", "2: .*Received: 1"),
        ("g\t1\t\tx\n\n", "3: .*Received: 1"),
        ("g\t1\n", "2: .*Received: 2.* own data, use --train_file"),
        ("g\t2\t\tx\n", "2: .*Received: '2'.* own data, use --train_file"),
    ],
    ("rte", "train.tsv", ""): [("", NONE), ("header\n", NONE)],
    ("sts-b", "dev.tsv", "header\n" + 9 * "\t"): [
        (score, f"2: .*Received: {score!r}")
        for score in ("good", "nan", "inf", "")
    ],
    ("xnli", "xnli.dev.tsv", XNLI): [
        ("zh\tneutral\ta\tb", "3: .*8 columns"),
        ("\n", "3: .*8 columns"),
        ("zh\tx\t\t\t\t\ta\tb", "3: .*'x'"),
    ],
    ("swag", "val.csv", SWAG): [
        (label, "2: .*'label'") for label in ("4", "1.5", '""', "a")
    ],
    ("swag", "val.csv", ""): [("sent1,label\na,0", " .*'sent2'")],
    ("choices", "train.jsonl", ""): [
        (choices(label=2), "2: .*2"),
        (choices(label=True), "2: .*True"),
        (choices(choices=["a"]), "2: .*list of at least two"),
        (choices(label="C"), "2: .*A to B.*'C'"),
        (choices(choices=["a", 5]), "2: .*5"),
        (choices(context=None), "2: .*none"),
        ('{"choices": ["b"]}', "1: .*'choices'"),
    ],
    ("choices", "train.csv", QUESTIONS): [
        ("d ?,b,,c,C\n", "3: column 'B' must not be empty")
    ],
    ("choices", "train.csv", "", CHOICES): [
        ("question,A,B,C,label\nd ?,b,c,e,B\n", " .*a column 'Cc'")
    ],
    ("ner", "train.txt", ""): [
        ("a O\n\nb X O\n", "3: .* 2 columns.* 3"),
        ("a O\nb\n", "2: .* 2 columns.* 1"),
        ("# a comment\na O\n", "2: .* 3 columns.* 2"),
        ("a\tO\n\tO\n", "2: .*word"),
        ("a\tO\nb\t\n", "2: .*tag"),
        ("", NONE),
        ("\n-DOCSTART- O\n\n", NONE),
    ],
    ("ner", "train.txt", "a O", ("token_column", 2)): [("", "1: .* column 2")],
    ("ner", "dev.txt", "a\tO\n\nb\t", LABELS): [
        (tag, f"3: .* O, P. .*'{tag}'") for tag in ("Q", "o", "")
    ],
    ("csv", "train.csv", CSV): [
        ('"b",', "3: .*'label'"),
        ("b,1,2", "3: .*2 columns.* 3"),
        ('"x,y\nz\n', "3: .*unexpected end"),
        ('"x"y,z\n', "3: .*',' expected"),
        ('"x\n\n",y\n"x" y,z\n', "6: .*',' expected"),
    ],
    ("csv", "dev.csv", CSV, NUMBERS, LATER): [
        ("b,high", "3: .*'high'"),
        ("b,nan", "3: .*'nan'"),
    ],
    ("csv", "dev.csv", CSV, SECOND, LABELS, LATER): [
        ("", " .*'c'.* text, label")
    ],
    ("jsonl", "dev.jsonl", "", LABELS, ID, LATER): [
        ('{"text": "a"}', "1: .*'id'"),
        ('{"text": "a", "id": 1, "label": 1}', "1: .*'label'.* O, P. .*'1'"),
    ],
    ("tsv", "train.tsv", ""): [
        ("text\tlabel\nx\n", "2: .*2 columns.* 1"),
        ("text\tlabel\nx\ty\nx\ty\tz\n", "3: .*2 columns.* 3"),
        ("text\tlabel\ttext\nx\ty\tz\n", "1: .*'text' twice"),
        *((text, NONE) for text in ("", "a\tb", "\n\n")),
    ],
    ("csv", "train.csv", ""): [("", NONE), ("a,b\n\n", NONE)],
    ("jsonl", "train.jsonl", ""): [
        (JSON + '\n{"a": }\n', "2: .*character 7"),
        ('{"a": "\\ud83d"}\n', "1: .*surrogate"),
        (JSON + '\n["a"]', "2: .*list"),
        (f"[{JSON}]", r"1: .*list. .* pandas .*lines=True"),
        (f"[\n{JSON}\n]", r"1: .* pandas .*lines=True"),
        (f"[{JSON},\n]", r"1: .* pandas .*lines=True"),
        ('{\n"text": "", "label": 1}', r"1: .* pandas .*lines=True"),
        (JSON + "\n{}{}\n", "2: .*character 3"),
        ("\n", NONE),
    ],
}
CASES = [
    (task_name, file, start + end, message, dict(flags))
    for (task_name, file, start, *flags), rows in ENDS.items()
    for end, message in rows
]
# Flags whose column is missing or unsuitable.
HELLASWAG = {"ind": 24, "ctx": "On a roof, he", "endings": ["a", "b"]}
HELLASWAG["label"] = 1
COLUMNS = {"context_column": "ctx", "choices_column": "endings"}
CASES += [
    (
        *("choices", "train.jsonl", json.dumps(HELLASWAG)),
        *(f"1: .*'{column}'", {**COLUMNS, f"{name}_column": column}),
    )
    for name, column in (
        *(("choices", "choices"), ("choices", "ctx"), ("question", "ctx_c")),
        *(("context", "context"), ("context", "ind"), ("id", "id")),
        *(("label", "gold"), ("label", "ind")),
    )
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
