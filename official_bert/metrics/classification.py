"""Scores of a classifier: one label per example. GLUE's are among them.

Targets and predictions are class numbers, int [N] with N > 0.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import metrics

from official_bert.metrics.counts import precision_recall_f1


def accuracy(
    targets: npt.ArrayLike, predictions: npt.ArrayLike
) -> dict[str, float]:
    """Returns `accuracy`, the share of right predictions."""
    return {"accuracy": float(metrics.accuracy_score(targets, predictions))}


def accuracy_and_f1(
    targets: npt.ArrayLike, predictions: npt.ArrayLike
) -> dict[str, float]:
    """Returns `accuracy` and `f1` of class 1: GLUE's scores of MRPC and QQP.

    Args:
        targets: 0 or 1, int [N].
        predictions: 0 or 1, int [N].
    """
    f1 = metrics.f1_score(targets, predictions, pos_label=1, zero_division=0.0)
    return {**accuracy(targets, predictions), "f1": float(f1)}


def matthews(
    targets: npt.ArrayLike, predictions: npt.ArrayLike
) -> dict[str, float]:
    """Returns `matthews_correlation` and `accuracy`: GLUE's score of CoLA.

    The correlation is 0.0 where all targets or all predictions are the same.
    """
    correlation = 0.0
    # scikit-learn warns of a single class.
    if np.ptp(targets) > 0 and np.ptp(predictions) > 0:
        correlation = float(metrics.matthews_corrcoef(targets, predictions))
    return {
        "matthews_correlation": correlation,
        **accuracy(targets, predictions),
    }


def per_class(
    targets: npt.ArrayLike, predictions: npt.ArrayLike, labels: Sequence[str]
) -> dict[str, Any]:
    """Returns the scores of each class, and what is taken for what.

    Args:
        targets: Below `len(labels)`, int [N].
        predictions: Below `len(labels)`, int [N].
        labels: The names of the C classes.

    Returns:
        `per_class`: {label: {precision, recall, f1, support}}.
        `macro_f1`: the mean F1 of all C classes, absent ones (0.0) too.
        `confusion_matrix`: counts as C lists of C, a row for each true label,
        a column for each predicted one.
    """
    matrix = np.asarray(
        metrics.confusion_matrix(
            targets, predictions, labels=range(len(labels))
        )
    )
    counts = np.stack(
        [matrix.diagonal(), matrix.sum(axis=0), matrix.sum(axis=1)], axis=1
    )  # [C, 3]: correct, predicted, expected.
    scores = [precision_recall_f1(*row) for row in counts.tolist()]
    return {
        "per_class": dict(zip(labels, scores, strict=True)),
        "macro_f1": sum(score["f1"] for score in scores) / len(scores),
        "confusion_matrix": matrix.tolist(),
    }
