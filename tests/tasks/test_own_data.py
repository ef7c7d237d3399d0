"""Texts of a user's own: three kinds of files, three kinds of labels."""

import csv
import itertools
import json
import random

import pytest
import tensorflow as tf
from support import tiny

import run_classifier
from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks.text import TextExample


def make(folder, kind="csv", **flags):
    return tasks.get(tiny.options(folder, task_name=kind, **flags))


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_columns_by_name_and_by_number(tmp_path):
    write(tmp_path / "train.csv", 'n,text,label\n7,"a, b",yes\n8,c, no\n')
    expected = [
        TextExample("train-2", "a, b", None, "yes"),
        TextExample("train-3", "c", None, "no"),
    ]
    assert make(tmp_path).examples("train") == expected
    flags = {"text_a_column": "1", "label_column": "2"}
    assert make(tmp_path, **flags).examples("train") == expected
    flags = {"text_b_column": "text", "text_a_column": "n", "id_column": "0"}
    assert make(tmp_path, **flags).examples("train") == [
        TextExample("7", "7", "a, b", "yes"),
        TextExample("8", "8", "c", "no"),
    ]


def test_without_a_header(tmp_path):
    write(tmp_path / "train.tsv", 'yes\t"a\nno\tb\n')
    flags = {"text_a_column": "1", "label_column": "0", "has_header": False}
    task = make(tmp_path, "tsv", **flags)
    assert task.labels == ("no", "yes")
    assert task.examples("train") == [
        TextExample("train-1", '"a', None, "yes"),
        TextExample("train-2", "b", None, "no"),
    ]
    with pytest.raises(InputError, match=r"train\.tsv:1: .*'text'.*: 0, 1\."):
        make(tmp_path, "tsv", has_header=False, label_column="0").examples(
            "train"
        )


def test_test_data_need_no_labels(tmp_path):
    write(tmp_path / "train.jsonl", '{"text": "a", "label": 1}\n' * 2)
    write(tmp_path / "labels", "1\n2\n")
    write(
        tmp_path / "test.jsonl",
        '{"text": "b", "id": 17}\n{"text": "c", "id": "x", "label": "?"}\n'
        '{"text": "d", "id": 3, "label": 2}\n',
    )
    flags = {"label_file": str(tmp_path / "labels"), "id_column": "id"}
    task = make(tmp_path, "jsonl", **flags)
    assert task.examples("test") == [
        TextExample("17", "b"),
        TextExample("x", "c"),
        TextExample("3", "d", None, "2"),
    ]
    with pytest.raises(InputError, match=r"train\.jsonl:1: .*'id'"):
        task.examples("train")


def test_a_test_set_without_any_label_is_not_measured(tmp_path, caplog):
    write(tmp_path / "labels", "1\n2\n")
    flags = {"label_file": str(tmp_path / "labels"), "task_type": "multilabel"}
    write(tmp_path / "test.csv", 'text,label\na,\nb,""\n')
    task = make(tmp_path, "csv", **flags)
    assert [e.label for e in task.examples("test")] == [None, None]
    assert "is not evaluated" not in caplog.text
    write(tmp_path / "test.csv", 'text,label\na,\nb,"1,2"\nc,x\n')
    assert [e.label for e in task.examples("test")] == [(), ("1", "2"), None]
    assert "1 of 3 rows have no known label" in caplog.text


def test_zero_is_a_label(tmp_path):
    write(tmp_path / "test.csv", "text,label\na,0\nb,0.0\n")
    task = make(tmp_path, "csv", task_type="regression")
    assert [e.label for e in task.examples("test")] == [0.0, 0.0]


def test_labels_of_the_training_data(tmp_path):
    lines = [{"text": "a", "label": label} for label in ("b", 2, "a", True, 10)]
    text = "\n".join(map(json.dumps, lines))
    write(tmp_path / "train.jsonl", text)
    assert make(tmp_path, "jsonl").labels == ("10", "2", "a", "b", "true")
    write(tmp_path / "train.csv", 'text,label\na,"x, y"\nb,\nc,"y,z,"\n')
    task = make(tmp_path, task_type="multilabel")
    assert task.labels == ("x", "y", "z")
    labels = {example.label for example in task.examples("train")}
    assert labels == {("x", "y"), (), ("y", "z")}
    lines = [{"text": "a", "label": label} for label in (["b", 2], [], "b,c")]
    write(tmp_path / "train.jsonl", "\n".join(map(json.dumps, lines)))
    task = make(tmp_path, "jsonl", task_type="multilabel")
    assert task.labels == ("2", "b", "c")
    labels = {example.label for example in task.examples("train")}
    assert labels == {("b", "2"), (), ("b", "c")}


