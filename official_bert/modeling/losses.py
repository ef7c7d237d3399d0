"""Losses per example. The training step divides by the total weight."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras
from keras import ops

from official_bert.modeling.gradients import softmax_cross_entropy

Batch = dict[str, Any]

# `softmax_cross_entropy` is faster from this number of classes on. For fewer,
# Keras' loss is more accurate.
_MANY_CLASSES = 4096

# The logit of a choice without tokens.
_MISSING = -1e9


def cross_entropy(logits: Any, labels: Any, smoothing: float = 0.0) -> Any:
    """Returns the negative log-probability of each label.

    Args:
        logits: float Tensor [..., C].
        labels: int Tensor [...]. The loss of a label outside [0, C) is 0, as in
            the original implementation.
        smoothing: The share of the target distribution that is uniform over all
            classes (Szegedy et al., 2016, section 7).

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
    if smoothing:
        is_class = logits > _MISSING / 2  # Which bfloat16 rounds.
        all_losses = ops.where(is_class, -ops.log_softmax(logits), 0.0)
        counts = ops.sum(ops.cast(is_class, "float32"), -1)
        means = ops.sum(all_losses, -1) / ops.maximum(counts, 1.0)
        losses = (1 - smoothing) * losses + smoothing * means
    return losses * ops.cast(is_valid, "float32")


def squared_error(predictions: Any, labels: Any) -> Any:
    """Returns the squared differences of two Tensors [...], in float32."""
    return ops.square(
        ops.cast(predictions, "float32") - ops.cast(labels, "float32")
    )


def binary_cross_entropy(
    logits: Any, labels: Any, smoothing: float = 0.0
) -> Any:
    """Returns the mean loss [...] of C binary labels; arguments: [..., C].

    With `smoothing` s, the targets 0 and 1 are s / 2 and 1 - s / 2.
    """
    return keras.losses.binary_crossentropy(
        ops.cast(labels, "float32"),
        ops.cast(logits, "float32"),
        from_logits=True,
        label_smoothing=smoothing,
    )


def mask_missing_choices(logits: Any, input_mask: Any) -> Any:
    """Sets logits [B, C] of choices without tokens to -1e9.

    `input_mask` is int [B, C, S].
    """
    has_tokens = ops.any(input_mask > 0, axis=-1)
    return ops.where(has_tokens, logits, _MISSING)


class TaskLoss(NamedTuple):
    """The loss of a task: a row of `LOSSES`.

    Attributes:
        losses: (logits, batch) -> float32 losses, [B] or [B, S]. Losses of
            classes also have the argument `smoothing`.
        weights: batch -> the weight of each loss, 0.0 or 1.0.
        divergence: (logits, batch, temperature) -> the losses of a teacher's
            probabilities; None for tasks without a softmax.

    Training may use another one, see `training_loss`.
    """

    losses: Callable[..., Any]
    weights: Callable[[Batch], Any]
    divergence: Callable[[Any, Batch, float], Any] | None = None


def _example_weights(batch: Batch) -> Any:
    return ops.cast(batch["is_real_example"][:, 0], "float32")


def _token_weights(batch: Batch) -> Any:
    return ops.cast(batch["label_mask"], "float32")


def _class_losses(logits: Any, batch: Batch, smoothing: float = 0.0) -> Any:
    return cross_entropy(logits, batch["label_ids"][:, 0], smoothing)


def _multilabel_losses(
    logits: Any, batch: Batch, smoothing: float = 0.0
) -> Any:
    return binary_cross_entropy(logits, batch["label_ids"], smoothing)


def _regression_losses(logits: Any, batch: Batch) -> Any:
    return squared_error(logits[:, 0], batch["label_ids"][:, 0])


def _choice_losses(logits: Any, batch: Batch, smoothing: float = 0.0) -> Any:
    scores = mask_missing_choices(logits, batch["input_mask"])
    return cross_entropy(scores, batch["label_ids"][:, 0], smoothing)


def _token_losses(logits: Any, batch: Batch, smoothing: float = 0.0) -> Any:
    return cross_entropy(logits, batch["label_ids"], smoothing)


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


def _divergence(answers: Any, logits: Any, temperature: float) -> Any:
    """Returns T^2 KL(teacher / T || student / T), float32 [...].

    `answers` are the teacher's probabilities [..., C], `logits` the student's.
    """
    is_possible = answers > 0  # Unlike choices without tokens.
    scores = ops.log(ops.where(is_possible, answers, 1.0))
    scores = ops.where(is_possible, scores, _MISSING)
    teacher = ops.log_softmax(scores / temperature)
    student = ops.log_softmax(ops.cast(logits, "float32") / temperature)
    terms = ops.exp(teacher) * (teacher - student)
    return temperature**2 * ops.sum(terms, axis=-1)


