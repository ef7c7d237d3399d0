"""Metrics of classifiers with one label or any number of labels per example."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import metrics


def precision_recall_f1(
    correct: int, predicted: int, expected: int
) -> dict[str, float]:
    """Returns precision, recall and F1, given counts.

    Args:
        correct: The number of correct predictions (true positives).
        predicted: The number of predictions (true and false positives).
        expected: The number of targets (true positives, false negatives).

    Returns:
        `precision`, `recall` and `f1` as fractions, 0.0 instead of a division
        by zero, and `support`, which is `expected`.
    """
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / expected if expected else 0.0,
        # Equals 2 P R / (P + R), and is defined if only one of them is.
        "f1": 2 * correct / (predicted + expected) if correct else 0.0,
        "support": expected,
    }


def accuracy(
    targets: npt.ArrayLike, predictions: npt.ArrayLike
) -> dict[str, float]:
    """Returns `accuracy`, the fraction of correct predictions.

    Args:
        targets: Class numbers, int [N] with N > 0.
        predictions: Class numbers, int [N].
    """
    return {"accuracy": float(metrics.accuracy_score(targets, predictions))}


def accuracy_and_f1(
    targets: npt.ArrayLike, predictions: npt.ArrayLike
) -> dict[str, float]:
    """Returns `accuracy`, and `f1` of class 1: GLUE's metrics of MRPC and QQP.

    Args:
        targets: 0 or 1, int [N].
        predictions: 0 or 1, int [N].
    """
    f1 = metrics.f1_score(targets, predictions, pos_label=1, zero_division=0.0)
    return {**accuracy(targets, predictions), "f1": float(f1)}


def matthews(
    targets: npt.ArrayLike, predictions: npt.ArrayLike
) -> dict[str, float]:
    """Returns `matthews_correlation` and `accuracy`: GLUE's metric of CoLA.

    The correlation is 0.0 if all targets or all predictions are equal.
    """
    correlation = 0.0
    # scikit-learn warns about a single class.
    if np.ptp(targets) > 0 and np.ptp(predictions) > 0:
        correlation = float(metrics.matthews_corrcoef(targets, predictions))
    return {
        "matthews_correlation": correlation,
        **accuracy(targets, predictions),
    }


def per_class(
    targets: npt.ArrayLike, predictions: npt.ArrayLike, labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the metrics of each class and the confusion matrix.

    Args:
        targets: Class numbers, int [N].
        predictions: Class numbers, int [N].
        labels: The names of the C classes.

    Returns:
        `per_class`: {label: {precision, recall, f1, support}}.
        `macro_f1`: the mean F1 of all C classes, 0.0 for absent ones.
        `confusion_matrix`: counts as C lists of C, one list for each target
        class, one column for each predicted class.
    """
    matrix = np.asarray(
        metrics.confusion_matrix(
            targets, predictions, labels=range(len(labels))
        )
    )
    counts = np.stack([matrix.diagonal(), matrix.sum(0), matrix.sum(1)])
    scores, macro_f1 = _per_label(counts, labels)
    return {
        "per_class": scores,
        "macro_f1": macro_f1,
        "confusion_matrix": matrix.tolist(),
    }


def multilabel(
    targets: npt.ArrayLike,
    predictions: npt.ArrayLike,
    labels: Sequence[str],
    threshold: float = 0.5,
) -> dict[str, Any]:
    """Returns the metrics of a multi-label classifier.

    Args:
        targets: 0 or 1 for each example and label, [N, C] with N > 0.
        predictions: Probabilities, or 0 or 1, [N, C].
        labels: The names of the C labels.
        threshold: A label is predicted if its probability is at least this.

    Returns:
        `micro_f1`: F1 of all pairs of example and label together.
        `macro_f1`: the mean F1 of all C labels, 0.0 for absent ones.
        `exact_match`: the fraction of examples with exactly the right labels.
        `hamming_loss`: the fraction of wrong decisions among all N x C.
        `per_class`: {label: {precision, recall, f1, support}}.
    """
    # Not with scikit-learn, which takes [N, 1] for a binary classification.
    target = np.asarray(targets).astype(bool)
    predicted = np.asarray(predictions) >= threshold
    if target.shape != predicted.shape or target.shape[1:] != (len(labels),):
        raise ValueError(
            "Targets and predictions must have shape [N, C] for C labels. "
            f"Received: {target.shape} and {predicted.shape} for {len(labels)}."
        )
    counts = np.stack([target & predicted, predicted, target]).sum(axis=1)
    overall = precision_recall_f1(*counts.sum(axis=1).tolist())
    scores, macro_f1 = _per_label(counts, labels)
    return {
        "micro_f1": overall["f1"],
        "macro_f1": macro_f1,
        "exact_match": float((target == predicted).all(axis=1).mean()),
        "hamming_loss": float((target != predicted).mean()),
        "per_class": scores,
    }


def _per_label(
    counts: np.ndarray, labels: Sequence[str]
) -> tuple[dict[str, dict[str, float]], float]:
    """Returns the metrics of each label, and their macro F1.

    Args:
        counts: int [3, C], numbers of correct, predicted and expected labels.
        labels: The names of the C labels.
    """
    scores = [precision_recall_f1(*column) for column in counts.T.tolist()]
    macro_f1 = sum(score["f1"] for score in scores) / len(scores)
    return dict(zip(labels, scores, strict=True)), macro_f1
