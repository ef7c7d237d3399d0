"""Metrics of classifiers with one label or any number of labels per example.

scikit-learn is imported by the functions that use it: the import takes seconds.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

_MAX_CLASSES_OF_MATRIX = 100  # The matrix grows quadratically.
_NUM_BINS = 15  # Of probabilities, as in Guo et al. (2017).


def precision_recall_f1(
    correct: int, predicted: int, expected: int
) -> dict[str, float]:
    """Returns `precision`, `recall`, `f1` and `support`.

    The arguments are numbers of labels; `support` equals `expected`.
    """
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / expected if expected else 0.0,
        # Equals 2 P R / (P + R), but is also defined if only P or only R is.
        "f1": 2 * correct / (predicted + expected) if correct else 0.0,
        "support": expected,
    }


def accuracy(targets: ArrayLike, predictions: ArrayLike) -> dict[str, float]:
    """Returns `accuracy`, the fraction of correct predictions.

    Targets and predictions are classes, int [N > 0]. Raises `ValueError` if
    they have different shapes, such as [N, 1] and [N].
    """
    if np.shape(targets) != np.shape(predictions):
        raise ValueError(
            "Targets and predictions must have the same shape [N]. Received: "
            f"{np.shape(targets)} and {np.shape(predictions)}."
        )
    return {"accuracy": float(np.mean(np.equal(targets, predictions)))}


def accuracy_and_f1(
    targets: ArrayLike, predictions: ArrayLike
) -> dict[str, float]:
    """Returns `accuracy`, and `f1` of class 1: GLUE's metrics of MRPC and QQP.

    Targets and predictions are 0 or 1, int [N > 0].
    """
    from sklearn import metrics

    f1 = metrics.f1_score(targets, predictions, zero_division=0.0)
    return {**accuracy(targets, predictions), "f1": float(f1)}


def matthews(targets: ArrayLike, predictions: ArrayLike) -> dict[str, float]:
    """Returns `matthews_correlation` and `accuracy`: GLUE's metric of CoLA.

    Targets and predictions are classes, int [N > 0]. The correlation is 0.0 if
    all targets or all predictions are equal.
    """
    from sklearn import metrics

    correlation = 0.0
    # scikit-learn warns about a single class.
    if np.ptp(targets) > 0 and np.ptp(predictions) > 0:
        correlation = float(metrics.matthews_corrcoef(targets, predictions))
    scores = {"matthews_correlation": correlation}
    return scores | accuracy(targets, predictions)


# The metrics of a classifier: {name: (function, the key of its main result)}.
METRICS = {
    "accuracy": (accuracy, "accuracy"),
    "accuracy_and_f1": (accuracy_and_f1, "f1"),
    "matthews": (matthews, "matthews_correlation"),
}


def per_class(
    targets: ArrayLike, predictions: ArrayLike, labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the metrics of each class and the confusion matrix.

    Targets and predictions are indices into the C `labels`, int [N].

    Returns:
        `per_class`: {label: {precision, recall, f1, support}}.
        `macro_f1`: the mean F1 of all C classes, 0.0 for absent ones.
        `balanced_accuracy`: the mean recall of the classes that are targets.
        `confusion_matrix`: [C, C], a row for each target class; absent for more
            than 100 classes.
    """
    target, predicted = (
        np.asarray(numbers, np.int64) for numbers in (targets, predictions)
    )
    groups = target[target == predicted], predicted, target
    counts = np.stack([np.bincount(g, minlength=len(labels)) for g in groups])
    scores = _per_label(counts, labels)
    is_target = counts[2] > 0
    recalls = counts[0][is_target] / counts[2][is_target]
    scores["balanced_accuracy"] = float(recalls.mean())
    if len(labels) <= _MAX_CLASSES_OF_MATRIX:
        matrix = np.zeros((len(labels), len(labels)), np.int64)
        np.add.at(matrix, (target, predicted), 1)
        scores["confusion_matrix"] = matrix.tolist()
    return scores


