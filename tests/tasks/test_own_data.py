"""The rows and columns of the user's own tables."""

import json

import pytest
from support import tiny, write_json_lines
from support.own_tables import complete, make, table

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks import detection
from official_bert.tasks.text import TextExample
from official_bert.training import finetuning_run


def test_columns_are_given_by_name_or_by_number(tmp_path):
    (tmp_path / "train.csv").write_text(',text,label\n7,"a, b",yes\n8,c, no\n')
    expected = [
        TextExample("train-2", "a, b", None, "yes"),
        TextExample("train-3", "c", None, "no"),
    ]
    for flags in ({}, {"text_a_column": "1", "label_column": "2"}):
        assert make(tmp_path, **flags).data.read("train") == expected
    flags = {"text_b_column": "text", "text_a_column": "0", "id_column": "0"}
    assert make(tmp_path, **flags).data.read("train") == [
        TextExample("7", "7", "a, b", "yes"),
        TextExample("8", "8", "c", "no"),
    ]


def test_without_a_header_columns_are_numbers(tmp_path, caplog):
    (tmp_path / "train.tsv").write_text('yes\t"a\nno\tb\n')
    flags = {"label_column": "0", "has_header": False}
    (tmp_path / "test.tsv").write_text("label\ttext\nno\ta b\n")
    task = make(tmp_path, "tsv", text_a_column="1", **flags)
    assert "test.tsv:1: this line is an example, too" in caplog.text
    assert task.labels == ("no", "yes")
    assert task.data.read("train") == [
        TextExample("train-1", '"a', None, "yes"),
        TextExample("train-2", "b", None, "no"),
    ]
    with pytest.raises(InputError, match=r"\.tsv: .*'text'.*: 0, 1\."):
        make(tmp_path, "tsv", **flags).data.read("train")


@pytest.mark.parametrize(
    ("task_type", "cells", "labels", "num_missing"),
    [
        ("classification", [None, "?", 2], [None, None, "2"], 2),
        ("multilabel", ["", []], [None, None], 0),
        ("multilabel", ["", "1,2", "x"], [(), ("1", "2"), None], 1),
        ("regression", [0, "0.0"], [0.0, 0.0], 0),  # Zero is a label.
    ],
)
def test_test_data_with_some_unknown_labels_gives_a_warning(
    tmp_path, caplog, task_type, cells, labels, num_missing
):
    (tmp_path / "labels").write_text("1\n2\n")
    rows = [{"text": "a", "id": 7, "label": cell} for cell in cells]
    write_json_lines(tmp_path / "test.jsonl", rows)
    flags = {"id_column": "id", "do_train": False}
    if task_type != "regression":
        flags["label_file"] = str(tmp_path / "labels")
    task = make(tmp_path, "jsonl", task_type=task_type, **flags)
    expected = [TextExample("7", "a", None, label) for label in labels]
    assert task.data.read("test") == expected
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == (num_missing > 0)
    assert all(f"{num_missing} of {len(cells)}" in text for text in warnings)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "dev.csv",
            "text,Label\na,y\nb,n\n",
            r"'label'.* Received: text, Label.* rename the .* from 0\.$",
        ),
        ("test.csv", "text,LABEL\na,y\n", r"Received: text, LABEL"),
        ("test.csv", "text,id\na,1\n", None),
        ("test.csv", "text,label\na,0\nb,1\n", r"n, y\. Received: 0, 1\."),
        ("test.csv", "text,label\na,-1\nb,-1\n", None),  # -1: no label.
        ("test.csv", "text,label\na,Y\nb,Y\n", r"Received: Y\. Write 'y', as"),
        ("test.csv", "text\na\n", None),
        ("test.csv", "text,label\na,y\nb,\"['n']\"\n", "not a list"),
    ],
)
def test_wrong_columns_or_labels_are_an_error(
    tmp_path, caplog, file, text, message
):
    caplog.set_level("INFO", logger="absl")
    (tmp_path / "train.csv").write_text("text,label\na,y\nb,n\n")
    (tmp_path / file).write_text(text)
    if not message:
        assert make(tmp_path).data.read("test")[0].label is None
        is_logged = "y. Received: -1. The test set is not ev" in caplog.text
        assert is_logged == ("-1" in text)
        return
    with pytest.raises(InputError, match=rf"{file}:.*{message}"):
        make(tmp_path).data.read(file.removesuffix(".csv"))


@pytest.mark.parametrize(
    ("labels", "value", "message"),
    [
        ("1 2", "1.0", "Write '1', as in training"),
        ("not_spam spam", "Not spam", "Write 'not_spam', as in training"),
        ("pos neg", "unknown", None),
    ],
)
def test_same_unknown_label_in_all_rows_is_reported(
    tmp_path, caplog, labels, value, message
):
    for split, cells in (("train", labels.split()), ("test", [value] * 2)):
        rows = "".join(f"a {n},{cell}\n" for n, cell in enumerate(cells))
        (tmp_path / f"{split}.csv").write_text(f"text,label\n{rows}")
    data = make(tmp_path).data
    if message:
        with pytest.raises(InputError, match=message):
            data.read("test")
    else:
        assert [example.label for example in data.read("test")] == [None] * 2
        assert "unknown. The test set is not evaluated" in caplog.text


def test_label_in_another_case_is_an_error_in_json_lines(tmp_path):
    for split, name in (("train", "label"), ("test", "Label")):
        rows = [{"text": "a", name: "y"}, {"text": "b", name: "n"}]
        write_json_lines(tmp_path / f"{split}.jsonl", rows)
    data = make(tmp_path, "jsonl").data
    with pytest.raises(InputError, match=r"test\.jsonl:1: .* mean 'Label'"):
        data.read("test")


