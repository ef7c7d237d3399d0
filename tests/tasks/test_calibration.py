"""Calibration, from its functions to evaluated and predicting models."""

import json
import re

import numpy as np
import pytest
from scipy import optimize, special
from sklearn import metrics
from support import tiny
from support.run_outputs import read_json, read_json_lines

from official_bert.commands import predict, run_classifier
from official_bert.inference.predictor import Predictor
from official_bert.options import Predict
from official_bert.runs.directory import RunDirectory
from official_bert.runs.record import RunRecord
from official_bert.tasks import calibration
from official_bert.tasks.calibration import Calibration
from official_bert.tasks.text import TextColumns
from official_bert.tasks.text_types import TYPES


def drawn(num_examples, num_classes, temperature, seed=0):
    """Returns classes, drawn from calibrated probabilities, and raw ones."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(num_examples, num_classes)) * 3
    shares = special.softmax(logits / temperature, axis=1)
    targets = [random.choice(num_classes, p=row) for row in shares]
    return np.array(targets), np.float32(special.softmax(logits, axis=1))


def best_temperature(targets, scores):
    logits = np.log(np.float64(scores))

    def loss(log_temperature):
        scaled = logits / np.exp(log_temperature)
        return -special.log_softmax(scaled, 1)[
            range(len(logits)), targets
        ].mean()

    found = optimize.minimize_scalar(
        loss,
        bounds=np.log([0.1, 10]),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return np.exp(found.x)


@pytest.mark.parametrize("temperature", [0.5, 1.5, 4.0])
@pytest.mark.parametrize("num_classes", [2, 5])
def test_temperature_has_the_lowest_loss(num_classes, temperature):
    targets, scores = drawn(400, num_classes, temperature)
    found = calibration.fit_temperature(targets, scores)
    assert found == pytest.approx(best_temperature(targets, scores), rel=1e-4)
    assert found == pytest.approx(temperature, rel=0.3)
    expected = special.softmax(np.log(np.float64(scores)) / found, axis=1)
    rescaled = calibration.with_temperature(scores, found)
    np.testing.assert_allclose(rescaled, expected, rtol=2e-5)


def error_in_bins(targets, scores):
    """The formula of Guo et al. (2017), equation 5, with 15 bins."""
    confidence, predicted = scores.max(axis=1), scores.argmax(axis=1)
    total = 0.0
    for number in range(15):
        low, high = number / 15, (number + 1) / 15
        is_in = (confidence > low) & (confidence <= high)
        if is_in.any():
            accuracy = np.mean(predicted[is_in] == targets[is_in])
            gap = abs(accuracy - confidence[is_in].mean())
            total += is_in.mean() * gap
    return total


def test_calibration_error_is_cross_validated():
    targets, scores = drawn(300, 3, 3.0)
    fitted, found = calibration.fit(targets, scores, ["a", "b", "c"])
    assert fitted.thresholds == ()
    after, fold = np.zeros(scores.shape), np.arange(300) % 5
    for number in range(5):
        rest, part = fold != number, fold == number
        temperature = best_temperature(targets[rest], scores[rest])
        logits = np.log(np.float64(scores[part])) / temperature
        after[part] = special.softmax(logits, axis=1)
    assert found == {
        "ece": pytest.approx(error_in_bins(targets, scores), abs=1e-6),
        "ece_calibrated": pytest.approx(
            error_in_bins(targets, after), abs=1e-4
        ),
    }
    assert found["ece_calibrated"] < found["ece"] / 2


@pytest.mark.parametrize("num_values", [3, 1000])
def test_threshold_has_the_best_f1(num_values):
    random = np.random.default_rng(1)
    for _ in range(20):
        targets = random.random(60) < 0.3
        scores = np.float32(random.integers(1, num_values, 60) / num_values)
        scores[targets] += np.float32(0.2 / num_values) * (num_values > 10)
        threshold = calibration.fit_threshold(targets, scores)
        found = metrics.f1_score(targets, scores >= threshold)
        precision, recall, _ = metrics.precision_recall_curve(targets, scores)
        best = 2 * precision * recall / np.maximum(precision + recall, 1e-9)
        assert found == pytest.approx(best.max())
        # It does not depend on the rounding of a score.
        assert np.abs(scores - threshold).min() > 1e-5


def drawn_labels(num_examples, rates, seed=2):
    random = np.random.default_rng(seed)
    targets = random.random((num_examples, len(rates))) < rates
    logits = random.normal(size=targets.shape) + 2 * targets - 3
    return targets, np.float32(special.expit(logits))


def test_thresholds_are_cross_validated_and_rare_labels_keep_one_half():
    targets, scores = drawn_labels(200, [0.3, 0.5, 0.02])
    fitted, found = calibration.fit(targets, scores, ["a", "b", "rare"])
    assert fitted.temperature == 1.0
    *thresholds, rare = fitted.thresholds
    assert rare == 0.5
    assert max(thresholds) < 0.5
    predicted, fold = np.zeros(targets.shape, bool), np.arange(200) % 5
    for number in range(5):
        rest, part = fold != number, fold == number
        for label in range(3):
            threshold = 0.5
            if label < 2:
                pair = targets[rest, label], scores[rest, label]
                threshold = calibration.fit_threshold(*pair)
            predicted[part, label] = scores[part, label] >= threshold
    assert found == {
        f"{average}_f1_calibrated": pytest.approx(
            metrics.f1_score(
                targets, predicted, average=average, zero_division=0.0
            )
        )
        for average in ("micro", "macro")
    }


CLASSES, LABELS = drawn(100, 2, 2.0), drawn_labels(100, [0.3, 0.4])


@pytest.mark.parametrize(
    ("targets", "scores", "message"),
    [
        (CLASSES[0][:49], CLASSES[1][:49], "fewer than 50 examples"),
        (LABELS[0][:49], LABELS[1][:49], "fewer than 50 examples"),
        (np.ones(100, int), CLASSES[1], "all .* have the same label"),
        (np.ones((100, 2), bool), LABELS[1], "all .* have the same label"),
        (CLASSES[0], CLASSES[1] * np.nan, "are not numbers"),
        (CLASSES[1].argmax(axis=1), CLASSES[1], "all predictions are right"),
        (CLASSES[1].argmin(axis=1), CLASSES[1], "not lower the cross-valid"),
        (*drawn(100, 2, 1.0, seed=0), "not lower the cross-validated loss"),
        (LABELS[1] > 0.5, LABELS[1], "thresholds do not improve"),
    ],
)
def test_data_without_a_useful_calibration_is_one_message(
    caplog, targets, scores, message
):
    caplog.set_level("INFO", logger="absl")
    fitted = calibration.fit(targets, scores, ["a", "b"])
    assert fitted == (Calibration(), {})
    [logged] = caplog.messages
    assert re.search(f"No calibration: .*{message}", logged)


NAMES = ("no", "yes")
TEXTS = [*dict.fromkeys(tiny.texts(130, 5, 12))][:100]


def save(folder, task_type="classification"):
    """Saves a model for own data, and labels with which it is often wrong.

    Returns the probabilities of all texts, and whether their label is "yes".
    """
    task = TYPES[task_type](labels=NAMES, columns=TextColumns(("text",)))
    output = tiny.save_finetuned(folder / "out", task)
    scores = np.float32(probabilities(Predictor.from_dir(output)(TEXTS)))
    columns = scores.T if task_type == "multilabel" else scores.T[1:]
    # All multi-label scores are above 0.5.
    share, period = (75, 10) if len(columns) == 2 else (50, 4)
    is_wrong = np.arange(len(TEXTS)) % period == 0
    targets = [(c > np.percentile(c, share)) ^ is_wrong for c in columns]
    rows = zip(*targets, strict=True)
    if len(columns) == 1:
        rows = [(not is_yes, is_yes) for is_yes in targets[0]]
    labels = [names(row) for row in rows]
    for name, number in (("dev", 100), ("other", 60)):
        rows = zip(TEXTS[:number], map(",".join, labels), strict=False)
        lines = ["text;label", *map(";".join, rows)]
        (folder / f"{name}.csv").write_text("\n".join(lines))
    return scores, targets[-1]


def names(are_labels):
    return [n for n, is_in in zip(NAMES, are_labels, strict=True) if is_in]


def probabilities(answers):
    return np.array([[*a["probabilities"].values()] for a in answers])


def evaluate(folder, **changes):
    """Evaluates dev.csv; returns the calibration of the model."""
    path = str(folder / "dev.csv")
    flags = {"train_file": path, "dev_file": path, "data_dir": None}
    flags |= {"do_train": False, "do_predict": False, **changes}
    run_classifier.main(tiny.options(folder, tiny.SMALL, **flags))
    stored = read_json(folder / "out" / "task.json")["calibration"]
    return Calibration(stored["temperature"], tuple(stored["thresholds"]))


def ask(folder, **flags):
    (folder / "new.jsonl").write_text("\n".join(map(json.dumps, TEXTS)))
    files = {"input_file": "new.jsonl", "output_file": "answers.jsonl"}
    files = {name: str(folder / path) for name, path in files.items()}
    predict.main(Predict(model_dir=str(folder / "out"), **files, **flags))
    return read_json_lines(folder / "answers.jsonl")


@pytest.mark.slow
def test_temperature_of_the_evaluation_is_applied_if_wanted(tmp_path):
    scores, targets = save(tmp_path)
    test = {"do_predict": True, "test_file": str(tmp_path / "dev.csv")}
    fitted = evaluate(tmp_path, **test)
    expected = best_temperature(targets.astype(int), scores)
    assert fitted == (pytest.approx(expected, rel=1e-3), ())
    calibrated = special.softmax(np.log(scores) / expected, axis=1)
    written = np.loadtxt(tmp_path / "out" / "test_results.tsv")
    for found in (written, probabilities(ask(tmp_path))):
        np.testing.assert_allclose(found, calibrated, atol=1e-3)
    raw = probabilities(ask(tmp_path, calibrated=False))
    np.testing.assert_allclose(raw, scores, atol=1e-6)
    results = read_json(tmp_path / "out" / "eval_results.json")
    errors = [error_in_bins(targets, s) for s in (scores, calibrated)]
    assert results["ece"] == pytest.approx(errors[0], abs=1e-5)
    # The calibration is not measured on the examples that it was fitted to.
    assert abs(results["ece_calibrated"] - errors[1]) > 1e-4
    # That of the test set is the one of --model_dir.
    tested = read_json(tmp_path / "out" / "predict_results.json")
    assert tested["ece_calibrated"] == pytest.approx(errors[1], abs=1e-3)


@pytest.mark.slow
def test_thresholds_of_evaluation_are_used_unless_others_are_given(tmp_path):
    scores, _ = save(tmp_path, "multilabel")
    _, thresholds = evaluate(tmp_path, task_type="multilabel")
    assert len({*thresholds, 0.5}) == 3

    for flags, expected in (
        ({}, thresholds),
        ({"calibrated": False}, (0.5, 0.5)),
        ({"threshold": "0.4"}, (0.4, 0.4)),
        ({"threshold": "yes=0.4"}, (thresholds[0], 0.4)),
        ({"threshold": "yes=0.4", "calibrated": False}, (0.5, 0.4)),
    ):
        found = [answer["labels"] for answer in ask(tmp_path, **flags)]
        assert found == [*map(names, scores >= np.array(expected))]


@pytest.mark.slow
def test_only_evaluation_data_of_a_finished_run_calibrates_its_model(tmp_path):
    save(tmp_path)
    run = RunDirectory(str(tmp_path / "out"))
    path, other = str(tmp_path / "dev.csv"), str(tmp_path / "other.csv")
    own = {"train_file": path, "dev_file": path}
    in_directory = {"task_name": "csv", "data_dir": str(tmp_path)}
    for trained, num_steps, changes, is_fitted in (
        (own, 4, {}, False),  # The checkpoint is that of step 3.
        (own, 3, {"dev_file": other}, False),
        (own, 3, {"max_seq_length": 3}, False),
        (own, 3, {"long_document": "head_tail"}, False),
        (in_directory, 3, {**dict.fromkeys(own), **in_directory}, False),
        (own, 3, {}, True),
        (own, 3, {"dev_file": other}, True),
    ):
        record = RunRecord("run_classifier.py", trained, {}, num_steps)
        run.write_record(record)
        found = evaluate(tmp_path, **changes)
        assert (found != Calibration()) == is_fitted
    results = read_json(tmp_path / "out" / "eval_results_other.json")
    assert results["ece_calibrated"] != results["ece"]