def ranking(targets: ArrayLike, scores: ArrayLike) -> dict[str, float]:
    """Returns `roc_auc` and `average_precision`, means over C labels.

    They measure how well scores separate texts, at all thresholds. Targets are
    0 or 1, [N, C]; scores are numbers [N, C]. Labels that no or all examples
    have are left out. Returns {} if no label is left.
    """
    from sklearn import metrics

    target = np.asarray(targets).astype(bool)
    is_mixed = target.any(axis=0) & ~target.all(axis=0)
    if not is_mixed.any():
        return {}
    # scikit-learn does not accept the NaN of a diverged model.
    arrays = target[:, is_mixed], np.nan_to_num(scores)[:, is_mixed]
    return {
        "roc_auc": float(metrics.roc_auc_score(*arrays)),
        "average_precision": float(metrics.average_precision_score(*arrays)),
    }


def rarer_of_two(targets: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Returns the `ranking` of the rarer of two classes, else of class 1.

    Targets are 0 or 1, int [N]; scores are probabilities [N, 2].
    """
    rarer = int(2 * targets.sum() <= len(targets))
    return ranking((targets == rarer)[:, None], scores[:, [rarer]])


def expected_calibration_error(
    targets: np.ndarray, scores: np.ndarray
) -> float:
    """Returns how far the highest probability is from the accuracy.

    This is the mean distance in 15 bins of the highest probability, weighted
    by their sizes. Targets are classes, int [N]; scores are probabilities
    [N, C].
    """
    highest = scores.max(axis=1)
    gaps = highest - (scores.argmax(axis=1) == targets)
    bins = np.ceil(highest * _NUM_BINS).astype(np.int64)
    return float(np.abs(np.bincount(bins, gaps)).sum() / len(gaps))


def multilabel(
    targets: ArrayLike,
    predictions: ArrayLike,
    labels: Sequence[str],
    thresholds: ArrayLike = 0.5,
) -> dict[str, Any]:
    """Returns the metrics of a multi-label classifier with C `labels`.

    Targets are 0 or 1, [N, C] with N > 0. Predictions are probabilities [N, C];
    a label is predicted if its probability is at least its threshold.

    Returns:
        `micro_f1`: F1 over all pairs of an example and a label.
        `macro_f1`, `per_class`: as returned by the function `per_class`.
        `exact_match`: the fraction of examples with exactly the right labels.
        `hamming_loss`: the fraction of wrong decisions among all N x C.
        `roc_auc`, `average_precision`: as returned by `ranking`.
    """
    # scikit-learn would treat shape [N, 1] as binary classification.
    target = np.asarray(targets).astype(bool)
    predicted = np.asarray(predictions) >= thresholds
    if not target.shape == predicted.shape == (len(target), len(labels)):
        raise ValueError(
            "Targets and predictions must have shape [N, C] for C labels. "
            f"Received: {target.shape} and {predicted.shape} for {len(labels)}."
        )
    counts = np.stack([target & predicted, predicted, target]).sum(axis=1)
    overall = precision_recall_f1(*counts.sum(axis=1).tolist())
    scores = _per_label(counts, labels)
    return {
        "micro_f1": overall["f1"],
        "macro_f1": scores["macro_f1"],
        "exact_match": float((target == predicted).all(axis=1).mean()),
        "hamming_loss": float((target != predicted).mean()),
        **ranking(target, predictions),
        "per_class": scores["per_class"],
    }


def _per_label(counts: np.ndarray, labels: Sequence[str]) -> dict[str, Any]:
    """Returns metrics from counts of correct, predicted, expected: [3, C]."""
    scores = [precision_recall_f1(*column) for column in counts.T.tolist()]
    return {
        "per_class": dict(zip(labels, scores, strict=True)),
        "macro_f1": sum(score["f1"] for score in scores) / len(scores),
    }