def test_number_in_another_format_is_an_error_in_test_data(tmp_path):
    (tmp_path / "train.csv").write_text("text,label\na,1\nb,2\n")
    (tmp_path / "test.csv").write_text("text,label\na,1\nb,1399 €\n")
    with pytest.raises(InputError, match=r"test\.csv:3: .* 1399\.5"):
        make(tmp_path, task_type="regression").data.read("test")


def test_held_out_rows_keep_all_columns(tmp_path):
    rows = "".join(f"{i},a {i},{i % 2},,Ä\n" for i in range(20))
    (tmp_path / "t.csv").write_text(f"id,text,label,empty,note\n{rows}")
    flags = {"train_file": str(tmp_path / "t.csv"), "do_predict": False}
    data = make(tmp_path, **flags).data
    lines = data.held_out_files()["dev.jsonl"].splitlines()
    assert len(lines) == 2
    for line in lines:
        row = json.loads(line)
        number = int(row["id"])
        others = {"label": str(number % 2), "empty": "", "note": "Ä"}
        assert row == {"id": str(number), "text": f"a {number}", **others}


def test_several_training_files_are_read_as_one(tmp_path):
    rows = [f"a {i},{i % 2}\n" for i in range(40)]
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(rows))
    for name, part in (("b1", rows[:15]), ("b2", rows[15:])):
        (tmp_path / f"{name}.csv").write_text("text,label\n" + "".join(part))
    one, two = (
        make(tmp_path, train_file=str(tmp_path / name), do_predict=False)
        for name in ("a.csv", "b*.csv")
    )
    for split in ("train", "dev"):
        a, b = one.data.read(split), two.data.read(split)
        assert [e.texts for e in a] == [e.texts for e in b]
    assert one.data.held_out_files() == two.data.held_out_files()
    guids = {e.text_a: e.guid for e in b} | {
        e.text_a: e.guid for e in two.data.read("train")
    }
    assert guids["a 20"] == f"train-{tmp_path}/b2.csv:7"
    options = two.data.options
    names = [str(tmp_path / f"b{number}.csv") for number in (1, 2)]
    assert finetuning_run.data_files(two, options) == {"training data": names}
    (tmp_path / "b2.csv").write_text("text,label\na,0\nb,\nc,\n")
    message = r"b2\.csv:3: .*empty.*errors: lines .*b2\.csv:3, .*b2\.csv:4\."
    with pytest.raises(InputError, match=message):
        make(tmp_path, train_file=str(tmp_path / "b*.csv"), do_predict=False)


SWAG = "sent1,sent2,ending0,ending1,ending2,ending3,label\n"


@pytest.mark.parametrize(
    ("task_name", "ending", "header", "line"),
    [
        ("csv", "csv", "text,label\n", "{},{}\n"),
        ("choices", "csv", "context,A,B,label\n", "{},b,c,{}\n"),
        ("pos", "txt", "", "w{} {}\n\n"),
        ("swag", "csv", SWAG, "{},a,b,c,d,e,{}\n"),
    ],
)
def test_training_data_is_shuffled_and_other_data_is_not(
    tmp_path, task_name, ending, header, line
):
    names = [str(i) for i in range(100)]
    rows = "".join(line.format(i, i // 50) for i in range(100))
    for split in ("train", "dev", "val"):
        (tmp_path / f"{split}.{ending}").write_text(header + rows)
    task = make(tmp_path, task_name)

    def read(split):
        return [
            example.words[0][1:] if task_name == "pos" else example[1]
            for example in task.data.read(split)
        ]

    assert read("dev") == names
    train = read("train")
    assert sorted(train) == sorted(names)
    assert 15 < sum(int(name) < 50 for name in train[:50]) < 35
    assert read("train") == train


PRODIGY = [
    {"text": f"it is {i}", "label": "xy"[i % 2], "answer": answer}
    for i, answer in enumerate(["accept", "accept", "reject", "ignore"] * 6)
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_rows_rejected_in_prodigy_are_left_out(tmp_path, caplog, name):
    text = "".join(json.dumps(row) + "\n" for row in PRODIGY)
    if name == "a.csv":
        lines = [",".join(row.values()) for row in PRODIGY]
        text = table(*lines, header="text,label,answer")
    flag = f"--dev_file={tmp_path / name}"
    columns = ("--text_column=text", "--label_column=label")
    task = tasks.get(complete(tmp_path, name, text, *columns, flag))
    assert "12 of 24 rows are left out" in caplog.text
    for split in ("train", "dev"):
        texts = {example.text_a for example in task.data.read(split)}
        assert texts == {f"it is {i}" for i in range(24) if i % 4 < 2}
    caplog.set_level("INFO", logger="absl")
    task = tasks.get(complete(tmp_path, name, text, "--label_column=answer"))
    assert task.labels == ("accept", "ignore", "reject")
    message = "--text_column=text --label_column=answer (not used: label)"
    assert message in caplog.text


def test_pairs_that_were_rejected_in_prodigy_are_left_out(tmp_path):
    pairs = ("a,b,accept", "c,d,reject", "e,f,ignore", "g,h,accept")
    text = table(*pairs, header="query,positive,answer")
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    flags = (f"--train_file={tmp_path}/a.csv", "--task_type=embedding")
    _, rows = detection.detect_omitted(tiny.parse(tmp_path, *flags))
    assert [row.cells["query"] for row in rows] == ["a", "g"]
