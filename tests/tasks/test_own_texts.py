"""The user's own texts, and runs on them."""

import csv
import operator

import numpy as np
import pytest
import tensorflow as tf
from support import pretraining_runs, tiny, write_json, write_json_lines
from support.own_tables import make, rows_with
from support.run_outputs import read_json

from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.io import tables


@pytest.fixture
def trained(tmp_path):
    """A directory with data, and in `out` the task.json of a model for it."""
    (tmp_path / "train.csv").write_text("text,label\na,y\nb,n\n")
    write_json(tmp_path / "out" / "task.json", make(tmp_path).to_json())
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
        ({"do_train": False, "task_name": "ner"}, "kind"),
        ({"do_train": False, "label_file": "labels"}, "labels"),
        ({}, "labels"),
    ],
)
def test_model_of_another_task_is_an_error(trained, monkeypatch, flags, key):
    monkeypatch.chdir(trained)
    csv = {"task_name": "csv"}
    (trained / "labels").write_text("y\nn\n")
    for split in ("train", "dev"):
        (trained / f"{split}.csv").write_text("text,label\na,y\nb,x\n")
    with pytest.raises(InputError, match=rf"task\.json: .*`{key}`"):
        run_classifier.main(tiny.options(trained, **{**csv, **flags}))


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ("1.6e308 1.7e308", r"Received: inf.* Use another unit"),
        ("1e20 2e20", r"Received: 5e.* Use another unit"),
        ("1e-20 2e-20", r"Received: 5e.* Use another unit"),
        ("16777216 16777218", r"Received: 1, with a mean of 16777217\."),
    ],
)
def test_numbers_that_float32_lacks_are_an_error(tmp_path, numbers, message):
    one, other = numbers.split()
    (tmp_path / "train.csv").write_text(f"text,label\na,{one}\nb,{other}\n")
    with pytest.raises(InputError, match=message):
        make(tmp_path, task_type="regression")


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
CLASSES = [[0.1, 0.9], [0.4, 0.6], [0.7, 0.3], [0.9, 0.1]]
SETS = [[0.1, 0.2], [0.4, 0.4], [0.5, 0.1], [0.9, 0.1]]


