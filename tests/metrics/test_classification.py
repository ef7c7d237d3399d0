import json

import numpy as np
import pytest
from sklearn import metrics

from official_bert.metrics import classification

# 3 true positives, 1 false positive, 2 false negatives, 4 true negatives.
TARGETS = [1, 1, 1, 0, 1, 1, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]


def in_json(results):
    return json.loads(json.dumps(results))


def test_accuracy_f1_and_matthews_equal_their_formulas():
    arrays = np.array(TARGETS), np.array(PREDICTIONS, np.int32)
    precision, recall = 3 / 4, 3 / 5
    assert in_json(classification.accuracy_and_f1(*arrays)) == {
        "accuracy": 0.7,
        "f1": pytest.approx(2 * precision * recall / (precision + recall)),
    }
    formula = (3 * 4 - 1 * 2) / np.sqrt((3 + 1) * (3 + 2) * (4 + 1) * (4 + 2))
    assert in_json(classification.matthews(*arrays)) == {
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
    accuracy = {"accuracy": np.mean(np.equal(targets, predictions))}
    found = classification.accuracy_and_f1(targets, predictions)
    assert found == {"f1": pytest.approx(f1), **accuracy}
    found = classification.matthews(targets, predictions)
    assert found == {"matthews_correlation": 0.0, **accuracy}


def assert_equals_scikit_learn(scores, targets, predictions, **options):
    expected = metrics.precision_recall_fscore_support(
        targets, predictions, zero_division=0.0, **options
    )
    names = ["precision", "recall", "f1", "support"]
    rows = [[row[n] for n in names] for row in scores["per_class"].values()]
    np.testing.assert_allclose(np.transpose(rows), expected, rtol=1e-12)
    assert scores["macro_f1"] == pytest.approx(expected[2].mean())


@pytest.mark.parametrize("num_examples", [1, 5, 200])
def test_per_class_metrics_equal_scikit_learn(num_examples):
    rng = np.random.default_rng(num_examples)
    targets, predictions = rng.integers(0, 6, (2, num_examples))
    scores = classification.per_class(targets, predictions, list("abcdefg"))
    assert_equals_scikit_learn(scores, targets, predictions, labels=range(7))
    assert list(scores["per_class"]) == list("abcdefg")
    names = "per_class macro_f1 balanced_accuracy confusion_matrix"
    assert [*in_json(scores)] == names.split()
    # Of the classes among the targets.
    recall = metrics.recall_score(
        targets, predictions, labels=np.unique(targets), average="macro"
    )
    assert scores["balanced_accuracy"] == pytest.approx(recall)
    matrix = metrics.confusion_matrix(targets, predictions, labels=range(7))
    assert scores["confusion_matrix"] == matrix.tolist()


def test_confusion_matrix_is_left_out_for_many_classes():
    for num_classes in (100, 101):
        scores = classification.per_class([0], [1], list(range(num_classes)))
        assert ("confusion_matrix" in scores) == (num_classes == 100)


@pytest.mark.parametrize("scale", [1, 0.55, 0.4])  # Of probabilities.
def test_multilabel_metrics_equal_scikit_learn(scale):
    rng = np.random.default_rng(0)
    targets = (rng.random((50, 5)) < 0.3).astype(np.int32)
    probabilities = rng.random((50, 5)).astype(np.float32) * scale
    scores = classification.multilabel(targets, probabilities, list("abcde"))
    predicted = probabilities >= 0.5
    assert_equals_scikit_learn(scores, targets, predicted)
    assert scores["micro_f1"] == pytest.approx(
        metrics.f1_score(targets, predicted, average="micro", zero_division=0.0)
    )
    assert scores["exact_match"] == metrics.accuracy_score(targets, predicted)
    assert scores["hamming_loss"] == metrics.hamming_loss(targets, predicted)
    names = (
        "micro_f1 macro_f1 exact_match hamming_loss roc_auc average_precision "
        "per_class"
    )
    assert list(in_json(scores)) == names.split()


def test_single_label_is_not_scored_as_binary_classification():
    # scikit-learn would count "not spam" as a class.
    scores = classification.multilabel([[1], [0], [0]], [[1], [1], [0]], ["x"])
    assert scores["per_class"]["x"]["support"] == 1
    for name in ("micro_f1", "macro_f1", "exact_match"):
        assert scores[name] == pytest.approx(2 / 3)


@pytest.mark.parametrize("targets", [[[0], [1]], [0]])
def test_shapes_that_numpy_would_broadcast_are_an_error(targets):
    with pytest.raises(ValueError, match=r"same shape .* and \(2,\)"):
        classification.accuracy(targets, [0, 1])


@pytest.mark.parametrize(
    ("targets", "predictions"),
    [([[1, 0]], [[1, 0, 0]]), ([[1, 0, 1]], [[1, 0, 1]]), ([1, 0], [1, 0])],
)
def test_multilabel_shapes_that_differ_are_an_error(targets, predictions):
    with pytest.raises(ValueError, match=r"\[N, C\]"):
        classification.multilabel(targets, predictions, ["a", "b"])


@pytest.mark.parametrize("flipped", [False, True])
def test_ranking_metrics_of_two_classes_are_those_of_the_rarer_class(flipped):
    # The rare examples are first and fourth of five. Of the 2 x 3 pairs with
    # one of the others, 4 are in the right order.
    rare, scores = np.array([1, 0, 0, 1, 0]), np.array([9, 8, 7, 6, 5]) / 10
    columns = np.stack([1 - scores, scores], axis=1)
    if flipped:
        rare, columns = 1 - rare, columns[:, ::-1]
    assert in_json(classification.rarer_of_two(rare, columns)) == {
        "roc_auc": pytest.approx(4 / 6),
        "average_precision": pytest.approx((1 / 1 + 2 / 4) / 2),
    }


def test_ranking_metrics_are_macro_averages_of_labels_that_can_be_ranked():
    targets = np.array([[1, 0, 1], [0, 1, 1], [0, 0, 1]])
    scores = np.array([[0.9, 0.9, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.3]])
    assert classification.ranking(targets, scores) == {
        "roc_auc": pytest.approx((1 + 1 / 2) / 2),
        "average_precision": pytest.approx((1 + 1 / 2) / 2),
    }
    # All or none of the examples have the label.
    assert classification.ranking(targets[:, 2:], scores[:, 2:]) == {}
    diverged = classification.ranking(targets, np.full((3, 3), np.nan))
    assert diverged["roc_auc"] == 0.5
