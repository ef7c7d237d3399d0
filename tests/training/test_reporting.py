import math
import os
import re
import sys

import numpy as np
import pytest
from support import review_runs, tiny
from support.own_tables import text_task, texts

from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.conll import Sentence
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask, Tags
from official_bert.training import loop, reporting

TAGGER = TaggingTask(labels=("X", "O"))


@pytest.mark.parametrize(
    ("task", "answers", "message"),
    [
        (text_task(), np.array([[0.6, 0.4], [0.7, 0.3]]), "all 2 .* 'a'"),
        (text_task(), np.array([[0.6, 0.4], [0.3, 0.7]]), None),
        (ChoiceTask(num_choices=2), np.array([[0.6, 0.4]] * 3), "all 3 .* '0'"),
        (TAGGER, [Tags(["O", "O"], []), Tags(["O"], [])], "all 3 .* 'O'"),
        (SquadTask(), [None, None], None),
    ],
)
def test_predicting_a_single_class_is_a_warning(caplog, task, answers, message):
    predictions = task.predictions(answers)
    tagged = Sentence(["x", "y"], ["B-X", "O"], ["x", "y"])
    examples = [tagged] if task.kind == "tagging" else texts("b", "a")
    reporting.warn_of_one_class("dev", task, predictions, examples)
    assert len(caplog.records) == (message is not None)
    if message:
        assert re.search(f"dev: {message}", caplog.text)
        assert "train for more steps" in caplog.text


@pytest.mark.parametrize(
    ("task", "answer", "labels", "hint"),
    [
        (text_task(), [0.9, 0.1], "aaaaab", "--threshold=b=0.2"),
        (text_task(labels=("a", "b", "c")), [0.9, 0, 0.1], "aaaaaac", None),
        (text_task("multilabel"), [0.1, 0.2], ["", *"ab"], "--threshold=0.2"),
        (text_task(labels=("a", "a b")), [0.9, 0.1], "a" * 6, "'--thr.*=a b="),
    ],
)
def test_advice_for_rare_classes_is_weights_and_a_threshold(
    caplog, task, answer, labels, hint
):
    predictions = task.predictions([np.array(answer)] * len(labels))
    examples = texts(*labels)
    reporting.warn_of_one_class("dev", task, predictions, examples)
    assert "train with --class_weights=balanced" in caplog.text
    assert ("--threshold" in caplog.text) == (hint is not None)
    assert re.search(hint or "", caplog.text)
    assert "more steps" not in caplog.text


@pytest.mark.parametrize(
    ("accuracy", "baseline", "warns"),
    [
        (0.5, {"accuracy": 0.5}, True),
        (0.6, {"accuracy": 0.5}, False),
        (1.0, {"accuracy": 1.0}, False),
        (0.5, {}, False),
        (math.nan, {"accuracy": math.nan}, False),
    ],
)
def test_model_that_is_not_better_than_the_baseline_is_a_warning(
    tmp_path, caplog, accuracy, baseline, warns
):
    options = tiny.options(tmp_path, train_batch_size=8, num_train_epochs=3.0)
    metrics = {"accuracy": accuracy}
    reporting.warn_unless_better("dev", text_task(), options, metrics, baseline)
    message = "dev: accuracy is not better than the baseline. Try more steps"
    assert (f"{message} (--num_train_ep" in caplog.text) == warns


@pytest.mark.parametrize(
    ("baseline", "class_weights", "advice"),
    [
        ({"accuracy": 0.9}, "none", "--class_weights=balanced"),
        ({"accuracy": 0.9}, "balanced", "larger --class_weights"),
        ({"accuracy": 0.9}, "a=2", "larger --class_weights .* --threshold"),
        ({"accuracy": 0.6}, "none", "more steps"),
        ({"micro_f1": 0.0}, "none", "--class_weights=balanced"),
    ],
)
def test_advice_for_rare_labels_is_class_weights_and_not_more_steps(
    tmp_path, caplog, baseline, class_weights, advice
):
    baseline["macro_f1"] = 0.4
    options = tiny.options(tmp_path, class_weights=class_weights)
    task = text_task(best_metric="macro_f1")
    reporting.warn_unless_better(
        "dev", task, options, {"macro_f1": 0.4}, baseline
    )
    assert re.search(f"Try {advice}", caplog.text)
    assert ("more steps" in caplog.text) == (advice == "more steps")


