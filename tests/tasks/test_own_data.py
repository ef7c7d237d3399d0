import collections
import json
import operator

import numpy as np
import pytest
import tensorflow as tf
from support import pretraining_runs, tiny
from support.run_outputs import read_json

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.io import tables
from official_bert.tasks.held_out import assign_folds, hold_out
from official_bert.tasks.text import TextExample
from official_bert.training import finetune


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
        assert make(tmp_path, **flags).data.read("train") == expected
    flags = {"text_b_column": "text", "text_a_column": "0", "id_column": "0"}
    assert make(tmp_path, **flags).data.read("train") == [
        TextExample("7", "7", "a, b", "yes"),
        TextExample("8", "8", "c", "no"),
    ]


def test_without_a_header_columns_are_numbers(tmp_path):
    write(tmp_path / "train.tsv", 'yes\t"a\nno\tb\n')
    flags = {"label_column": "0", "has_header": False}
    task = make(tmp_path, "tsv", text_a_column="1", **flags)
    assert task.labels == ("no", "yes")
    assert task.data.read("train") == [
        TextExample("train-1", '"a', None, "yes"),
        TextExample("train-2", "b", None, "no"),
    ]
    with pytest.raises(InputError, match=r"train\.tsv: .*'text'.*: 0, 1\."):
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
    write(tmp_path / "labels", "1\n2\n")
    rows = [{"text": "a", "id": 7, "label": cell} for cell in cells]
    write_jsonl(tmp_path / "test.jsonl", *rows)
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
    ("cells", "labels", "found"),
    [
        (
            ["b", 2, "a", True, 10],
            ("10", "2", "a", "b", "true"),
            {"b", "2", "a", "true", "10"},
        ),
        (["10", "9", "-1"], ("-1", "9", "10"), {"10", "9", "-1"}),
        (
            [["b", 2], [], "b,c", "y, z,", ""],
            ("2", "b", "c", "y", "z"),
            {("b", "2"), (), ("b", "c"), ("y", "z")},
        ),
    ],
)
def test_labels_of_the_training_data_are_sorted(tmp_path, cells, labels, found):
    rows = [{"text": f"a {n}", "label": c} for n, c in enumerate(cells)]
    write_jsonl(tmp_path / "train.jsonl", *rows)
    is_multilabel = isinstance(cells[0], list)
    task_type = "multilabel" if is_multilabel else "classification"
    task = make(tmp_path, "jsonl", task_type=task_type)
    assert task.labels == labels
    assert {example.label for example in task.data.read("train")} == found


@pytest.fixture
def trained(tmp_path):
    """A directory with data, and in `out` the task.json of a model for it."""
    write(tmp_path / "train.csv", "text,label\na,y\nb,n\n")
    (tmp_path / "out").mkdir()
    described = json.dumps(make(tmp_path).to_json())
    write(tmp_path / "out" / "task.json", described)
    return tmp_path


def test_run_that_does_not_train_uses_the_labels_of_the_model(trained):
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
def test_model_of_another_task_is_an_error(trained, monkeypatch, flags, key):
    monkeypatch.chdir(trained)
    write(trained / "labels", "y\nn\n")
    for split in ("train", "dev"):
        write(trained / f"{split}.csv", "text,label\na,y\nb,x\n")
    with pytest.raises(InputError, match=rf"task\.json: .*`{key}`"):
        run_classifier.main(tiny.options(trained, task_name="csv", **flags))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("dev.csv", "text,Label\na,y\n", r"label, .* Received: text, Label"),
        ("test.csv", "text,LABEL\na,y\n", r"Received: text, LABEL"),
        ("test.csv", "text,id\na,1\n", None),
        ("test.csv", "text,label\na,0\nb,1\n", r"n, y\. Received: 0, 1\."),
        ("test.csv", "text,label\na,-1\nb,-1\n", None),  # -1: no label.
        ("test.csv", "text\na\n", None),
        ("test.csv", "text,label\na,y\nb,\"['n']\"\n", "not a list"),
    ],
)
def test_wrong_columns_or_labels_are_an_error(
    tmp_path, caplog, file, text, message
):
    caplog.set_level("INFO", logger="absl")
    write(tmp_path / "train.csv", "text,label\na,y\nb,n\n")
    write(tmp_path / file, text)
    if not message:
        assert make(tmp_path).data.read("test")[0].label is None
        is_logged = "y. Received: -1. The test set is not ev" in caplog.text
        assert is_logged == ("-1" in text)
        return
    with pytest.raises(InputError, match=rf"{file}:.*{message}"):
        make(tmp_path).data.read("test")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("1e300 2e300", r"Received: 5e.* Use another unit"),
        ("1e20 2e20", r"Received: 5e.* Use another unit"),
        ("1e-20 2e-20", r"Received: 5e.* Use another unit"),
        ("16777216 16777218", r"Received: 1, with a mean of 16777217\."),
    ],
)
def test_numbers_that_float32_lacks_are_an_error(tmp_path, numbers, message):
    one, other = numbers.split()
    write(tmp_path / "train.csv", f"text,label\na,{one}\nb,{other}\n")
    with pytest.raises(InputError, match=message):
        make(tmp_path, task_type="regression")


