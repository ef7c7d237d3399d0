"""The user's own texts: three file formats, three kinds of labels."""

import csv
import json
import random

import pytest
import tensorflow as tf
from support import tiny
from support.review_runs import read_json

import run_classifier
from official_bert import tasks
from official_bert.errors import InputError
from official_bert.tasks.text import TextExample


def make(folder, file_format="csv", **flags):
    return tasks.get(tiny.options(folder, task_name=file_format, **flags))


def write(path, text):
    path.write_text(text, encoding="utf-8")


def write_jsonl(path, *rows):
    write(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_columns_are_given_by_name_or_by_number(tmp_path):
    write(tmp_path / "train.csv", ',text,label\n7,"a, b",yes\n8,c, no\n')
    expected = [
        TextExample("train-2", "a, b", None, "yes"),
        TextExample("train-3", "c", None, "no"),
    ]
    for flags in ({}, {"text_a_column": "1", "label_column": "2"}):
        assert make(tmp_path, **flags).examples("train") == expected
    flags = {"text_b_column": "text", "text_a_column": "0", "id_column": "0"}
    assert make(tmp_path, **flags).examples("train") == [
        TextExample("7", "7", "a, b", "yes"),
        TextExample("8", "8", "c", "no"),
    ]


def test_without_a_header_columns_are_numbers(tmp_path):
    write(tmp_path / "train.tsv", 'yes\t"a\nno\tb\n')
    flags = {"label_column": "0", "has_header": False}
    task = make(tmp_path, "tsv", text_a_column="1", **flags)
    assert task.labels == ("no", "yes")
    assert task.examples("train") == [
        TextExample("train-1", '"a', None, "yes"),
        TextExample("train-2", "b", None, "no"),
    ]
    with pytest.raises(InputError, match=r"train\.tsv:1: .*'text'.*: 0, 1\."):
        make(tmp_path, "tsv", **flags).examples("train")


def test_test_data_needs_no_labels(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", {"text": "a", "label": 1})
    write(tmp_path / "labels", "1\n2\n")
    write_jsonl(
        tmp_path / "test.jsonl",
        {"text": "b", "id": 17},
        {"text": "c", "id": "x", "label": "?"},
        {"text": "d", "id": 3, "label": 2},
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


def test_test_data_with_some_labels_is_not_evaluated_with_a_warning(
    tmp_path, caplog
):
    write(tmp_path / "labels", "1\n2\n")
    flags = {"label_file": str(tmp_path / "labels"), "task_type": "multilabel"}
    write(tmp_path / "test.csv", 'text,label\na,\nb,""\n')
    task = make(tmp_path, **flags)
    assert [e.label for e in task.examples("test")] == [None, None]
    assert not caplog.records
    write(tmp_path / "test.csv", 'text,label\na,\nb,"1,2"\nc,x\n')
    assert [e.label for e in task.examples("test")] == [(), ("1", "2"), None]
    assert "1 of 3 rows" in caplog.text
    # Zero is a label.
    write(tmp_path / "test.csv", "text,label\na,0\nb,0.0\n")
    task = make(tmp_path, task_type="regression")
    assert [e.label for e in task.examples("test")] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("cells", "labels", "found"),
    [
        (
            ["b", 2, "a", True, 10],
            ("10", "2", "a", "b", "true"),
            {"b", "2", "a", "true", "10"},
        ),
        (
            [["b", 2], [], "b,c", "y, z,", ""],
            ("2", "b", "c", "y", "z"),
            {("b", "2"), (), ("b", "c"), ("y", "z")},
        ),
    ],
)
def test_labels_are_those_of_the_training_data_sorted(
    tmp_path, cells, labels, found
):
    rows = [{"text": "a", "label": cell} for cell in cells]
    write_jsonl(tmp_path / "train.jsonl", *rows)
    is_multilabel = isinstance(cells[0], list)
    task_type = "multilabel" if is_multilabel else "classification"
    task = make(tmp_path, "jsonl", task_type=task_type)
    assert task.labels == labels
    assert {example.label for example in task.examples("train")} == found


def test_labels_of_a_file_keep_their_order(tmp_path):
    write(tmp_path / "labels", "z\ny\n")
    write(tmp_path / "train.csv", "text,label\na,y\nb,x\n")
    task = make(tmp_path, label_file=str(tmp_path / "labels"))
    assert task.labels == ("z", "y")
    with pytest.raises(InputError, match=r"csv:3: .*'label'.* z, y\. .* 'x'"):
        task.examples("train")


@pytest.fixture
def trained(tmp_path):
    """A directory with data, and in `out` the task.json of a model for it."""
    write(tmp_path / "train.csv", "text,label\na,y\nb,n\n")
    (tmp_path / "out").mkdir()
    described = json.dumps(make(tmp_path).to_json())
    write(tmp_path / "out" / "task.json", described)
    return tmp_path


def test_without_training_labels_are_those_of_the_model(trained):
    (trained / "train.csv").unlink()
    assert make(trained, do_train=False).labels == ("n", "y")
    (trained / "out" / "task.json").unlink()
    with pytest.raises(InputError, match=r"--output_dir .*out'.* --label_file"):
        make(trained, do_train=False)


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        ({"task_type": "multilabel"}, "task_type"),
        ({"do_train": False, "task_type": "regression"}, "task_type"),
        ({"do_train": False, "label_file": "labels"}, "labels"),
        ({}, "labels"),
    ],
)
def test_a_model_of_another_task_is_an_error(trained, monkeypatch, flags, key):
    monkeypatch.chdir(trained)
    write(trained / "labels", "y\nn\n")
    write(trained / "train.csv", "text,label\na,y\nb,x\n")
    with pytest.raises(InputError, match=rf"task\.json: .*`{key}`"):
        run_classifier.main(tiny.options(trained, task_name="csv", **flags))