@pytest.mark.parametrize(
    ("batch_size", "epochs", "flags"),
    [
        (32, 3.0, "--train_batch_size=8 --num_train_epochs=20"),
        (8, 3.0, "--num_train_epochs=20"),
        (32, 20.0, "--train_batch_size=8"),
        (4, 30.0, ""),
    ],
)
def test_advice_for_more_steps_is_not_what_the_run_has(
    tmp_path, batch_size, epochs, flags
):
    values = {"train_batch_size": batch_size, "num_train_epochs": epochs}
    assert tiny.options(tmp_path, **values).more_steps == flags
    values["task_type"] = "embedding"  # Larger batches have more negatives.
    epochs_only = flags.replace("--train_batch_size=8", "").strip()
    assert tiny.options(tmp_path, **values).more_steps == epochs_only


def test_table_is_logged_for_reused_records_too(tmp_path, caplog, monkeypatch):
    caplog.set_level("INFO", logger="absl")
    monkeypatch.setattr(loop, "train", lambda *_: None)
    review_runs.write(tmp_path)
    for _ in range(2):
        review_runs.run(tmp_path, do_train=True, max_seq_length=16)
    logged = [record.getMessage() for record in caplog.records]
    found = [text for text in logged if text.startswith("The data:")]
    assert found == [found[0]] * 2
    lengths = [len(a.split()) + 2 for a, _ in review_runs.sentences(160, 160)]
    share = np.mean(np.array(lengths) >= 16)
    for row in (
        ["examples", "160"],
        ["tokens,", "50%", str(np.percentile(lengths, 50, method="higher"))],
        ["tokens,", "max", "16"],
        ["16", "tokens", "or", "more", f"{share:.1%}"],
    ):
        assert row in [line.split() for line in found[0].splitlines()]


def test_metrics_are_printed_beside_those_of_the_baseline(capsys):
    task = text_task(labels=("a", "b"))
    baseline = task.baseline(texts("b", "a", "b"), texts("b", "a", "a", "b"))
    assert baseline["accuracy"] == 0.5
    assert baseline["confusion_matrix"] == [[0, 2], [0, 2]]
    metrics = {"eval_loss": 0.25, "loss": 0.3, "accuracy": 2 / 3, "total": 4000}
    name = task.baseline_name
    reporting.print_metrics("dev, 4 examples", metrics, baseline, name)
    metrics = {"loss": np.float32(1.5), "per_class": {}}
    reporting.print_metrics("dev_mismatched, 9,832 examples", metrics)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "dev, 4 examples              model  baseline",
        "eval_loss                   0.2500         -",
        "accuracy                    0.6667    0.5000",
        "total                        4,000         -",
        "Baseline: always the most frequent label.",
        "",
        "dev_mismatched, 9,832 examples     model",
        "loss                              1.5000",
    ]


def test_baseline_is_the_mean_or_the_labels_of_at_least_half():
    task = text_task("regression", ())
    assert task.baseline_name == "always the mean"
    found = task.baseline(texts(1.0, 3.0), texts(1.0, 2.0, 6.0))
    assert found["mean_squared_error"] == pytest.approx((1 + 0 + 16) / 3)
    task = text_task("multilabel")
    assert "at least half of the training data" in task.baseline_name
    found = task.baseline(texts(("a",), ("a", "b"), ()), texts(("a",), ("b",)))
    assert found["exact_match"] == 0.5  # Always {a}.


@pytest.mark.parametrize("open_pair", [os.pipe, os.openpty])
def test_metrics_need_nobody_to_read_them(open_pair, monkeypatch):
    reader, writer = open_pair()
    os.close(reader)
    with open(writer, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        for _ in range(2):
            reporting.print_metrics("dev", {"accuracy": 1.0})
