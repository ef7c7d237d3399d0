"""Losses per example; who divides by what is the training step's affair."""

from typing import Any

import keras
from keras import ops


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns minus the log-probability of each label, in float32.

    Args:
        logits: float Tensor [..., C].
        labels: int Tensor [...]; a label outside [0, C) has the loss 0, as in
            the 2018 release, whose one-hot labels are then all zero.

    Returns:
        float32 Tensor [...].
    """
    num_classes = ops.shape(logits)[-1]
    labels = ops.cast(labels, "int32")
    inside = ops.logical_and(labels >= 0, labels < num_classes)
    losses = keras.losses.sparse_categorical_crossentropy(
        ops.clip(labels, 0, num_classes - 1),
        ops.cast(logits, "float32"),
        from_logits=True,
    )
    return losses * ops.cast(inside, "float32")


def squared_error(predictions: Any, labels: Any) -> Any:
    """Returns the square of the difference, in float32.

    Args:
        predictions: float Tensor [...].
        labels: Of the same shape.
    """
    return ops.square(
        ops.cast(predictions, "float32") - ops.cast(labels, "float32")
    )


def binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns the mean loss of C yes-or-no questions, in float32.

    Args:
        logits: float Tensor [..., C].
        labels: Of the same shape, 0 or 1.

    Returns:
        float32 Tensor [...].
    """
    return keras.losses.binary_crossentropy(
        ops.cast(labels, "float32"),
        ops.cast(logits, "float32"),
        from_logits=True,
    )