@pytest.mark.parametrize("first", ["text", "text,label", "so bad", ""])
def test_header_that_only_the_test_data_has_is_a_warning(
    tmp_path, caplog, first
):
    write(tmp_path / "train.csv", "so good,y\nvery bad,n\n")
    label = ",y" * ("," in first)
    write(tmp_path / "test.csv", f"{first}\nnot good{label}\nvery odd{label}\n")
    flags = {"text_a_column": "0", "label_column": "1", "has_header": False}
    assert len(make(tmp_path, **flags).data.read("test")) == 2 + bool(first)
    is_warned = "test.csv:1: this line is an example, too" in caplog.text
    assert is_warned == first.startswith("text")


def test_number_in_another_format_is_an_error_in_test_data(tmp_path):
    write(tmp_path / "train.csv", "text,label\na,1\nb,2\n")
    write(tmp_path / "test.csv", "text,label\na,1\nb,1399 €\n")
    with pytest.raises(InputError, match=r"test\.csv:3: .* 1399\.5"):
        make(tmp_path, task_type="regression").data.read("test")


def test_held_out_rows_keep_all_columns(tmp_path):
    rows = "".join(f"{i},a {i},{i % 2},,Ä\n" for i in range(20))
    write(tmp_path / "t.csv", f"id,text,label,empty,note\n{rows}")
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
    write(tmp_path / "a.csv", "text,label\n" + "".join(rows))
    for name, part in (("b1", rows[:15]), ("b2", rows[15:])):
        write(tmp_path / f"{name}.csv", "text,label\n" + "".join(part))
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
    assert finetune.data_files(two, options) == {"training data": names}
    write(tmp_path / "b2.csv", "text,label\na,0\nb,\nc,\n")
    message = r"b2\.csv:3: .*empty.*errors: lines .*b2\.csv:3, .*b2\.csv:4\."
    with pytest.raises(InputError, match=message):
        make(tmp_path, train_file=str(tmp_path / "b*.csv"), do_predict=False)


ERRORS = """file,line,label,prediction,probability,text
{path},5,y,n,0.900000,"d, e"
{path},3,n,y,0.600000,b
"""
SUSPECTS = """file\tline\tlabel\tprediction\tlabel_probability\ttext
{path}\t5\ty\tn\t0.100000\td, e
{path}\t3\tn\ty\t0.400000\tb
"""
MULTILABEL_ERRORS = """text,label,prediction,probability,text
"d, e",y,n,0.810000,"d, e"
b,"n,y",,0.360000,b
"""
MULTILABEL_SUSPECTS = """text\tlabel\tprediction\tlabel_probability\ttext
d, e\ty\tn\t0.010000\td, e
b\tn,y\t\t0.160000\tb
"""


