"""Losses per example. The training step divides by the total weight."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from official_bert.modeling.gradients import softmax_cross_entropy

Batch = dict[str, Any]

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


def mask_missing_choices(logits: Any, input_mask: Any) -> Any:
    """Sets logits [B, C] of choices without tokens to -1e9.

    `input_mask` is int [B, C, S].
    """
    has_tokens = ops.any(input_mask > 0, axis=-1)
    return ops.where(has_tokens, logits, -1e9)


class TaskLoss(NamedTuple):
    """The loss of a task: a row of `LOSSES`.

    Attributes:
        losses: (logits, batch) -> float32 losses, [B] or [B, S].
        weights: batch -> the weight of each loss, 0.0 or 1.0.

    With class weights, see `with_class_weights`.
    """

    losses: Callable[[Any, Batch], Any]
    weights: Callable[[Batch], Any]


def _example_weights(batch: Batch) -> Any:
    return ops.cast(batch["is_real_example"][:, 0], "float32")


def _token_weights(batch: Batch) -> Any:
    return ops.cast(batch["label_mask"], "float32")


def _class_losses(logits: Any, batch: Batch) -> Any:
    return cross_entropy(logits, batch["label_ids"][:, 0])


def _multilabel_losses(logits: Any, batch: Batch) -> Any:
    return binary_cross_entropy(logits, batch["label_ids"])


def _regression_losses(logits: Any, batch: Batch) -> Any:
    return squared_error(logits[:, 0], batch["label_ids"][:, 0])


def _choice_losses(logits: Any, batch: Batch) -> Any:
    scores = mask_missing_choices(logits, batch["input_mask"])
    return cross_entropy(scores, batch["label_ids"][:, 0])


def _token_losses(logits: Any, batch: Batch) -> Any:
    return cross_entropy(logits, batch["label_ids"])


def _span_losses(logits: Any, batch: Batch) -> Any:
    """Returns [B], the mean loss of start and end; 0 without labels."""
    if "start_positions" not in batch:
        return ops.zeros(ops.shape(logits)[:1])
    starts, ends = batch["start_positions"], batch["end_positions"]
    start = cross_entropy(logits[..., 0], starts[:, 0])
    end = cross_entropy(logits[..., 1], ends[:, 0])
    return (start + end) / 2.0


def _span_weights(batch: Batch) -> Any:
    """Returns [B], 1 with labels and 0 without."""
    shape = ops.shape(batch["input_ids"])[:1]
    return ops.full(shape, float("start_positions" in batch))


# {`loss` of a `Head`: the loss}.
LOSSES = {
    "classification": TaskLoss(_class_losses, _example_weights),
    "multilabel": TaskLoss(_multilabel_losses, _example_weights),
    "regression": TaskLoss(_regression_losses, _example_weights),
    "choices": TaskLoss(_choice_losses, _example_weights),
    "tags": TaskLoss(_token_losses, _token_weights),
    "spans": TaskLoss(_span_losses, _span_weights),
}


def with_class_weights(kind: str, class_weights: Sequence[float]) -> TaskLoss:
    """Returns the loss of a task whose C classes have weights, if any.

    In classification, a text has the weight of its class. In multi-label tasks,
    each text has a loss for each label, [B, C], with the weight of the label if
    the text has it, and otherwise with the weight 1.
    """
    loss = LOSSES[kind]
    if not class_weights:
        return loss

    def weights_of_texts(batch: Batch) -> Any:
        weights = ops.convert_to_tensor(class_weights, "float32")
        return loss.weights(batch) * ops.take(weights, batch["label_ids"][:, 0])

    def losses_of_labels(logits: Any, batch: Batch) -> Any:
        # The last axis, over which the loss is averaged, has the size 1.
        labels = batch["label_ids"][..., None]
        return binary_cross_entropy(logits[..., None], labels)

    def weights_of_labels(batch: Batch) -> Any:
        weights = ops.convert_to_tensor(class_weights, "float32")
        weights = ops.where(batch["label_ids"] > 0, weights, 1.0)
        return loss.weights(batch)[:, None] * weights

    if kind == "classification":
        return loss._replace(weights=weights_of_texts)
    return TaskLoss(losses_of_labels, weights_of_labels)
