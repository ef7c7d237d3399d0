"""Probabilities from logits, float32 and exact to rounding; largest values."""

import numpy as np


def softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the softmax over the last axis, [..., C]."""
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Returns the logarithm of the softmax over the last axis, [..., C]."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    totals = np.exp(shifted).sum(axis=-1, keepdims=True)
    return shifted - np.log(totals)


def sigmoid(logits: np.ndarray) -> np.ndarray:
    """Returns 1 / (1 + exp(-x)) of each element, without overflow."""
    powers = np.exp(-np.abs(logits))
    return np.where(logits < 0, powers, 1) / (1 + powers)


def largest(values: np.ndarray, k: int) -> np.ndarray:
    """Returns the indices of the `k` largest of N values, largest first.

    Equal values keep their order.
    """
    smallest = np.partition(values, -k)[-k]
    found = np.flatnonzero(values >= smallest)  # More, if some are equal.
    return found[np.argsort(-values[found], kind="stable")[:k]]