@pytest.mark.parametrize(
    ("flags", "labels", "answers", "errors", "suspects"),
    [
        (
            {},
            "ynny",
            [[0.1, 0.9], [0.4, 0.6], [0.7, 0.3], [0.9, 0.1]],
            *(ERRORS, SUSPECTS),
        ),
        (
            # The probability of no label is 0.6 * 0.6.
            {"task_type": "multilabel", "id_column": "text"},
            ["", "n y", "n", "y"],
            [[0.1, 0.2], [0.4, 0.4], [0.5, 0.1], [0.9, 0.1]],
            *(MULTILABEL_ERRORS, MULTILABEL_SUSPECTS),
        ),
    ],
)
def test_wrong_answers_are_listed_with_the_most_probable_first(
    tmp_path, flags, labels, answers, errors, suspects
):
    texts = ["a", "b", "c", '"d, e"']
    rows = zip(texts, labels, strict=True)
    lines = [f'{text},"{label.replace(" ", ",")}"\n' for text, label in rows]
    for split in ("train", "dev"):
        write(tmp_path / f"{split}.csv", "text,label\n" + "".join(lines))
    task = make(tmp_path, **flags)
    assert task.labels == ("n", "y")
    wrong = [*task.wrong_answers(task.data.read("dev"), np.array(answers))]
    path = str(tmp_path / "dev.csv")
    found = tables.to_csv(task.data.wrong_rows(wrong, "probability"))
    assert found == errors.replace("{path}", path)
    found = tables.to_tsv(task.data.wrong_rows(wrong, "label_probability"))
    assert found == suspects.replace("{path}", path)


def test_unknown_task_name_or_single_label_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"--task_name.*mrcp.*mean mrpc\?"):
        make(tmp_path, "mrcp")
    write(tmp_path / "train.csv", "text,label\na,1\nb,1\n")
    with pytest.raises(InputError, match=r"\['1'\] in column 'label'"):
        make(tmp_path)