def _class_divergence(logits: Any, batch: Batch, temperature: float) -> Any:
    return _divergence(batch["teacher_answers"], logits, temperature)


def _choice_divergence(logits: Any, batch: Batch, temperature: float) -> Any:
    scores = mask_missing_choices(logits, batch["input_mask"])
    return _class_divergence(scores, batch, temperature)


def _token_divergence(logits: Any, batch: Batch, temperature: float) -> Any:
    """Returns [B, S] for logits [B, S, C] and answers [B, C, S]."""
    answers = ops.transpose(batch["teacher_answers"], (0, 2, 1))
    return _divergence(answers, logits, temperature)


def _span_divergence(logits: Any, batch: Batch, temperature: float) -> Any:
    """Returns [B] for logits [B, S, 2] and answers [B, 2, S]."""
    scores = ops.transpose(logits, (0, 2, 1))
    return ops.mean(_class_divergence(scores, batch, temperature), axis=-1)


# {`loss` of a `Head`: the loss}.
LOSSES = {
    "classification": TaskLoss(
        _class_losses, _example_weights, _class_divergence
    ),
    "multilabel": TaskLoss(_multilabel_losses, _example_weights),
    "regression": TaskLoss(_regression_losses, _example_weights),
    "choices": TaskLoss(_choice_losses, _example_weights, _choice_divergence),
    "tags": TaskLoss(_token_losses, _token_weights, _token_divergence),
    "spans": TaskLoss(_span_losses, _span_weights, _span_divergence),
}


def ranking_losses(vectors: Any, batch: Batch, temperature: float) -> Any:
    """Returns losses [B]: the cross-entropy of finding each text's own match.

    The candidates are the second texts and all further ones, the negatives, of
    the whole batch ("multiple negatives", Henderson et al., 2017; InfoNCE).
    Candidates that are equal to a match of an equal first text, and missing
    texts are left out.

    Args:
        vectors: float32 [B, C, H], of length 1: a text, its match, negatives.
        batch: `text_ids`, int [B, C], equal for equal texts; 0: no text.
        temperature: The divisor of the cosines.
    """
    ids, num_candidates = batch["text_ids"], vectors.shape[1] - 1
    candidates = ops.reshape(vectors[:, 1:], (-1, vectors.shape[-1]))
    candidate_ids = ops.reshape(ids[:, 1:], (1, -1))
    is_same_query = ops.cast(ids[:, :1] == ids[None, :, 0], "float32")
    is_match = ops.cast(ids[:, 1:2] == candidate_ids, "float32")
    left_out = ops.matmul(is_same_query, is_match) > 0
    left_out = left_out | (candidate_ids == 0)
    scores = ops.matmul(vectors[:, 0], ops.transpose(candidates)) / temperature
    own = num_candidates * ops.arange(ops.shape(vectors)[0])
    is_own = own[:, None] == ops.arange(ops.shape(scores)[1])[None]
    scores = ops.where(left_out & ~is_own, -1e9, scores)
    return cross_entropy(scores, own)


def symmetric_ranking_losses(
    vectors: Any, batch: Batch, temperature: float
) -> Any:
    """Returns the means [B] of `ranking_losses` in both directions.

    In the other direction, each match must find its text among the first texts
    of the batch. Negatives have no first text.
    """
    swapped = ops.flip(vectors[:, :2], axis=1)
    ids = {"text_ids": ops.flip(batch["text_ids"][:, :2], axis=1)}
    losses = ranking_losses(vectors, batch, temperature)
    return (losses + ranking_losses(swapped, ids, temperature)) / 2


def cosent_losses(vectors: Any, batch: Batch, temperature: float) -> Any:
    """Returns [B], the CoSENT loss of the batch for each pair (Su, 2022).

    It is log(1 + sum of exp((cosine_i - cosine_j) / temperature)) over all i
    and j where pair i has a lower score, `label_ids` [B, 1], than pair j.
    `vectors` are float32 [B, 2, H], of length 1.
    """
    scores = batch["label_ids"]
    cosines = ops.sum(vectors[:, 0] * vectors[:, 1], axis=-1) / temperature
    differences = cosines[:, None] - cosines[None]
    is_lower = scores < ops.transpose(scores)
    terms = ops.reshape(ops.where(is_lower, differences, -1e9), (-1,))
    terms = ops.concatenate([ops.zeros_like(terms[:1]), terms])
    return ops.broadcast_to(ops.logsumexp(terms), ops.shape(cosines))


