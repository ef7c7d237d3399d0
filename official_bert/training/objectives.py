"""Training objectives: losses as weighted means over a whole batch.

The sum of the losses is divided by the sum of the weights at the end. Replicas
and micro-batches have different numbers of masked tokens, so a mean of their
means would differ.
"""

import dataclasses
from typing import Any

import tensorflow as tf

from official_bert.inputs.schemas import Masking
from official_bert.modeling.layers import Training
from official_bert.modeling.losses import (
    EMBEDDING_LOSSES,
    Distillation,
    TaskLoss,
    cross_entropy,
    distillation_loss,
    training_loss,
)
from official_bert.modeling.pooling_head import unit_vectors
from official_bert.modeling.pretraining_model import (
    PretrainingModel,
    PretrainingOutput,
)
from official_bert.sources.heads import Head
from official_bert.training import dynamic_masking
from official_bert.training.dynamic_masking import Batch

Scalars = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class PretrainingObjective:
    """Masked LM and next sentence prediction: section 3.1 of the paper.

    `token_task` is `masked_lm` or `lm`, `pair_task` is `next_sentence`,
    `sentence_order` or None. The sum of both losses is minimized. `masking` is
    None for records that are masked already, and for `lm`.
    """

    token_task: str = "masked_lm"
    pair_task: str | None = "next_sentence"
    masking: Masking | None = None

    def with_labels(self, batch: Batch, seed: Any) -> Batch:
        """Returns the batch with labels for the token loss.

        Masks unmasked records, with an int [2] seed. For left-to-right models,
        the labels are the next tokens.
        """
        if self.token_task == "lm":
            return to_next_tokens(batch)
        if self.masking:
            return dynamic_masking.mask_batch(batch, self.masking, seed)
        return batch

    def loss_weights(self, batch: Batch) -> Scalars:
        """Returns {loss: number of masked tokens, or of instances}."""
        weights = batch["masked_lm_weights"]
        return self._named_sums("loss", weights, _instance_weights(batch))

    def loss_sums(
        self, model: PretrainingModel, batch: Batch, training: Training
    ) -> Scalars:
        """Runs the model; returns {loss: its weighted sum over the batch}."""
        output = model(batch, training=training)
        return self._sums(cross_entropy, "loss", output, batch)

    def mean_losses(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Returns mean losses; without masked tokens, the token loss is 0."""
        token_loss = f"{self.token_task}_loss"
        # 1e-5 as in the original implementation.
        divisors = {**weights, token_loss: weights[token_loss] + 1e-5}
        return {name: sums[name] / divisors[name] for name in divisors}

    def evaluation_sums(self, model: PretrainingModel, batch: Batch) -> Scalars:
        """Returns the sums of losses and of correct predictions."""
        output = model(batch, training=False)
        losses = self._sums(cross_entropy, "loss", output, batch)
        return losses | self._sums(_is_correct, "accuracy", output, batch)

    def _sums(
        self, score: Any, kind: str, output: PretrainingOutput, batch: Batch
    ) -> Scalars:
        """Returns the weighted sums of `score(logits, labels)`."""
        token_scores = score(output.masked_lm_logits, batch["masked_lm_ids"])
        token_scores *= batch["masked_lm_weights"]
        labels = batch["next_sentence_labels"]
        # [B, K, 2]; K is 1 unless instances are packed.
        logits = tf.reshape(
            output.next_sentence_logits, (-1, labels.shape[1], 2)
        )
        pair_scores = score(logits, labels) * _instance_weights(batch)
        return self._named_sums(kind, token_scores, pair_scores)

    def _named_sums(
        self, kind: str, token_values: Any, pair_values: Any
    ) -> Scalars:
        sums = {f"{self.token_task}_{kind}": tf.reduce_sum(token_values)}
        if self.pair_task:
            sums[f"{self.pair_task}_{kind}"] = tf.reduce_sum(pair_values)
        return sums


def _instance_weights(batch: Batch) -> Any:
    """Returns float32 [B, K]: 1 for an instance, 0 for an unused slot."""
    labels = batch["next_sentence_labels"]
    weights = batch.get("next_sentence_weights")
    return tf.ones_like(labels, tf.float32) if weights is None else weights


def _is_correct(logits: Any, labels: Any) -> Any:
    predictions = tf.argmax(logits, -1)
    same = tf.equal(predictions, tf.cast(labels, predictions.dtype))
    return tf.cast(same, tf.float32)


@dataclasses.dataclass(frozen=True)
class FinetuningObjective:
    """The weighted mean loss over all examples or tokens with a label.

    `class_weights` are the weights of the classes; (): all have the weight 1.
    For `smoothing` see `training_loss`. With `distillation`, a batch has the
    answers of a teacher.
    """

    head: Head
    class_weights: tuple[float, ...] = ()
    smoothing: float = 0.0
    distillation: Distillation | None = None

    @property
    def _loss(self) -> TaskLoss:
        kind, flags = self.head.loss, (self.class_weights, self.smoothing)
        if self.distillation:
            return distillation_loss(kind, self.distillation, *flags)
        return training_loss(kind, *flags)

    def with_labels(self, batch: Batch, seed: Any) -> Batch:
        """Returns the batch, which has the labels of the records."""
        return batch

    def loss_weights(self, batch: Batch) -> Scalars:
        """Returns the weight of the examples, or tokens, that have a label."""
        return {"loss": tf.reduce_sum(self._loss.weights(batch))}

    def loss_sums(
        self, model: Any, batch: Batch, training: Training
    ) -> Scalars:
        """Runs the model and returns the sum of its losses."""
        losses = self._loss.losses(model(batch, training=training), batch)
        return {"loss": tf.reduce_sum(losses * self._loss.weights(batch))}

    def mean_losses(self, sums: Scalars, weights: Scalars) -> Scalars:
        """Returns the mean; 0 if nothing in the batch has a label."""
        return {"loss": tf.math.divide_no_nan(sums["loss"], weights["loss"])}


@dataclasses.dataclass(frozen=True)
class EmbeddingObjective(FinetuningObjective):
    """The mean loss of examples that are compared with the whole batch.

    If the batch is divided, a step has two passes, as in GradCache (Gao et al.,
    2021): the first one computes the vectors of all parts, the loss and its
    gradients for the vectors, which the second one propagates to the weights.
    """

    def loss_weights(self, batch: Batch) -> Scalars:
        """Returns the number of examples."""
        return {"loss": tf.cast(tf.shape(batch["label_ids"])[0], tf.float32)}

    def losses(self, vectors: Any, batch: Batch) -> Any:
        """Returns the losses [B] of the vectors of a whole batch."""
        head = self.head
        loss = EMBEDDING_LOSSES[head.loss]
        sizes = (vectors.shape[-1], *head.matryoshka)
        units = [unit_vectors(vectors[..., :size]) for size in sizes]
        return sum(loss(unit, batch, head.temperature) for unit in units)

    def vector_gradients(
        self, vectors: Any, batch: Batch
    ) -> tuple[Scalars, Any]:
        """Compares a replica's vectors with those of all replicas.

        Returns the replica's sum of losses, and the gradients of the sum over
        all replicas with respect to the replica's vectors.
        """
        context: Any = tf.distribute.get_replica_context()
        names = ("text_ids", "label_ids", "teacher_answers")
        # Copies are on a device, which `all_gather` needs on several hosts; an
        # argument of a `tf.function` is on none.
        labels = {n: tf.identity(batch[n]) for n in names if n in batch}
        whole, labels = tf.nest.map_structure(
            lambda of_all, own: tf.ensure_shape(of_all, (None, *own.shape[1:])),
            context.all_gather((vectors, labels), axis=0),
            (vectors, labels),
        )
        with tf.GradientTape() as tape:
            tape.watch(whole)
            losses = self.losses(whole, labels)
        size = tf.shape(vectors)[0]
        start = context.replica_id_in_sync_group * size
        gradients = tape.gradient(losses, whole)[start : start + size]
        return {"loss": tf.reduce_sum(losses[start : start + size])}, gradients

    def loss_sums(
        self, model: Any, batch: Batch, training: Training
    ) -> Scalars:
        """Runs the model and returns the sum of its losses.

        In the second pass, only the gradient of the sum has a meaning.
        """
        vectors = model(batch, training=training)
        if "vector_gradients" in batch:
            return {"loss": tf.reduce_sum(vectors * batch["vector_gradients"])}
        return {"loss": tf.reduce_sum(self.losses(vectors, batch))}


Objective = PretrainingObjective | FinetuningObjective


def to_next_tokens(batch: Batch) -> Batch:
    """Turns masked LM labels into next-token labels for a left-to-right model.

    ::

        record:  tokens: [CLS] the [MASK] sat [SEP]    labels: cat, at 2
        here:    tokens: [CLS] the cat    sat [SEP]    labels: the cat sat [SEP]

    The labels keep their names, but there are S - 1 of them instead of P:
    label i is token i + 1, with weight 1 if tokens i and i + 1 belong to the
    same text.
    """
    input_ids, mask = _unmasked(batch), batch["input_mask"]
    is_text = tf.logical_and(mask[:, 1:] > 0, mask[:, 1:] == mask[:, :-1])
    positions = tf.range(mask.shape[1] - 1)
    return {
        **batch,
        "input_ids": input_ids,
        "masked_lm_positions": tf.zeros_like(input_ids[:, 1:]) + positions,
        "masked_lm_ids": input_ids[:, 1:],
        "masked_lm_weights": tf.cast(is_text, tf.float32),
    }


def _unmasked(batch: Batch) -> Any:
    """Returns the input ids [B, S] as they were before masking."""
    if "masked_lm_positions" not in batch:
        return batch["input_ids"]
    input_ids, positions = batch["input_ids"], batch["masked_lm_positions"]
    length = input_ids.shape[1]
    # Unused predictions go to an extra column, which is cut off.
    is_used = batch["masked_lm_weights"] > 0
    columns = tf.where(is_used, positions, length)
    rows = tf.zeros_like(columns) + tf.range(tf.shape(columns)[0])[:, None]
    restored = tf.tensor_scatter_nd_update(
        tf.pad(input_ids, [[0, 0], [0, 1]]),
        tf.stack([rows, columns], axis=-1),
        batch["masked_lm_ids"],
    )
    return restored[:, :length]
