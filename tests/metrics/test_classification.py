"""Metrics of classifiers: by hand, and against scikit-learn's tables."""

import json

import numpy as np
import pytest
from sklearn import metrics

from official_bert.metrics import (
    classification,
    entities,
    regression,
    squad_metrics,
)

# 3 true positives, 1 false positive, 2 false negatives, 4 true negatives.
TARGETS = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]
NOTHING = {"precision": 0.0, "recall": 0.0, "f1": 0.0}


QUESTIONS = [{"paragraphs": [{"qas": [{"id": "a", "answers": []}]}]}]


F1 = pytest.approx(4 / 7)


def test_accuracy_f1_and_matthews_equal_their_formulas():
    precision, recall = 3 / 4, 3 / 5
    assert classification.accuracy_and_f1(TARGETS, PREDICTIONS) == {
        "accuracy": 0.7,
        "f1": pytest.approx(2 * precision * recall / (precision + recall)),
    }
    formula = (3 * 4 - 1 * 2) / np.sqrt((3 + 1) * (3 + 2) * (4 + 1) * (4 + 2))
    assert classification.matthews(TARGETS, PREDICTIONS) == {
        "matthews_correlation": pytest.approx(formula),
        "accuracy": 0.7,
    }


@pytest.mark.parametrize(
    ("targets", "predictions", "f1"),
    [
        ([0, 0, 0], [0, 0, 0], 0.0),
        ([0, 0, 0], [1, 1, 1], 0.0),
        ([0, 1, 1], [0, 0, 0], 0.0),
        ([0, 1, 1], [1, 1, 1], 0.8),
        ([1, 1, 1], [0, 1, 1], 0.8),
        ([1, 1, 1], [1, 1, 1], 1.0),
    ],
)
def test_metrics_of_a_constant_are_defined(targets, predictions, f1):
    accuracy = np.mean(np.equal(targets, predictions))
    assert classification.accuracy_and_f1(targets, predictions) == {
        "f1": pytest.approx(f1),
        "accuracy": accuracy,
    }
    assert classification.matthews(targets, predictions) == {
        "matthews_correlation": 0.0,
        "accuracy": accuracy,
    }


def test_per_class_metrics_have_the_names_of_the_classes():
    scores = classification.per_class(
        [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0], ["a", "b", "c", "never"]
    )
    assert scores["per_class"] == {
        "a": {"precision": 2 / 4, "recall": 2 / 3, "f1": F1, "support": 3},
        "b": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2},
        "c": {**NOTHING, "support": 1},
        "never": {**NOTHING, "support": 0},
    }
    matrix = [[2, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert scores["confusion_matrix"] == matrix


def assert_equals_scikit_learn(scores, targets, predictions, **options):
    """Compares the metrics of each class with scikit-learn's."""
    expected = metrics.precision_recall_fscore_support(
        targets, predictions, zero_division=0.0, **options
    )
    rows = [tuple(row.values()) for row in scores["per_class"].values()]
    np.testing.assert_allclose(np.transpose(rows), expected, rtol=1e-12)
    assert scores["macro_f1"] == pytest.approx(expected[2].mean())


@pytest.mark.parametrize("num_examples", [1, 5, 200])
def test_per_class_metrics_equal_scikit_learn(num_examples):
    rng = np.random.default_rng(num_examples)
    targets, predictions = rng.integers(0, 6, (2, num_examples))
    labels = [f"label {i}" for i in range(7)]
    scores = classification.per_class(targets, predictions, labels)
    assert_equals_scikit_learn(scores, targets, predictions, labels=range(7))


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.99, 1.1])
def test_multilabel_metrics_equal_scikit_learn(threshold):
    rng = np.random.default_rng(0)
    targets = (rng.random((50, 5)) < 0.3).astype(np.int32)
    probabilities = rng.random((50, 5)).astype(np.float32)
    scores = classification.multilabel(
        targets, probabilities, list("abcde"), threshold
    )
    predicted = probabilities >= threshold
    assert_equals_scikit_learn(scores, targets, predicted)
    assert scores["micro_f1"] == pytest.approx(
        metrics.f1_score(targets, predicted, average="micro", zero_division=0.0)
    )
    assert scores["exact_match"] == metrics.accuracy_score(targets, predicted)
    assert scores["hamming_loss"] == metrics.hamming_loss(targets, predicted)


def test_a_single_label_is_not_scored_as_a_binary_classification():
    # scikit-learn would count "not spam" as a class; F1 is 2/3 there too.
    scores = classification.multilabel(
        [[1], [0], [0]], [[1], [1], [0]], ["spam"]
    )
    f1 = pytest.approx(2 / 3)
    row = {"precision": 0.5, "recall": 1.0, "f1": f1, "support": 1}
    assert scores == {
        "micro_f1": f1,
        "macro_f1": f1,
        "exact_match": f1,
        "hamming_loss": pytest.approx(1 / 3),
        "per_class": {"spam": row},
    }


@pytest.mark.parametrize(
    ("targets", "predictions"),
    [([[1, 0]], [[1, 0, 0]]), ([[1, 0, 1]], [[1, 0, 1]]), ([1, 0], [1, 0])],
)
def test_multilabel_shapes_that_differ_are_an_error(targets, predictions):
    with pytest.raises(ValueError, match=r"\[N, C\]"):
        classification.multilabel(targets, predictions, ["a", "b"])


def test_results_can_be_written_as_json():
    arrays = np.array(TARGETS), np.array(PREDICTIONS, np.int32)
    results = {
        **classification.accuracy_and_f1(*arrays),
        **classification.matthews(*arrays),
        **classification.per_class(*arrays, ["no", "yes"]),
        **classification.multilabel(np.eye(2), np.float32(np.eye(2)), "ab"),
        **entities.evaluate([["B-X"]], [["B-X"]]),
        **regression.pearson_and_spearman(*arrays),
        **squad_metrics.evaluate(QUESTIONS, {"a": ""}, {"a": 1}),
    }
    assert json.loads(json.dumps(results)) == results
