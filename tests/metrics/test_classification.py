"""Scores of single labels: by hand, and against scikit-learn's own tables."""

import json

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_recall_fscore_support

from official_bert.metrics import classification

# 3 right positives, 1 false alarm, 2 missed, 4 right negatives.
TARGETS = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def test_accuracy():
    assert classification.accuracy(TARGETS, PREDICTIONS) == {"accuracy": 0.7}
    # Classes need not be numbered through.
    assert classification.accuracy([7, 2, 2], [7, 2, 0]) == {
        "accuracy": pytest.approx(2 / 3)
    }


def test_f1_is_that_of_class_1():
    scores = classification.accuracy_and_f1(TARGETS, PREDICTIONS)

    precision, recall = 3 / 4, 3 / 5
    f1 = 2 * precision * recall / (precision + recall)
    assert scores == {"accuracy": 0.7, "f1": pytest.approx(f1)}


def test_matthews():
    scores = classification.matthews(TARGETS, PREDICTIONS)

    formula = (3 * 4 - 1 * 2) / np.sqrt((3 + 1) * (3 + 2) * (4 + 1) * (4 + 2))
    assert scores == {
        "matthews_correlation": pytest.approx(formula),
        "accuracy": 0.7,
    }


@pytest.mark.parametrize("constant", [[0, 0, 0], [1, 1, 1]])
@pytest.mark.parametrize("other", [[0, 0, 0], [1, 1, 1], [0, 1, 1]])
def test_a_constant_has_no_correlation(constant, other):
    for pair in ((constant, other), (other, constant)):
        assert classification.matthews(*pair) == {
            "matthews_correlation": 0.0,
            "accuracy": np.mean(np.equal(constant, other)),
        }


@pytest.mark.parametrize(
    ("targets", "predictions", "expected"),
    [
        ([0, 0, 0], [0, 0, 0], 0.0),
        ([0, 0, 0], [1, 1, 1], 0.0),
        ([0, 1, 1], [0, 0, 0], 0.0),
        ([0, 1, 1], [1, 1, 1], 0.8),
        ([1, 1, 1], [1, 1, 1], 1.0),
    ],
)
def test_f1_of_a_constant(targets, predictions, expected):
    scores = classification.accuracy_and_f1(targets, predictions)
    assert scores["f1"] == pytest.approx(expected)


def test_per_class_by_hand():
    scores = classification.per_class(
        [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0], ["a", "b", "c", "never"]
    )

    nothing = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert scores == {
        "per_class": {
            "a": {
                "precision": 2 / 4,
                "recall": 2 / 3,
                "f1": pytest.approx(4 / 7),
                "support": 3,
            },
            "b": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2},
            "c": {**nothing, "support": 1},
            "never": {**nothing, "support": 0},
        },
        "macro_f1": pytest.approx((4 / 7 + 1 / 2) / 4),
        "confusion_matrix": [
            [2, 1, 0, 0],
            [1, 1, 0, 0],
            [1, 0, 0, 0],
            [0, 0, 0, 0],
        ],
    }


@pytest.mark.parametrize("num_examples", [1, 5, 200])
def test_per_class_equals_scikit_learn(num_examples):
    rng = np.random.default_rng(num_examples)
    targets, predictions = rng.integers(0, 6, (2, num_examples))
    labels = [f"label {i}" for i in range(7)]

    scores = classification.per_class(targets, predictions, labels)

    expected = precision_recall_fscore_support(
        targets, predictions, labels=range(7), zero_division=0.0
    )
    rows = [tuple(row.values()) for row in scores["per_class"].values()]
    np.testing.assert_allclose(np.transpose(rows), expected, rtol=1e-12)
    assert scores["macro_f1"] == pytest.approx(
        f1_score(
            targets,
            predictions,
            labels=range(7),
            average="macro",
            zero_division=0.0,
        )
    )


def test_results_are_plain_numbers():
    arrays = np.array(TARGETS), np.array(PREDICTIONS, np.int32)
    results = {
        **classification.accuracy_and_f1(*arrays),
        **classification.matthews(*arrays),
        **classification.per_class(*arrays, ["no", "yes"]),
    }
    assert json.loads(json.dumps(results)) == results
