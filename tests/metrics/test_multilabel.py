"""Any number of labels: by hand, and against scikit-learn."""

import json

import numpy as np
import pytest
from sklearn import metrics

from official_bert.metrics import multilabel


def test_by_hand():
    targets = [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    probabilities = [[0.9, 0.1, 0.2, 0], [0.5, 0.6, 0.4, 0], [0.3, 0.3, 0.3, 0]]

    scores = multilabel.evaluate(targets, probabilities, ["a", "b", "c", "d"])

    nothing = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    a = {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3)}
    b = {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    assert scores == {
        "micro_f1": pytest.approx(2 * 2 / (3 + 3)),
        "macro_f1": pytest.approx((2 / 3 + 1) / 4),
        "exact_match": pytest.approx(1 / 3),
        "hamming_loss": pytest.approx(2 / 12),
        "per_class": {
            "a": {**a, "support": 1},
            "b": {**b, "support": 1},
            "c": {**nothing, "support": 1},
            "d": {**nothing, "support": 0},
        },
    }


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.99, 1.1])
def test_equals_scikit_learn(threshold):
    rng = np.random.default_rng(0)
    targets = (rng.random((50, 5)) < 0.3).astype(np.int32)
    probabilities = rng.random((50, 5)).astype(np.float32)

    scores = multilabel.evaluate(
        targets, probabilities, list("abcde"), threshold
    )

    predicted = probabilities >= threshold
    none = {"zero_division": 0.0}
    assert scores["micro_f1"] == pytest.approx(
        metrics.f1_score(targets, predicted, average="micro", **none)
    )
    assert scores["macro_f1"] == pytest.approx(
        metrics.f1_score(targets, predicted, average="macro", **none)
    )
    assert scores["exact_match"] == metrics.accuracy_score(targets, predicted)
    assert scores["hamming_loss"] == metrics.hamming_loss(targets, predicted)
    rows = [tuple(row.values()) for row in scores["per_class"].values()]
    np.testing.assert_allclose(
        np.transpose(rows),
        metrics.precision_recall_fscore_support(targets, predicted, **none),
        rtol=1e-12,
    )


def test_a_single_label_is_no_binary_classification():
    scores = multilabel.evaluate([[1], [0], [0]], [[1], [1], [0]], ["spam"])

    # scikit-learn would count "not spam" as a class, and give 2/3.
    [row] = scores.pop("per_class").values()
    assert row["f1"] == scores.pop("micro_f1") == pytest.approx(2 / 3)
    assert row["precision"] == 0.5
    assert scores == {
        "macro_f1": pytest.approx(2 / 3),
        "exact_match": pytest.approx(2 / 3),
        "hamming_loss": pytest.approx(1 / 3),
    }


@pytest.mark.parametrize(
    ("targets", "predictions"),
    [([[1, 0]], [[1, 0, 0]]), ([[1, 0, 1]], [[1, 0, 1]]), ([1, 0], [1, 0])],
)
def test_shapes_must_agree(targets, predictions):
    with pytest.raises(ValueError, match=r"must have shape \[N, C\]"):
        multilabel.evaluate(targets, predictions, ["a", "b"])


def test_results_are_plain_numbers():
    scores = multilabel.evaluate(np.eye(2), np.float32(np.eye(2)), ["a", "b"])
    assert json.loads(json.dumps(scores)) == scores