@pytest.mark.parametrize(
    ("line", "flags", "message"),
    [
        ('"b",', {}, r"train\.csv:3: .*'label'"),
        ("b,1,2", {}, r"train\.csv:3: .*2 columns"),
        ("b,high", {"task_type": "regression"}, r"csv:3: .*'high'"),
        ("b,nan", {"task_type": "regression"}, r"csv:3: .*'nan'"),
        ("b,2", {"text_b_column": "other"}, r"csv:2: .*'other'.* text, label"),
        ("b,1", {}, r"\['1'\] in column 'label'"),
    ],
)
def test_malformed_rows_are_reported(tmp_path, line, flags, message):
    write(tmp_path / "train.csv", f"text,label\na,1\n{line}\n")
    with pytest.raises(InputError, match=message):
        make(tmp_path, **flags).examples("train")


def test_an_unknown_task_name_is_reported(tmp_path):
    with pytest.raises(InputError, match=r"--task_name.*xml"):
        make(tmp_path, "xml")


def test_sorted_training_data_is_shuffled_and_other_data_is_not(tmp_path):
    rows = "".join(f"{i},{i // 50}\n" for i in range(100))
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.csv", "text,label\n" + rows)
    task = make(tmp_path)
    train, dev = task.examples("train"), task.examples("dev")
    assert sorted(e[1:] for e in train) == sorted(e[1:] for e in dev)
    assert [e.text_a for e in dev] == [str(i) for i in range(100)]
    assert 15 < sum(e.label == "0" for e in train[:50]) < 35
    assert task.examples("train") == train


def texts(seed, number):
    rng = random.Random(seed)
    for _ in range(number):
        yield " ".join(rng.choices(tiny.WORDS, k=rng.randint(1, 6)))


def topics(text):
    return [topic for topic in ("sun", "rain") if topic in text.split()]


