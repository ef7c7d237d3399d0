"""Scores where an example has any number of labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from official_bert.metrics.counts import precision_recall_f1


def evaluate(
    targets: npt.ArrayLike,
    predictions: npt.ArrayLike,
    labels: Sequence[str],
    threshold: float = 0.5,
) -> dict[str, Any]:
    """Returns scores over all labels, and those of each.

    Args:
        targets: 0 or 1 for each example and label, [N, C] with N > 0.
        predictions: Probabilities, or 0 or 1, [N, C].
        labels: The names of the C labels.
        threshold: A label is predicted if its probability is at least this.

    Returns:
        `micro_f1`: F1 of all pairs of example and label together.
        `macro_f1`: the mean F1 of all C labels, absent ones (0.0) too.
        `exact_match`: the share of examples with exactly the right labels.
        `hamming_loss`: the share of wrong decisions among all N x C.
        `per_class`: {label: {precision, recall, f1, support}}.
    """
    # Counted here, since scikit-learn takes [N, 1] for something else.
    target = np.asarray(targets).astype(bool)
    predicted = np.asarray(predictions) >= threshold
    if target.shape != predicted.shape or target.shape[1:] != (len(labels),):
        raise ValueError(
            "Targets and predictions must have shape [N, C] for C labels. "
            f"Received: {target.shape} and {predicted.shape} for {len(labels)}."
        )
    found = np.stack([target & predicted, predicted, target])
    counts = found.sum(axis=1)  # [3, C]: correct, predicted, expected.
    scores = [precision_recall_f1(*column) for column in counts.T.tolist()]
    overall = precision_recall_f1(*counts.sum(axis=1).tolist())
    return {
        "micro_f1": overall["f1"],
        "macro_f1": sum(score["f1"] for score in scores) / len(scores),
        "exact_match": float((target == predicted).all(axis=1).mean()),
        "hamming_loss": float((target != predicted).mean()),
        "per_class": dict(zip(labels, scores, strict=True)),
    }