def test_labels_of_a_file_keep_their_order(tmp_path):
    write(tmp_path / "labels", "z\ny\n")
    write(tmp_path / "train.csv", "text,label\na,y\n")
    task = make(tmp_path, label_file=str(tmp_path / "labels"))
    assert task.labels == ("z", "y")
    write(tmp_path / "train.csv", "text,label\na,y\nb,x\n")
    with pytest.raises(
        InputError, match=r"csv:3: column 'label' must be one of z, y\. .* 'x'"
    ):
        task.examples("train")


def test_labels_of_the_trained_model(tmp_path):
    later = {"do_train": False}
    with pytest.raises(InputError, match=r"out'.* --label_file"):
        make(tmp_path, **later)
    write(tmp_path / "train.csv", "text,label\na,y\nb,n\n")
    (tmp_path / "out").mkdir()
    told = json.dumps(make(tmp_path).to_json())
    write(tmp_path / "out" / "task.json", told)
    assert make(tmp_path, **later).labels == ("n", "y")
    assert make(tmp_path).labels == ("n", "y")


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ({"task_type": "multilabel"}, "task_type"),
        ({"do_train": False, "task_type": "regression"}, "task_type"),
        ({"do_train": False, "label_file": "labels"}, "labels"),
        ({}, "labels"),
    ],
)
def test_what_was_trained_must_be_what_is_asked_for(
    tmp_path, monkeypatch, flags, name
):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.csv", "text,label\na,y\nb,n\n")
    write(tmp_path / "labels", "y\nn\n")
    (tmp_path / "out").mkdir()
    told = json.dumps(make(tmp_path).to_json())
    write(tmp_path / "out" / "task.json", told)
    write(tmp_path / "train.csv", "text,label\na,y\nb,x\n")
    with pytest.raises(InputError, match=rf"task\.json: .*`{name}`"):
        run_classifier.main(
            tiny.options(tmp_path, task_name="csv", do_predict=True, **flags)
        )


@pytest.mark.parametrize(
    ("line", "flags", "complaint"),
    [
        ('"b",', {}, "train.csv:3: column 'label' must be a word"),
        ("b,1,2", {}, "train.csv:3: must have 2 columns"),
        ("b,high", {"task_type": "regression"}, "csv:3: .* be a number"),
        ("b,nan", {"task_type": "regression"}, "csv:3: .* be a number"),
        ("b,2", {"text_b_column": "other"}, "csv:2: .*'other'.* text, label"),
        ("b,1", {}, "more than one label"),
    ],
)
def test_wrong_rows_are_named(tmp_path, line, flags, complaint):
    write(tmp_path / "train.csv", f"text,label\na,1\n{line}\n")
    with pytest.raises(InputError, match=complaint):
        make(tmp_path, **flags).examples("train")


def test_unknown_tasks_are_told_all_known_ones(tmp_path):
    with pytest.raises(InputError, match="xml"):
        make(tmp_path, "xml")


def sentences(seed, number):
    rng = random.Random(seed)
    for _ in range(number):
        yield " ".join(rng.choices(tiny.WORDS, k=rng.randint(1, 6)))


def topics(text):
    """Learnable: which words are there."""
    return [topic for topic in ("sun", "rain") if topic in text.split()]