@pytest.mark.parametrize(
    ("flags", "labels", "answers", "errors", "suspects"),
    [
        ({}, "ynny", CLASSES, ERRORS, SUSPECTS),
        (
            # The probability of no label is 0.6 * 0.6.
            {"task_type": "multilabel", "id_column": "text"},
            *(["", "n y", "n", "y"], SETS),
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
        (tmp_path / f"{split}.csv").write_text("text,label\n" + "".join(lines))
    task = make(tmp_path, **flags)
    assert task.labels == ("n", "y")
    wrong = [*task.wrong_answers(task.data.read("dev"), np.array(answers))]
    path = str(tmp_path / "dev.csv")
    found = tables.to_csv(task.data.wrong_rows(wrong, "probability"))
    assert found == errors.replace("{path}", path)
    found = tables.to_tsv(task.data.wrong_rows(wrong, "label_probability"))
    assert found == suspects.replace("{path}", path)


def test_several_labels_with_commas_are_json_lists_in_tables(tmp_path):
    rows = [{"text": "a", "label": ["jazz", "rock, pop"]}]
    rows.append({"text": "b", "label": ["jazz"]})
    write_json_lines(tmp_path / "train.jsonl", rows)
    task = make(tmp_path, "jsonl", task_type="multilabel")
    assert task.labels == ("jazz", "rock, pop")
    answers = np.array([[0.2, 0.1], [0.9, 0.8]])
    examples = sorted(task.data.training, key=lambda example: example.text_a)
    wrong = [*task.wrong_answers(examples, answers)]
    [_, *rows] = task.data.wrong_rows(wrong, "probability")
    both = '["jazz", "rock, pop"]'
    assert {row[2:4] for row in rows} == {("jazz", both), (both, "")}
    files = task.prediction_files("test", examples, answers)
    lines = files["test_predictions.tsv"].splitlines()
    predicted = [cell for _, cell in csv.reader(lines, delimiter="\t")]
    assert predicted == ["prediction", "", both]


def test_unknown_task_name_or_single_label_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"--task_name.*mrcp.*mean mrpc\?"):
        make(tmp_path, "mrcp")
    (tmp_path / "train.csv").write_text("text,label\na,1\nb,1\n")
    with pytest.raises(InputError, match=r"\['1'\] in column 'label'"):
        make(tmp_path)


def write_data(folder, make_label):
    """Writes 320, 100 and 40 examples; returns those of the test set."""
    sizes = {"train": 320, "dev": 100, "test": 40}
    for seed, (split, number) in enumerate(sizes.items()):
        rows = [
            {"text": text, "id": f"n{i}", "label": make_label(text)}
            for i, text in enumerate(tiny.texts(number, seed, longest=6))
        ]
        write_json_lines(folder / f"{split}.jsonl", rows)
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
    def make_label(text):
        return 1000 + 50 * ("good" in text) - 30 * ("bad" in text)

    rows = write_data(tmp_path, make_label)
    output, results = run(tmp_path, task_type="regression", eval_every=20)
    texts = tiny.texts(320, 0, longest=6)
    numbers = np.array([make_label(text) for text in texts])
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


def test_texts_that_differ_in_case_or_spaces_stay_together(tmp_path, caplog):
    rows = [f"{text} {i},{i % 2}\n" for i in range(40) for text in ("a", " A ")]
    (tmp_path / "t.csv").write_text("text,label\n" + "".join(rows))
    (tmp_path / "u.csv").write_text("text,label\nA  7,1\nnew,0\n")
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


def test_weights_are_read_from_the_training_data_only(tmp_path, caplog):
    (tmp_path / "train.csv").write_text("n,text,label\n0.5,a,x\n0,b,y\n2,c,x\n")
    (tmp_path / "dev.csv").write_text("text,label\na,x\n")
    task = make(tmp_path, weight_column="n", do_eval=True)
    training = {e.text_a: e.weight for e in task.data.read("train")}
    assert training == {"a": 0.5, "b": 0.0, "c": 2.0}
    assert [e.weight for e in task.data.read("dev")] == [None]
    assert "has_weights" not in task.to_json()
    assert "train.csv' has only 0 for the labels y: they are" in caplog.text


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("1 -1 0", r"csv:3: .*'weight' must be a weight: .*Received: '-1'"),
        ("1 nan inf", r"train.csv:3: .* 'nan'.* 2 of 3 rows .*: lines 3, 4"),
        ("1 0 x", r"train.csv:4: .* 0 to 1e\+30. Received: 'x'"),
        ("1 0 1e39", r"train.csv:4: .* Received: '1e39'"),  # Not in float32.
        ("0 1e-60 0", r"'weight' of .*train.csv' must have a weight above 0"),
    ],
)
def test_negative_weight_or_no_number_is_an_error(tmp_path, cells, message):
    rows = [f"t{i},{'ab'[i % 2]},{c}\n" for i, c in enumerate(cells.split())]
    (tmp_path / "train.csv").write_text("".join(["text,label,weight\n", *rows]))
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
def test_rare_classes_are_judged_by_macro_f1(tmp_path, num_rare, flags, metric):
    labels = ["a"] * (10 - num_rare) + ["b"] * num_rare
    (tmp_path / "train.csv").write_text(rows_with(*labels))
    task = make(tmp_path, **flags)
    assert task.main_metric == metric
    # Later commands know the metric from task.json, without training data.
    write_json(tmp_path / "out" / "task.json", task.to_json())
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
    write_json_lines(tmp_path / "train.jsonl", rows)
    flags = {"weight_column": "weight", "class_weights": "rare=1e4,never=1e4"}
    output, _ = run(
        tmp_path, num_train_epochs=2.0, train_batch_size=32, **flags
    )
    predicted = {prediction for _, prediction in tiny.predictions(output)}
    assert predicted == {"rare"}
