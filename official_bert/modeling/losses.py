"""Losses per example. The training step divides by the total weight."""

from typing import Any

import keras
from keras import ops

from official_bert.modeling.gradients import softmax_cross_entropy

# `softmax_cross_entropy` is faster from this number of classes on. For fewer,
# Keras' loss is more accurate.
_MANY_CLASSES = 4096


def cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns the negative log-probability of each label.

    Args:
        logits: float Tensor [..., C].
        labels: int Tensor [...]. The loss of a label outside [0, C) is 0, as in
            the original implementation.

    Returns:
        float32 Tensor [...].
    """
    logits = ops.cast(logits, "float32")
    num_classes = ops.shape(logits)[-1]
    labels = ops.cast(labels, "int32")
    is_valid = ops.logical_and(labels >= 0, labels < num_classes)
    labels = ops.clip(labels, 0, num_classes - 1)
    if isinstance(num_classes, int) and num_classes >= _MANY_CLASSES:
        losses = softmax_cross_entropy(
            ops.reshape(logits, (-1, num_classes)), ops.reshape(labels, (-1,))
        )
        losses = ops.reshape(losses, ops.shape(labels))
    else:
        losses = keras.losses.sparse_categorical_crossentropy(
            labels, logits, from_logits=True
        )
    return losses * ops.cast(is_valid, "float32")


def squared_error(predictions: Any, labels: Any) -> Any:
    """Returns the squared differences of two Tensors [...], in float32."""
    return ops.square(
        ops.cast(predictions, "float32") - ops.cast(labels, "float32")
    )


def binary_cross_entropy(logits: Any, labels: Any) -> Any:
    """Returns the mean loss [...] of C binary labels; arguments: [..., C]."""
    return keras.losses.binary_crossentropy(
        ops.cast(labels, "float32"),
        ops.cast(logits, "float32"),
        from_logits=True,
    )
