"""What a model is trained for: losses as weighted means of a whole batch."""

from typing import Any, Protocol

import tensorflow as tf

from official_bert.modeling.losses import cross_entropy
from official_bert.modeling.pretraining_model import (
    PretrainingModel,
    PretrainingOutput,
)
from official_bert.tasks.task import Task

Batch = dict[str, Any]
Scalars = dict[str, Any]


class Objective(Protocol):
    """A sum of losses, each a weighted mean.

    Sums and weights are apart because a mean must be that of the whole batch:
    replicas hold different numbers of masked pieces, so that the mean of their
    means would be another number.
    """

    def weights(self, batch: Batch) -> Scalars:
        """Returns {loss: its weight in this part of the batch}."""

    def sums(self, model: Any, batch: Batch, training: bool) -> Scalars:
        """Runs the model; returns {loss: its weighted sum over this part}."""

    def means(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Divides sums by the weights of the whole batch."""


class PretrainingObjective:
    """Masked LM and next sentence: section 3.1 of the paper.

    Args:
        pieces: What guessing pieces is called.
        pairs: What is learned of pairs: next_sentence or, if the records are
            made for it, sentence_order; None for nothing.
    """

    def __init__(
        self, pieces: str = "masked_lm", pairs: str | None = "next_sentence"
    ) -> None:
        self.pieces = pieces
        self.pairs = pairs

    def weights(self, batch: Batch) -> Scalars:
        """Returns the numbers of masked pieces and of instances."""
        return self._named(
            "loss",
            tf.reduce_sum(batch["masked_lm_weights"]),
            tf.reduce_sum(_instance_weights(batch)),
        )

    def sums(
        self, model: PretrainingModel, batch: Batch, training: bool
    ) -> Scalars:
        """Runs the model and sums the losses."""
        return self._loss_sums(model(batch, training=training), batch)

    def means(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Returns the losses; without any masked piece the first is 0."""
        # Of pieces there may be none at all.
        of_pieces = f"{self.pieces}_loss"
        divisors = {**weights, of_pieces: weights[of_pieces] + 1e-5}
        return {name: sums[name] / divisors[name] for name in divisors}

    def evaluation_sums(self, model: PretrainingModel, batch: Batch) -> Scalars:
        """Returns the loss sums, and how much was guessed right."""
        output = model(batch, training=False)
        masked_lm_right = _equal(
            tf.argmax(output.masked_lm_logits, -1), batch["masked_lm_ids"]
        )
        next_sentence_right = _equal(
            tf.argmax(_instance_logits(output, batch), -1),
            batch["next_sentence_labels"],
        )
        return {
            **self._loss_sums(output, batch),
            **self._named(
                "accuracy",
                tf.reduce_sum(masked_lm_right * batch["masked_lm_weights"]),
                tf.reduce_sum(next_sentence_right * _instance_weights(batch)),
            ),
        }

    def _loss_sums(self, output: PretrainingOutput, batch: Batch) -> Scalars:
        masked_lm = cross_entropy(
            output.masked_lm_logits, batch["masked_lm_ids"]
        )
        next_sentence = cross_entropy(
            _instance_logits(output, batch), batch["next_sentence_labels"]
        )
        return self._named(
            "loss",
            tf.reduce_sum(masked_lm * batch["masked_lm_weights"]),
            tf.reduce_sum(next_sentence * _instance_weights(batch)),
        )

    def _named(self, kind: str, of_pieces: Any, of_pairs: Any) -> Scalars:
        """Names a number of pieces and, if they count, one of pairs."""
        named = {f"{self.pieces}_{kind}": of_pieces}
        if self.pairs:
            named[f"{self.pairs}_{kind}"] = of_pairs
        return named


def _instance_logits(output: PretrainingOutput, batch: Batch) -> Any:
    """Returns next-sentence logits [B, K, 2]; K is 1 unless rows are packed."""
    max_sequences = batch["next_sentence_labels"].shape[1]
    return tf.reshape(output.next_sentence_logits, (-1, max_sequences, 2))


def _instance_weights(batch: Batch) -> Any:
    """Returns float32 [B, K], 1 for each instance and 0 where there is none."""
    labels = batch["next_sentence_labels"]
    weights = batch.get("next_sentence_weights")
    return tf.ones_like(labels, tf.float32) if weights is None else weights


class FinetuningObjective:
    """The loss of a task: the mean over all that counts in it."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def weights(self, batch: Batch) -> Scalars:
        """Returns how many examples, or pieces, count."""
        return {"loss": tf.reduce_sum(self.task.weights(batch))}

    def sums(self, model: Any, batch: Batch, training: bool) -> Scalars:
        """Runs the model and sums the losses."""
        losses = self.task.losses(model(batch, training=training), batch)
        return {"loss": tf.reduce_sum(losses * self.task.weights(batch))}

    def means(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Returns the mean; of a batch in which nothing counts it is 0."""
        return {"loss": tf.math.divide_no_nan(sums["loss"], weights["loss"])}


def _equal(predictions: Any, labels: Any) -> Any:
    """Returns 1.0 where both are the same, and 0.0 elsewhere."""
    same = tf.equal(predictions, tf.cast(labels, predictions.dtype))
    return tf.cast(same, tf.float32)
