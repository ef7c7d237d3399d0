"""Training objectives: losses as weighted means over a whole batch.

Sums and weights are computed apart and divided at the end, because the mean
must be that of the whole batch. Replicas and micro-batches hold different
numbers of masked tokens, so a mean of their means would be another number.
"""

from typing import Any, Protocol

import tensorflow as tf

from official_bert.modeling.layers import Training
from official_bert.modeling.losses import cross_entropy
from official_bert.modeling.pretraining_model import (
    PretrainingModel,
    PretrainingOutput,
)
from official_bert.tasks.task import Task

Batch = dict[str, Any]
Scalars = dict[str, Any]


class Objective(Protocol):
    """One or more losses, whose sum is minimized."""

    def loss_weights(self, batch: Batch) -> Scalars:
        """Returns {loss: its weight in this part of the batch}."""

    def loss_sums(
        self, model: Any, batch: Batch, training: Training
    ) -> Scalars:
        """Runs the model; returns {loss: its weighted sum over this part}."""

    def mean_losses(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Divides sums by the weights of the whole batch."""


class PretrainingObjective:
    """Masked LM and next sentence prediction: section 3.1 of the paper.

    Args:
        token_task: The loss of tokens: `masked_lm` or `lm`.
        pair_task: That of pairs: `next_sentence`, `sentence_order` or None.
    """

    def __init__(
        self,
        token_task: str = "masked_lm",
        pair_task: str | None = "next_sentence",
    ) -> None:
        self.token_task = token_task
        self.pair_task = pair_task

    def loss_weights(self, batch: Batch) -> Scalars:
        """Returns the numbers of masked tokens and of instances."""
        return self._named(
            "loss",
            tf.reduce_sum(batch["masked_lm_weights"]),
            tf.reduce_sum(_instance_weights(batch)),
        )

    def loss_sums(
        self, model: PretrainingModel, batch: Batch, training: Training
    ) -> Scalars:
        """Runs the model and sums its losses."""
        return self._sums_of_losses(model(batch, training=training), batch)

    def mean_losses(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Returns the mean losses; without any masked token the first is 0."""
        token_loss = f"{self.token_task}_loss"
        divisors = {**weights, token_loss: weights[token_loss] + 1e-5}
        return {name: sums[name] / divisors[name] for name in divisors}

    def evaluation_sums(self, model: PretrainingModel, batch: Batch) -> Scalars:
        """Returns the sums of losses and of correct predictions."""
        output = model(batch, training=False)
        is_token_correct = _equal(
            tf.argmax(output.masked_lm_logits, -1), batch["masked_lm_ids"]
        )
        is_pair_correct = _equal(
            tf.argmax(_instance_logits(output, batch), -1),
            batch["next_sentence_labels"],
        )
        return {
            **self._sums_of_losses(output, batch),
            **self._named(
                "accuracy",
                tf.reduce_sum(is_token_correct * batch["masked_lm_weights"]),
                tf.reduce_sum(is_pair_correct * _instance_weights(batch)),
            ),
        }

    def _sums_of_losses(
        self, output: PretrainingOutput, batch: Batch
    ) -> Scalars:
        token_losses = cross_entropy(
            output.masked_lm_logits, batch["masked_lm_ids"]
        )
        pair_losses = cross_entropy(
            _instance_logits(output, batch), batch["next_sentence_labels"]
        )
        return self._named(
            "loss",
            tf.reduce_sum(token_losses * batch["masked_lm_weights"]),
            tf.reduce_sum(pair_losses * _instance_weights(batch)),
        )

    def _named(self, kind: str, of_tokens: Any, of_pairs: Any) -> Scalars:
        named = {f"{self.token_task}_{kind}": of_tokens}
        if self.pair_task:
            named[f"{self.pair_task}_{kind}"] = of_pairs
        return named


def _instance_logits(output: PretrainingOutput, batch: Batch) -> Any:
    """Returns next-sentence logits [B, K, 2]; K is 1 unless rows are packed."""
    max_sequences = batch["next_sentence_labels"].shape[1]
    return tf.reshape(output.next_sentence_logits, (-1, max_sequences, 2))


def _instance_weights(batch: Batch) -> Any:
    """Returns float32 [B, K]: 1 for an instance, 0 for an unused place."""
    labels = batch["next_sentence_labels"]
    weights = batch.get("next_sentence_weights")
    return tf.ones_like(labels, tf.float32) if weights is None else weights


def _equal(predictions: Any, labels: Any) -> Any:
    """Returns float32 1 where prediction and label are equal, else 0."""
    same = tf.equal(predictions, tf.cast(labels, predictions.dtype))
    return tf.cast(same, tf.float32)


class FinetuningObjective:
    """The mean loss of a task, over all examples or tokens with a label."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def loss_weights(self, batch: Batch) -> Scalars:
        """Returns the number of examples, or tokens, that have a label."""
        return {"loss": tf.reduce_sum(self.task.weights(batch))}

    def loss_sums(
        self, model: Any, batch: Batch, training: Training
    ) -> Scalars:
        """Runs the model and sums its losses."""
        losses = self.task.losses(model(batch, training=training), batch)
        return {"loss": tf.reduce_sum(losses * self.task.weights(batch))}

    def mean_losses(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Returns the mean; 0 if nothing in the batch has a label."""
        return {"loss": tf.math.divide_no_nan(sums["loss"], weights["loss"])}