@pytest.mark.slow
def test_a_run_with_several_labels(tmp_path):
    for seed, (split, number) in enumerate([("train", 320), ("dev", 100)]):
        with open(tmp_path / f"{split}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for text in sentences(seed, number):
                writer.writerow([text, ",".join(topics(text))])
    rows = ["id,text", *(f"n{i},{t}" for i, t in enumerate(sentences(3, 40)))]
    write(tmp_path / "test.csv", "\n".join(rows))
    output, results = tiny.run(
        tmp_path, task_name="csv", task_type="multilabel", id_column=None
    )
    assert results["micro_f1"] > 0.9
    assert results["exact_match"] > 0.9
    assert set(results["per_class"]) == {"rain", "sun"}
    assert json.loads((output / "task.json").read_text())["labels"] == [
        "rain",
        "sun",
    ]
    scores = [
        [float(score) for score in line.split("\t")]
        for line in (output / "test_results.tsv").read_text().splitlines()
    ]
    found = (output / "test_predictions.tsv").read_text().splitlines()
    assert found[0] == "id\tprediction"
    right = 0
    for line, (text, score) in zip(
        found[1:], zip(sentences(3, 40), scores, strict=True), strict=True
    ):
        predicted = [part for part in line.split("\t")[1].split(",") if part]
        assert predicted == [
            name
            for name, one in zip(("rain", "sun"), score, strict=True)
            if one >= 0.5
        ]
        right += sorted(predicted) == sorted(topics(text))
    assert right > 36
    # Once more, without the training data.
    (tmp_path / "train.csv").unlink()
    _, again = tiny.run(
        tmp_path,
        task_name="csv",
        task_type="multilabel",
        id_column="id",
        do_train=False,
        do_eval=False,
    )
    assert again == results
    again = (output / "test_predictions.tsv").read_text().splitlines()
    assert again[1].startswith("n0\t")
    assert [line.split("\t")[1] for line in again] == [
        line.split("\t")[1] for line in found
    ]


@pytest.mark.slow
def test_a_run_with_numbers(tmp_path):
    """Learnable: what two of the words are worth."""
    for seed, (split, number) in enumerate(
        [("train", 320), ("dev", 100), ("test", 30)]
    ):
        with open(tmp_path / f"{split}.jsonl", "w") as file:
            for text in itertools.islice(sentences(seed, 10**6), number):
                score = 1.0 + ("good" in text) - ("bad" in text)
                row = {"text": text, "id": text, "label": score}
                print(json.dumps(row), file=file)
    output, results = tiny.run(
        tmp_path,
        task_name="jsonl",
        task_type="regression",
        id_column="id",
        eval_every=20,
    )
    assert results["pearson"] > 0.9
    assert results["spearmanr"] > 0.8
    assert results["eval_loss"] == pytest.approx(results["mean_squared_error"])
    assert json.loads((output / "task.json").read_text())["labels"] == []
    text = (output / "eval_results.txt").read_text()
    assert text.startswith("eval_loss = ")
    [line] = [line for line in text.splitlines() if "pearson" in line]
    assert float(line.split(" = ")[1]) == pytest.approx(results["pearson"])
    # The test data have labels as well.
    measured = json.loads((output / "predict_results.json").read_text())
    assert measured["pearson"] > 0.9
    found = (output / "test_predictions.tsv").read_text().splitlines()[1:]
    for line in found:
        text, number = line.split("\t")
        expected = 1.0 + ("good" in text) - ("bad" in text)
        assert float(number) == pytest.approx(expected, abs=0.8)
    scores = (output / "test_results.tsv").read_text().split()
    assert [float(s) for s in scores] == pytest.approx(
        [float(line.split("\t")[1]) for line in found]
    )


@pytest.mark.slow
def test_a_run_with_long_documents(tmp_path):
    """Many rows for each text, one answer; classes out of TSV."""
    for split, number in (("train", 64), ("dev", 20), ("test", 16)):
        lines = [
            " ".join([word] * (10 + i)) + f"\t{word}"
            for i, word in enumerate(["good", "bad"] * (number // 2))
        ]
        write(tmp_path / f"{split}.tsv", "\n".join(["text\tlabel", *lines]))
    output, results = tiny.run(
        tmp_path,
        task_name="tsv",
        max_seq_length=8,
        train_batch_size=4,
        long_document="windows",
        window_stride=4,
    )
    assert results["accuracy"] == 1.0
    assert sum(map(sum, results["confusion_matrix"])) == 20
    assert set(results["per_class"]) == {"bad", "good"}
    lines = (output / "test_predictions.tsv").read_text().splitlines()[1:]
    assert lines[:2] == ["test-2\tgood", "test-3\tbad"]
    assert len(lines) == 16
    told = json.loads((output / "task.json").read_text())
    assert told["long_documents"] == {
        "mode": "windows",
        "stride": 4,
        "pooling": "mean",
    }
    # Windows start every four pieces: 10 + i words, six of them at once.
    records = tf.data.TFRecordDataset(str(output / "train.tf_record"))
    expected = sum(1 + -(-(10 + i - 6) // 4) for i in range(64))
    assert len(list(records)) == expected


def test_sorted_training_data_are_shuffled(tmp_path):
    rows = "".join(f"{i},{i // 50}\n" for i in range(100))
    write(tmp_path / "train.csv", "text,label\n" + rows)
    write(tmp_path / "dev.csv", "text,label\n" + rows)
    task = make(tmp_path)
    train, dev = task.examples("train"), task.examples("dev")
    assert sorted(train) == sorted(
        e._replace(guid=e.guid.replace("dev", "train")) for e in dev
    )
    assert [e.text_a for e in dev] == [str(i) for i in range(100)]
    assert 15 < sum(e.label == "0" for e in train[:50]) < 35
    assert task.examples("train") == train
