"""Flags of some tasks: class weights, labels and metrics."""

import pytest
from support import tiny
from support.own_tables import make, rows_with

from official_bert.commands import run_classifier
from official_bert.errors import InputError


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
def test_class_weights_are_balanced_or_set(tmp_path, value, task_type, weights):
    labels = ["a", "a", "a", "b", "b", "b=x"]
    (tmp_path / "train.csv").write_text(rows_with(*labels))
    task = make(tmp_path, class_weights=value, task_type=task_type)
    found = task.class_weights(task.data.read("train"))
    assert found == pytest.approx(weights)
    assert "weighting" not in task.to_json()


@pytest.mark.parametrize("rare", ["a", "b"])
def test_balanced_weight_of_labels_without_examples_is_one(tmp_path, rare):
    (tmp_path / "train.csv").write_text(rows_with("a", "a"))
    (tmp_path / "labels").write_text("a\nb\n")
    for task_type in ("classification", "multilabel"):
        flags = {"task_type": task_type, "label_file": str(tmp_path / "labels")}
        task = make(tmp_path, class_weights="balanced", **flags)
        assert task.class_weights(task.data.read("train")) == (1.0, 1.0)


NUMBER, NER = "--task_type=regression", "--task_name=ner"


def train_with(folder, flags):
    """Trains on small files of all kinds; the development set has one class."""
    labels = "12" if NUMBER in flags else "ab"
    (folder / "train.csv").write_text(rows_with(*labels))
    (folder / "dev.csv").write_text(rows_with(labels[0]))
    (folder / "two").write_text("1\n2\n")
    (folder / "one").write_text("1\n")
    for split in ("train", "dev"):
        (folder / f"{split}.txt").write_text("word O\n\nBonn B-LOC\n")
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
        (f"--label_file=one {NER}", "one must have at least two .* only '1'."),
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
