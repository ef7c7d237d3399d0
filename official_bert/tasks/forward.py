"""Runs a model on features, in batches of similar length."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.inputs import padding
from official_bert.io import progress
from official_bert.io.threads import parallel_map
from official_bert.tasks.task import Features, Logits, Task


class Outputs(NamedTuple):
    """The outputs of a model for N features."""

    logits: Logits
    losses: np.ndarray  # float64 [N], the sum of each feature's losses.
    weights: np.ndarray  # float64 [N], the sum of the weights of these losses.


@dataclasses.dataclass(eq=False)
class Forward:
    """Computes the logits and losses of features.

    `max_seq_length` is the length of the longest possible feature, and
    `batch_size` the number of features on all replicas together. `pad_to` is
    "bucket" or "max"; both give the same outputs, up to rounding.
    """

    task: Task
    model: Any
    _: dataclasses.KW_ONLY
    max_seq_length: int
    batch_size: int
    pad_to: str = "bucket"
    strategy: tf.distribute.Strategy = dataclasses.field(
        default_factory=tf.distribute.get_strategy
    )

    def __post_init__(self) -> None:
        # One trace serves all lengths, except on TPUs, whose programs have
        # static shapes.
        is_tpu = isinstance(self.strategy, tf.distribute.TPUStrategy)
        self._compiled = tf.function(
            lambda batch: self.strategy.run(self._on_replica, args=(batch,)),
            autograph=False,
            reduce_retracing=not is_tpu,
        )

    def run(
        self, features: Features, description: str | None = None
    ) -> Outputs:
        """Returns the outputs of all features, in their order.

        `description` is the title of a progress bar; None: no bar.
        """
        lengths = [
            padding.padded_length(length, self.max_seq_length, self.pad_to)
            for length in features.lengths
        ]
        logits: list[Any] = [None] * len(lengths)
        losses, weights = np.zeros((2, len(lengths)))

        def compute(indices: list[int]) -> list[np.ndarray]:
            length = lengths[indices[0]]
            batch = features.batch(indices, length, self.batch_size)
            return self._compute(batch)

        batches = padding.batches_by_length(lengths, self.batch_size)
        # Replicas wait for each other, so all must run batches in the same
        # order.
        is_alone = self.strategy.num_replicas_in_sync == 1
        mapped = parallel_map if is_alone else map
        outputs = mapped(compute, batches)
        with progress.bar(
            description=description or "",
            total=len(lengths),
            unit=" features",
            disable=description is None,
        ) as bar:
            for indices, output in zip(batches, outputs, strict=True):
                size = len(indices)  # Less than B in the last batch.
                losses[indices] = output[1][:size]
                weights[indices] = output[2][:size]
                for index, values in zip(indices, output[0], strict=False):
                    logits[index] = values
                bar.update(size)
        return Outputs(logits, losses, weights)

    def _compute(self, batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Returns logits, losses and weights of a batch."""
        tensors = {name: tf.constant(values) for name, values in batch.items()}
        return [self._join_replicas(v) for v in self._compiled(tensors)]

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
        weights = self.task.weights(batch)
        losses = self.task.losses(logits, batch) * weights
        axes = list(range(1, len(losses.shape)))  # All but the batch.
        loss_sums = tf.reduce_sum(losses, axes)
        return logits, loss_sums, tf.reduce_sum(weights, axes)