def teacher_losses(vectors: Any, batch: Batch, temperature: float) -> Any:
    """Returns 1 - cosine [B] of the vectors of student and teacher.

    Both `vectors` and `teacher_answers` are float32 [B, H], of length 1.
    """
    return 1.0 - ops.sum(vectors * batch["teacher_answers"], axis=-1)


def cosine_losses(vectors: Any, batch: Batch, temperature: float) -> Any:
    """Returns the squared errors [B] of the cosines; `label_ids` are [B, 1]."""
    cosines = ops.sum(vectors[:, 0] * vectors[:, 1], axis=-1)
    return squared_error(cosines, batch["label_ids"][:, 0])


# {`loss` of a `Head`: (vectors [B, C, H], batch, temperature) -> losses [B]}.
# With one text in each example, the vectors are [B, H].
# These losses need the vectors of the whole batch.
EMBEDDING_LOSSES = {
    "ranking": ranking_losses,
    "symmetric_ranking": symmetric_ranking_losses,
    "cosent": cosent_losses,
    "cosine": cosine_losses,
    "teacher": teacher_losses,
}


def training_loss(
    kind: str, class_weights: Sequence[float] = (), smoothing: float = 0.0
) -> TaskLoss:
    """Returns the loss of a task in training.

    In classification, a text has the weight of its class. In multi-label tasks,
    each text has a loss for each label, [B, C], with the weight of the label if
    the text has it, and otherwise with the weight 1. The feature
    `example_weights` of a batch, if any, multiplies these weights. `smoothing`
    is that of `cross_entropy` and `binary_cross_entropy`.
    """
    loss = LOSSES[kind]
    if smoothing:
        smoothed = functools.partial(loss.losses, smoothing=smoothing)
        loss = loss._replace(losses=smoothed)

    def weights_of_texts(batch: Batch) -> Any:
        weights = loss.weights(batch)
        if "example_weights" in batch:
            weights *= batch["example_weights"][:, 0]
        if class_weights and kind == "classification":
            of_classes = ops.convert_to_tensor(class_weights, "float32")
            of_texts = ops.take(of_classes, batch["label_ids"][:, 0])
            if "has_label" in batch:
                is_labeled = batch["has_label"][:, 0] > 0
                of_texts = ops.where(is_labeled, of_texts, 1.0)
            weights *= of_texts
        return weights

    def losses_of_labels(logits: Any, batch: Batch) -> Any:
        # The last axis, over which the loss is averaged, has the size 1.
        labels = batch["label_ids"][..., None]
        return binary_cross_entropy(logits[..., None], labels, smoothing)

    def weights_of_labels(batch: Batch) -> Any:
        weights = ops.convert_to_tensor(class_weights, "float32")
        weights = ops.where(batch["label_ids"] > 0, weights, 1.0)
        return weights_of_texts(batch)[:, None] * weights

    if class_weights and kind == "multilabel":
        return TaskLoss(losses_of_labels, weights_of_labels)
    return loss._replace(weights=weights_of_texts)


class Distillation(NamedTuple):
    """The share of a teacher's answers in the loss, and their temperature."""

    alpha: float
    temperature: float


def distillation_loss(
    kind: str,
    distillation: Distillation,
    class_weights: Sequence[float] = (),
    smoothing: float = 0.0,
) -> TaskLoss:
    """Returns the loss of a student (Hinton et al., 2015).

    It is alpha T^2 KL(teacher / T || student / T) + (1 - alpha)
    `training_loss`, without the second term if `has_label` is 0. For spans, the
    first term is the mean of start and end. It is the squared error in
    regression and the binary cross entropy in multi-label tasks, with the
    teacher's answers as labels.
    """
    alpha, temperature = distillation
    hard = training_loss(kind, class_weights, smoothing)
    unsmoothed = training_loss(kind, class_weights)

    def losses(logits: Any, batch: Batch) -> Any:
        if hard.divergence:
            soft = hard.divergence(logits, batch, temperature)
        else:
            taught = {**batch, "label_ids": batch["teacher_answers"]}
            soft = unsmoothed.losses(logits, taught)
        of_labels = hard.losses(logits, batch)
        has_label = ops.cast(batch["has_label"], "float32")
        if len(of_labels.shape) == 1:
            has_label = has_label[:, 0]
        return alpha * soft + (1 - alpha) * has_label * of_labels

    return TaskLoss(losses, hard.weights)