@pytest.mark.parametrize(
    ("task_name", "ending", "header", "line"),
    [
        ("csv", "csv", "text,label\n", "{},{}\n"),
        ("choices", "csv", "context,A,B,label\n", "{},b,c,{}\n"),
        ("pos", "txt", "", "w{} {}\n\n"),
        (
            "swag",
            "csv",
            "sent1,sent2,ending0,ending1,ending2,ending3,label\n",
            "{},a,b,c,d,e,{}\n",
        ),
    ],
)
def test_training_data_is_shuffled_and_other_data_is_not(
    tmp_path, task_name, ending, header, line
):
    names = [str(i) for i in range(100)]
    rows = "".join(line.format(i, i // 50) for i in range(100))
    for split in ("train", "dev", "val"):
        write(tmp_path / f"{split}.{ending}", header + rows)
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


def write_data(folder, make_label):
    """Writes 320, 100 and 40 examples; returns those of the test set."""
    sizes = {"train": 320, "dev": 100, "test": 40}
    for seed, (split, number) in enumerate(sizes.items()):
        rows = [
            {"text": text, "id": f"n{i}", "label": make_label(text)}
            for i, text in enumerate(tiny.texts(number, seed, longest=6))
        ]
        write_jsonl(folder / f"{split}.jsonl", *rows)
    return rows


def run(folder, **flags):
    flags = {"task_name": "jsonl", "id_column": "id", **flags}
    return tiny.run(folder, **flags)


def read_scores(output):
    return np.loadtxt(output / "test_results.tsv", ndmin=2)


@pytest.mark.trains
@pytest.mark.slow
def test_multilabel_run_on_windows_learns_and_predicts_later(tmp_path):
    names = ["rain", "sun"]
    rows = write_data(tmp_path, lambda text: [n for n in names if n in text])
    windows = {"mode": "windows", "stride": 1, "pooling": "max"}
    flags = {f"window_{name}": windows[name] for name in ("stride", "pooling")}
    flags |= {"long_document": "windows", "max_seq_length": 7}
    flags |= {"task_type": "multilabel", "num_train_epochs": 12.0}
    output, results = run(tmp_path, **flags)
    assert results["micro_f1"] > 0.9
    assert results["exact_match"] > 0.9
    assert set(results["per_class"]) == set(names)
    described = read_json(output / "task.json")
    assert described["labels"] == names
    assert described["long_documents"] == windows
    # Windows of 5 tokens start at every token.
    lengths = [len(text.split()) for text in tiny.texts(320, 0, longest=6)]
    records = tf.data.TFRecordDataset(str(output / "train.tf_record"))
    assert len(list(records)) == sum(max(1, size - 4) for size in lengths)
    predictions = tiny.predictions(output)
    assert [name for name, _ in predictions] == [row["id"] for row in rows]
    found = [set(filter(None, labels.split(","))) for _, labels in predictions]
    expected = [set(row["label"]) for row in rows]
    assert sum(map(operator.eq, found, expected)) > 36
    is_likely = read_scores(output) >= 0.5
    assert found == [set(np.compress(row, names)) for row in is_likely]
    (tmp_path / "train.jsonl").unlink()
    (output / "test_predictions.tsv").unlink()
    run(tmp_path, task_type="multilabel", do_train=False, do_eval=False)
    assert tiny.predictions(output) == predictions


@pytest.mark.trains
@pytest.mark.slow
def test_regression_run_learns_and_predicts_in_the_units_of_the_data(tmp_path):
    rows = write_data(
        tmp_path,
        lambda text: 1000 + 50 * ("good" in text) - 30 * ("bad" in text),
    )
    output, results = run(tmp_path, task_type="regression", eval_every=20)
    lines = (tmp_path / "train.jsonl").read_text().splitlines()
    numbers = np.array([json.loads(line)["label"] for line in lines])
    described = read_json(output / "task.json")
    assert described["labels"] == []
    assert described["target_mean"] == pytest.approx(numbers.mean())
    assert described["target_deviation"] == pytest.approx(numbers.std())
    assert results["pearson"] > 0.9
    assert results["spearmanr"] > 0.8
    # The loss is that of standardized targets in float32.
    expected = pytest.approx(results["mean_squared_error"], rel=1e-4)
    assert results["eval_loss"] == expected
    found = pretraining_runs.results(output)
    assert found["eval_pearson"] == pytest.approx(results["pearson"])
    predicted = read_scores(output)[:, 0]
    scores = [float(score) for _, score in tiny.predictions(output)]
    assert scores == pytest.approx(predicted)
    labels = np.array([row["label"] for row in rows])
    tested = read_json(output / "predict_results.json")
    assert tested["pearson"] > 0.9
    error = tested["mean_squared_error"]
    assert error == pytest.approx(np.mean((labels - predicted) ** 2), rel=1e-4)
    assert error < labels.var() / 4
    answers = Predictor.from_dir(str(output))([row["text"] for row in rows])
    found = [answer["score"] for answer in answers]
    np.testing.assert_allclose(found, predicted, rtol=1e-5)


def test_one_tenth_of_each_class_is_held_out():
    labels = ["rare"] * 20 + ["common"] * 180 + ["single"]
    chosen = hold_out(range(201), labels, 0.1)
    counts = collections.Counter(labels[i] for i in chosen)
    assert counts == {"rare": 2, "common": 18}
    chosen = hold_out(range(100), [float(i) for i in range(100)], 0.1)
    assert np.histogram(list(chosen), 10, (0, 100))[0].tolist() == [1] * 10
    assert len(hold_out("xy", ["a", "a"], 0.1)) == 1


def test_equal_texts_are_held_out_together():
    texts = [f"text {i % 40}" for i in range(200)]
    chosen = hold_out(texts, ["a"] * 200, 0.1)
    others = {*range(200)} - chosen
    assert len(chosen) == 20
    assert {texts[i] for i in chosen}.isdisjoint(texts[i] for i in others)


def test_texts_that_differ_in_case_and_spaces_are_in_the_same_part(
    tmp_path, caplog
):
    rows = [f"{text} {i},{i % 2}\n" for i in range(40) for text in ("a", " A ")]
    write(tmp_path / "t.csv", "text,label\n" + "".join(rows))
    write(tmp_path / "u.csv", "text,label\nA  7,1\nnew,0\n")
    flags = {"train_file": str(tmp_path / "t.csv"), "dev_share": 0.3}
    data = make(tmp_path, **flags, test_file=str(tmp_path / "u.csv")).data
    train, dev = (
        {" ".join(e.text_a.lower().split()) for e in data.read(split)}
        for split in ("train", "dev")
    )
    assert (len(train | dev), len(train & dev)) == (40, 0)
    data.read("test")
    assert "a 7" in train
    assert "1 of 2 texts are also in the training data" in caplog.text


def test_held_out_share_is_a_share_of_rows_even_if_texts_repeat():
    # One text is too frequent to be held out.
    texts = ["same"] * 30 + [f"text {i // 2}" for i in range(170)]
    labels = [("b",)] * 30 + [("a",)] * 100 + [("b",)] * 70
    chosen = hold_out(texts, labels, 0.1)
    assert "same" not in {texts[i] for i in chosen}
    assert 16 <= len(chosen) <= 18
    assert sum(labels[i] == ("a",) for i in chosen) == 10
    assert len(hold_out(["a", "b"] * 50, ["x"] * 100, 0.1)) == 50


def test_folds_have_the_same_share_of_each_class_and_equal_texts_together():
    random = np.random.default_rng(0)
    labels = random.choice(list("abc"), 203, p=[0.7, 0.2, 0.1])
    folds = np.array(assign_folds(range(203), labels, 5))
    for label in "abc":
        counts = np.bincount(folds[labels == label], minlength=6)[1:]
        assert max(counts) - min(counts) <= 1
    texts = [f"text {i // 3}" for i in range(90)]
    folds = assign_folds(texts, ["a"] * 90, 4)
    assert len({*zip(texts, folds, strict=True)}) == 30
    assert sorted(collections.Counter(folds).values()) == [21, 21, 24, 24]
    numbers = [float(i) for i in range(100)]
    folds = np.array(assign_folds(range(100), numbers, 10))
    assert all(np.ptp(np.flatnonzero(folds == n)) >= 80 for n in range(1, 11))


def rows_with(*labels):
    cells = [f"t{i},{label}\n" for i, label in enumerate(labels)]
    return "".join(["text,label\n", *cells])


@pytest.mark.parametrize(
    ("value", "task_type", "weights"),
    [
        ("none", "classification", ()),
        # 6 examples of 3 classes: 6 / (3 * 3), 6 / (3 * 2), 6 / (3 * 1).
        ("balanced", "classification", (2 / 3, 1, 2)),
        ("b=x=2.5,a=7", "classification", (7, 1, 2.5)),
        # Negatives / positives.
        ("balanced", "multilabel", (3 / 3, 4 / 2, 5 / 1)),
        ("b=x=2.5", "multilabel", (1, 1, 2.5)),
    ],
)
def test_class_weights_are_balanced_or_named(
    tmp_path, value, task_type, weights
):
    labels = ["a", "a", "a", "b", "b", "b=x"]
    write(tmp_path / "train.csv", rows_with(*labels))
    task = make(tmp_path, class_weights=value, task_type=task_type)
    found = task.class_weights(task.data.read("train"))
    assert found == pytest.approx(weights)
    assert "weighting" not in task.to_json()


@pytest.mark.parametrize("rare", ["a", "b"])
def test_balanced_weight_of_labels_without_examples_is_one(tmp_path, rare):
    write(tmp_path / "train.csv", rows_with("a", "a"))
    write(tmp_path / "labels", "a\nb\n")
    for task_type in ("classification", "multilabel"):
        flags = {"task_type": task_type, "label_file": str(tmp_path / "labels")}
        task = make(tmp_path, class_weights="balanced", **flags)
        assert task.class_weights(task.data.read("train")) == (1.0, 1.0)


NUMBER, NER = "--task_type=regression", "--task_name=ner"


def train_with(folder, flags):
    """Trains on small files of all kinds; the development set has one class."""
    labels = "12" if NUMBER in flags else "ab"
    write(folder / "train.csv", rows_with(*labels))
    write(folder / "dev.csv", rows_with(labels[0]))
    write(folder / "two", "1\n2\n")
    write(folder / "one", "1\n")
    for split in ("train", "dev"):
        write(folder / f"{split}.txt", "word O\n\nBonn B-LOC\n")
    line = f"--data_dir={folder} --task_name=csv --do_train --do_eval {flags}"
    run_classifier.main(tiny.parse(folder, "--max_seq_length=9", *line.split()))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--class_weights=c=2", "must name labels .*: a, b. Received: 'c'"),
        ("--class_weights=a=2,a=3", "each once: .* Received: 'a'"),
        ("--class_weights=a=0", "weights above 0"),
        ("--class_weights=a=1e39", r"above 0 and below 1e\+30"),
        ("--class_weights=a=2,", "must be none, balanced, or"),
        ("--class_weights=Balanced", "must be none, balanced, or"),
        ("--class_weights=a=2=b", "must be none, balanced, or"),
        ("--label_file=one", "one must have at least two .* only '1'. Add"),
        (
            f"--label_file=one {NER}",
            "one must have at least two labels, .* only '1'. Add the others",
        ),
        # The development set has one class, so it has no ROC AUC.
        ("--best_metric=roc_auc", "one of accuracy, balanced_accuracy, mac"),
    ],
)
def test_wrong_weights_labels_and_metrics_are_an_error(
    tmp_path, monkeypatch, flags, message
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        train_with(tmp_path, flags)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (f"--class_weights=balanced {NUMBER}", "classification, .*Omit"),
        (f"--class_weights=balanced {NER}", "classification, .*Omit"),
        (f"--label_smoothing=0.1 {NUMBER}", ".*: text, regression. Omit"),
        (f"--weight_column=text {NER}", ".* Received: tagging, tags. Omit it"),
        (f"--best_metric=f1 {NER}", ""),
        (f"--long_document=windows {NER}", ".* Received: tagging, tags"),
        ("--choices_column=A,B", "choices. Rec"),
        ("--tag_column=1", "tags. Received: text, cl"),
        (f"--label_file=two {NUMBER}", "classification, multilabel, tags. Rec"),
    ],
)
def test_flag_of_other_tasks_is_an_error(tmp_path, monkeypatch, flags, names):
    monkeypatch.chdir(tmp_path)
    message = f"{flags.split()[0]} is for {names}"
    with pytest.raises(InputError, match=message):
        train_with(tmp_path, flags)


