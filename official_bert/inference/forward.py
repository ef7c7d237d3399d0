"""Runs a Keras model on the features of a task."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.inference import engines, keras_engine
from official_bert.modeling.losses import EMBEDDING_LOSSES, LOSSES
from official_bert.sources.heads import Head
from official_bert.tasks.task import Features, Logits


class Outputs(NamedTuple):
    """The outputs of a model for N features."""

    logits: Logits
    # float64 [N], the sum of each feature's losses. Losses that need the whole
    # batch are 0, with the weight 0.
    losses: np.ndarray
    weights: np.ndarray  # float64 [N], the sum of the weights of these losses.


@dataclasses.dataclass(eq=False)
class Forward:
    """Computes the logits and losses of features; also an `engines.Engine`.

    `max_seq_length` is the length of the longest possible feature, and
    `batch_size` the number of features on all replicas together. `pad_to` is
    "bucket" or "max"; both give the same outputs, up to rounding.
    """

    head: Head
    model: Any
    _: dataclasses.KW_ONLY
    max_seq_length: int
    batch_size: int
    pad_to: str = "bucket"
    strategy: tf.distribute.Strategy = dataclasses.field(
        default_factory=tf.distribute.get_strategy
    )

    def __post_init__(self) -> None:
        is_tpu = isinstance(self.strategy, tf.distribute.TPUStrategy)
        self._run = keras_engine.compile_function(
            lambda batch: self.strategy.run(self._on_replica, args=(batch,)),
            has_static_shapes=is_tpu,
        )

    def run(
        self, features: Features, description: str | None = None
    ) -> Outputs:
        """Returns the outputs of all features, in their order.

        `description` is the title of a progress bar; None: no bar.
        """
        # Several replicas divide batches, and wait for each other: all must run
        # them in the same order.
        is_single = self.strategy.num_replicas_in_sync == 1
        size = self.batch_size
        if is_single:
            size = engines.batch_size_for(len(features.lengths), size)
        outputs = engines.run(
            self,
            features,
            max_seq_length=self.max_seq_length,
            batch_size=size,
            pad_to=self.pad_to,
            in_parallel=is_single,
            description=description,
        )
        sums = np.array([row[1:] for row in outputs], np.float64)
        losses, weights = sums.reshape(-1, 2).T
        return Outputs([row[0] for row in outputs], losses, weights)

    def __call__(self, batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Returns logits, loss sums [B] and weight sums [B] of a batch."""
        return [self._join_replicas(values) for values in self._run(batch)]

    def _join_replicas(self, values: Any) -> np.ndarray:
        parts = self.strategy.experimental_local_results(values)
        if len(parts) < self.strategy.num_replicas_in_sync:  # Several hosts.
            parts = [self.strategy.gather(values, axis=0)]
        return np.concatenate([part.numpy() for part in parts])

    def _on_replica(self, batch: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Returns logits, loss sums and weight sums of this replica's part."""
        replicas = self.strategy.num_replicas_in_sync
        if replicas > 1:  # Each replica is given the whole batch.
            context = tf.distribute.get_replica_context()
            replica = context.replica_id_in_sync_group
            batch = {
                name: tf.gather(tf.stack(tf.split(values, replicas)), replica)
                for name, values in batch.items()
            }
        logits = self.model(batch, training=False)
        if self.head.loss in EMBEDDING_LOSSES:
            zeros = tf.zeros(tf.shape(logits)[0])
            return logits, zeros, zeros
        loss = LOSSES[self.head.loss]
        weights = loss.weights(batch)
        losses = loss.losses(logits, batch) * weights
        axes = list(range(1, len(losses.shape)))  # All but the batch.
        return logits, tf.reduce_sum(losses, axes), tf.reduce_sum(weights, axes)
