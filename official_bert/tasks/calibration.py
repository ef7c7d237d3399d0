"""Calibration of classifiers, fitted to evaluated examples.

A temperature divides the logits of a classifier, so that its probabilities
agree with how often it is right (Guo et al., 2017). In multi-label tasks, each
label has the threshold with the best F1.

Scores are probabilities [N, C] without calibration. Targets are classes, int
[N], or in multi-label tasks bool [N, C].
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from official_bert.errors import listed
from official_bert.metrics import classification
from official_bert.tasks import probabilities

_MIN_EXAMPLES = 50
_MIN_OF_LABEL = 10  # Examples that have a label, and that do not have it.
_MAX_TEMPERATURE = 10.0  # The smallest temperature is 1 / 10.
_NUM_FOLDS = 5


class Calibration(NamedTuple):
    """How logits become probabilities, and probabilities become labels."""

    temperature: float = 1.0  # Divides the logits.
    thresholds: tuple[float, ...] = ()  # One per label; (): 0.5 for all.


NO_CALIBRATION = Calibration()


class Fitted(NamedTuple):
    """A calibration and its cross-validated metrics.

    If none can be fitted, it changes nothing, and there are no metrics.
    """

    calibration: Calibration
    metrics: dict[str, float]


def fit(
    targets: np.ndarray, scores: np.ndarray, labels: Sequence[str]
) -> Fitted:
    """Fits a calibration for C `labels`, or logs why none can be fitted."""
    problem = ""
    if len(targets) < _MIN_EXAMPLES:
        problem = f"fewer than {_MIN_EXAMPLES} examples were evaluated"
    elif (targets == targets[0]).all():
        problem = "all evaluated examples have the same label"
    elif not np.isfinite(scores).all():
        problem = "some probabilities are not numbers"
    if problem:
        return _not_fitted(problem)
    if targets.ndim == 1:
        return _fit_classes(targets, scores)
    return _fit_labels(targets, scores, labels)


def _fit_classes(targets: np.ndarray, scores: np.ndarray) -> Fitted:
    """Fits a temperature."""
    temperature = float(fit_temperature(targets, scores))
    by_row = _without_own_fold(fit_temperature, targets, scores)
    after = with_temperature(scores, by_row)
    improves = _loss(targets, after) < _loss(targets, scores)
    if temperature == 1.0 or not improves:
        return _not_fitted(
            "a temperature does not lower the cross-validated loss. This is "
            "always the case if all predictions are right"
        )
    _log(f"temperature {temperature:.4g}")
    metrics = measure(targets, scores, (), by_row, ())
    return Fitted(Calibration(temperature), metrics)


def _fit_labels(
    targets: np.ndarray, scores: np.ndarray, labels: Sequence[str]
) -> Fitted:
    """Fits thresholds; labels that few examples have, or lack, keep 0.5."""
    counts = targets.sum(axis=0)
    is_fitted = np.minimum(counts, len(targets) - counts) >= _MIN_OF_LABEL
    fit_part = functools.partial(_fit_thresholds, is_fitted)
    by_row = _without_own_fold(fit_part, targets, scores)
    metrics = measure(targets, scores, labels, 1.0, by_row)
    before = classification.multilabel(targets, scores, labels)["macro_f1"]
    if metrics["macro_f1_calibrated"] <= before:
        return _not_fitted(
            "thresholds do not improve the cross-validated macro F1. Each "
            f"needs {_MIN_OF_LABEL} examples with the label, and "
            f"{_MIN_OF_LABEL} without it"
        )
    thresholds = tuple(fit_part(targets, scores).tolist())
    pairs = zip(labels, thresholds, strict=True)
    _log(f"thresholds {listed(f'{name}={t:.4g}' for name, t in pairs)}")
    return Fitted(Calibration(thresholds=thresholds), metrics)


def _not_fitted(problem: str) -> Fitted:
    logging.info(f"No calibration: {problem}")
    return Fitted(NO_CALIBRATION, {})


def _log(fitted: str) -> None:
    logging.info(
        f"Calibration: {fitted}, fitted to the evaluated examples. Metrics "
        "with the ending _calibrated are cross-validated"
    )


def measure(
    targets: np.ndarray,
    scores: np.ndarray,
    labels: Sequence[str],
    temperature: Any,
    thresholds: Any,
) -> dict[str, float]:
    """Returns the expected calibration error before and after, or F1 after.

    `temperature` is a number, or an array [N]. In multi-label tasks,
    `thresholds` are [C] or [N, C].
    """
    if targets.ndim == 1:
        after = with_temperature(scores, temperature)
        error = classification.expected_calibration_error
        before = error(targets, scores)
        return {"ece": before, "ece_calibrated": error(targets, after)}
    found = classification.multilabel(targets, scores, labels, thresholds)
    return {f"{n}_calibrated": found[n] for n in ("micro_f1", "macro_f1")}


def with_temperature(scores: np.ndarray, temperature: Any) -> np.ndarray:
    """Returns the probabilities after dividing the logits by a temperature.

    `temperature` is a number, or an array [N].
    """
    divisors = np.reshape(np.float32(temperature), (-1, 1))
    return probabilities.softmax(_logits(scores) / divisors)


def _logits(scores: np.ndarray) -> np.ndarray:
    """Returns the logits of scores, except for a constant in each row."""
    return np.log(np.maximum(scores, np.finfo(np.float32).tiny))


def _loss(targets: np.ndarray, scores: np.ndarray) -> float:
    """Returns the mean negative log-probability of the targets."""
    return -float(np.mean(_logits(scores)[np.arange(len(targets)), targets]))


def _without_own_fold(
    fit: Callable[[np.ndarray, np.ndarray], np.ndarray],
    targets: np.ndarray,
    scores: np.ndarray,
) -> np.ndarray:
    """Returns, for each row, what is fitted to the rows of other folds."""
    fold = np.arange(len(targets)) % _NUM_FOLDS
    parts = [fold != number for number in range(_NUM_FOLDS)]
    return np.stack([fit(targets[p], scores[p]) for p in parts])[fold]


def fit_temperature(targets: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Returns the temperature with the lowest loss, float64 [].

    Returns 1.0 if it is not between 0.1 and 10.
    """
    logits = _logits(scores.astype(np.float64))
    of_targets = logits[np.arange(len(targets)), targets].mean()

    def is_too_low(temperature: float) -> bool:
        # The loss is a convex function of 1 / temperature. This is its slope.
        shares = probabilities.softmax(logits / temperature)
        return bool((shares * logits).sum(axis=1).mean() > of_targets)

    low, high = 1 / _MAX_TEMPERATURE, _MAX_TEMPERATURE
    if not is_too_low(low) or is_too_low(high):
        return np.array(1.0)
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_too_low(middle) else (low, middle)
    return np.array(math.sqrt(low * high))


def _fit_thresholds(
    is_fitted: np.ndarray, targets: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """Returns the best threshold of each label [C], 0.5 if it is not fitted."""
    columns = zip(is_fitted, targets.T, scores.T, strict=True)
    return np.array([fit_threshold(t, s) if f else 0.5 for f, t, s in columns])


def fit_threshold(targets: np.ndarray, scores: np.ndarray) -> float:
    """Returns the threshold of one label with the best F1.

    It is halfway between two scores. Targets and scores are [N].
    """
    order = np.argsort(-scores, kind="stable")
    ranked = np.append(scores[order].astype(np.float64), 0.0)
    num_correct = np.cumsum(targets[order])
    num_predicted = np.arange(1, len(targets) + 1)
    f1 = 2 * num_correct / (num_predicted + targets.sum())
    # Equal scores are predicted together.
    best = np.argmax(np.where(ranked[:-1] > ranked[1:], f1, -1.0))
    return float(ranked[best] + ranked[best + 1]) / 2