def test_weights_are_read_from_the_training_data_only(tmp_path):
    write(tmp_path / "train.csv", "n,text,label\n0.5,a,x\n0,b,y\n2,c,x\n")
    write(tmp_path / "dev.csv", "text,label\na,x\n")
    task = make(tmp_path, weight_column="n", do_eval=True)
    training = {e.text_a: e.weight for e in task.data.read("train")}
    assert training == {"a": 0.5, "b": 0.0, "c": 2.0}
    assert [e.weight for e in task.data.read("dev")] == [None]
    assert "has_weights" not in task.to_json()


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (
            "1 -1 0",
            r"train.csv:3: .*'weight' must be a weight: .*Received: '-1'",
        ),
        ("1 nan inf", r"train.csv:3: .* 'nan'.* 2 of 3 rows .*: lines 3, 4"),
        ("1 0 x", r"train.csv:4: .* 0 to 1e\+30. Received: 'x'"),
        ("1 0 1e39", r"train.csv:4: .* Received: '1e39'"),  # Not in float32.
        ("0 1e-60 0", r"'weight' of .*train.csv' must have a weight above 0"),
    ],
)
def test_negative_weight_or_no_number_is_an_error(tmp_path, cells, message):
    rows = [f"t{i},{'ab'[i % 2]},{c}\n" for i, c in enumerate(cells.split())]
    write(tmp_path / "train.csv", "".join(["text,label,weight\n", *rows]))
    with pytest.raises(InputError, match=message):
        make(tmp_path, weight_column="weight")