def read_predictions(output):
    """Returns (id, prediction) of each line below the header."""
    lines = (output / "test_predictions.tsv").read_text().splitlines()
    assert lines[0] == "id\tprediction"
    return [line.split("\t") for line in lines[1:]]


@pytest.mark.slow
def test_a_run_learns_several_labels_and_predicts_without_training_data(
    tmp_path,
):
    for seed, (split, number) in enumerate([("train", 320), ("dev", 100)]):
        with open(tmp_path / f"{split}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            for text in texts(seed, number):
                writer.writerow([text, ",".join(topics(text))])
    rows = ["id,text", *(f"n{i},{t}" for i, t in enumerate(texts(3, 40)))]
    write(tmp_path / "test.csv", "\n".join(rows))
    flags = {"task_name": "csv", "task_type": "multilabel"}
    output, results = tiny.run(tmp_path, **flags)
    assert results["micro_f1"] > 0.9
    assert results["exact_match"] > 0.9
    assert set(results["per_class"]) == {"rain", "sun"}
    assert read_json(output / "task.json")["labels"] == ["rain", "sun"]
    predictions = [prediction for _, prediction in read_predictions(output)]
    scores = (output / "test_results.tsv").read_text().splitlines()
    num_right = 0
    for text, prediction, line in zip(
        texts(3, 40), predictions, scores, strict=True
    ):
        labels = [label for label in prediction.split(",") if label]
        pairs = zip(("rain", "sun"), map(float, line.split()), strict=True)
        assert labels == [label for label, score in pairs if score >= 0.5]
        num_right += sorted(labels) == sorted(topics(text))
    assert num_right > 36
    (tmp_path / "train.csv").unlink()
    modes = {"do_train": False, "do_eval": False}
    tiny.run(tmp_path, **flags, **modes, id_column="id")
    ids, again = zip(*read_predictions(output), strict=True)
    assert list(again) == predictions
    assert ids[:2] == ("n0", "n1")


@pytest.mark.slow
def test_a_run_learns_numbers_and_evaluates_the_test_set(tmp_path):
    def score(text):
        return 1.0 + ("good" in text) - ("bad" in text)

    sizes = {"train": 320, "dev": 100, "test": 30}
    for seed, (split, number) in enumerate(sizes.items()):
        rows = [
            {"text": text, "id": text, "label": score(text)}
            for text in texts(seed, number)
        ]
        write_jsonl(tmp_path / f"{split}.jsonl", *rows)
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
    assert read_json(output / "task.json")["labels"] == []
    text = (output / "eval_results.txt").read_text()
    assert text.startswith("eval_loss = ")
    [line] = [line for line in text.splitlines() if "pearson" in line]
    assert float(line.split(" = ")[1]) == pytest.approx(results["pearson"])
    assert read_json(output / "predict_results.json")["pearson"] > 0.9
    scores = []
    for text, prediction in read_predictions(output):
        assert float(prediction) == pytest.approx(score(text), abs=0.8)
        scores.append(float(prediction))
    written = (output / "test_results.tsv").read_text().split()
    assert [float(s) for s in written] == pytest.approx(scores)


@pytest.mark.slow
def test_a_run_gives_one_answer_for_the_windows_of_a_document(tmp_path):
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
        num_train_epochs=2.0,
        long_document="windows",
        window_stride=4,
    )
    assert results["accuracy"] == 1.0
    assert sum(map(sum, results["confusion_matrix"])) == 20
    predictions = read_predictions(output)
    assert predictions[:2] == [["test-2", "good"], ["test-3", "bad"]]
    assert len(predictions) == 16
    described = read_json(output / "task.json")["long_documents"]
    assert described == {"mode": "windows", "stride": 4, "pooling": "mean"}
    # Windows of 6 tokens start every 4 of 10 + i tokens.
    records = tf.data.TFRecordDataset(str(output / "train.tf_record"))
    expected = sum(1 + -(-(10 + i - 6) // 4) for i in range(64))
    assert len(list(records)) == expected