@pytest.mark.parametrize(
    ("num_rare", "flags", "metric"),
    [
        (2, {}, "accuracy"),  # Of 10: the others are not more than 80%.
        (1, {}, "macro_f1"),
        (1, {"best_metric": "accuracy"}, "accuracy"),
        (1, {"task_type": "multilabel"}, "micro_f1"),
        (2, {"best_metric": "roc_auc"}, "roc_auc"),
    ],
)
def test_rare_classes_are_compared_by_macro_f1(
    tmp_path, num_rare, flags, metric
):
    labels = ["a"] * (10 - num_rare) + ["b"] * num_rare
    write(tmp_path / "train.csv", rows_with(*labels))
    task = make(tmp_path, **flags)
    assert task.main_metric == metric
    # Later commands know the metric from task.json, without training data.
    (tmp_path / "out").mkdir()
    write(tmp_path / "out" / "task.json", json.dumps(task.to_json()))
    (tmp_path / "train.csv").unlink()
    flags = flags | {"do_train": False, "best_metric": ""}
    assert make(tmp_path, **flags).main_metric == metric


@pytest.mark.trains
@pytest.mark.slow
def test_weights_of_examples_and_of_classes_decide_what_is_learned(tmp_path):
    """A large class has examples without weight, a rare one a large weight."""
    write_data(tmp_path, lambda text: "often")
    rows = [
        {"text": text, "id": i, "label": label, "weight": int(label != "never")}
        for i, text in enumerate(tiny.texts(320, 0, longest=6))
        for label in ("never", "rare" if text[0] == "?" else "often")
    ]
    write_jsonl(tmp_path / "train.jsonl", *rows)
    flags = {"weight_column": "weight", "class_weights": "rare=1e4,never=1e4"}
    output, _ = run(
        tmp_path, num_train_epochs=2.0, train_batch_size=32, **flags
    )
    predicted = {prediction for _, prediction in tiny.predictions(output)}
    assert predicted == {"rare"}
