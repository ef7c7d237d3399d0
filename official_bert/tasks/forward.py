"""Rows through a model: in batches of similar length, back in their order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import progress
from official_bert.inputs import padding
from official_bert.tasks.task import FeatureRow, Output, Task
from official_bert.threads import parallel_map


class Forward:
    """A model, ready to run on rows of features.

    Args:
        task: What the rows and the model are of.
        model: As `task.build_model` makes it.
        max_seq_length: The longest row there may be.
        batch_size: Rows at once, over all replicas.
        pad_to: bucket or max; the results are the same but for rounding,
            and for what `Task.pad_to` says.
        strategy: Whose replicas run the model; None for one device.
    """

    def __init__(
        self,
        task: Task,
        model: Any,
        *,
        max_seq_length: int,
        batch_size: int,
        pad_to: str = "bucket",
        strategy: tf.distribute.Strategy | None = None,
    ) -> None:
        self.task = task
        self.model = model
        self.max_seq_length = max_seq_length
        self.schema = task.schema(max_seq_length, is_training=False)
        self.batch_size = batch_size
        self.pad_to = pad_to
        self.strategy = strategy or tf.distribute.get_strategy()
        # Lengths differ from batch to batch; one trace must do for all, except
        # on TPUs, whose programs know all lengths.
        is_tpu = isinstance(self.strategy, tf.distribute.TPUStrategy)
        self._compiled = tf.function(self._run, reduce_retracing=not is_tpu)

    def run(
        self, rows: Sequence[FeatureRow], description: str | None = None
    ) -> list[Output]:
        """Returns an output for each row, in their order.

        Args:
            rows: Of features.
            description: What to call it on the live line; None for no line.
        """
        lengths = [
            padding.padded_length(
                padding.row_length(row), self.max_seq_length, self.pad_to
            )
            for _, row, _ in rows
        ]
        batches = padding.batches_by_length(lengths, self.batch_size)

        def find(numbers: list[int]) -> list[Output]:
            only_rows = [rows[number][1] for number in numbers]
            return self._outputs(only_rows, lengths[numbers[0]])

        # Replicas wait for each other, and so must get batches in one order.
        is_alone = self.strategy.num_replicas_in_sync == 1
        mapped = parallel_map if is_alone else map
        outputs: list[Any] = [None] * len(rows)
        with progress.bar(
            description=description or "",
            total=len(rows),
            unit="row",
            disable=description is None,
        ) as bar:
            for numbers, found in zip(
                batches, mapped(find, batches), strict=True
            ):
                for number, output in zip(numbers, found, strict=True):
                    outputs[number] = output
                bar.update(len(numbers))
        return outputs

    def _outputs(
        self, rows: Sequence[padding.Row], length: int
    ) -> list[Output]:
        batch = padding.pad_batch(self.schema, rows, length, self.batch_size)
        found = self._compiled(
            {name: tf.constant(values) for name, values in batch.items()}
        )
        logits, losses, weights = (
            np.concatenate([part.numpy() for part in self._all_parts(values)])
            for values in found
        )
        return [
            Output(logits[row], float(losses[row]), float(weights[row]))
            for row in range(len(rows))
        ]

    def _all_parts(self, values: Any) -> Sequence[Any]:
        """Returns what all replicas found, those on other hosts as well."""
        parts: Sequence[Any] = self.strategy.experimental_local_results(values)
        if len(parts) < self.strategy.num_replicas_in_sync:
            return [self.strategy.gather(values, axis=0)]
        return parts

    def _run(self, batch: Any) -> Any:
        return self.strategy.run(self._on_replica, args=(batch,))

    def _on_replica(self, batch: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Returns logits, and for each row the sums of losses and weights.

        Of this replica's part of the batch.
        """
        replicas = self.strategy.num_replicas_in_sync
        if replicas > 1:
            context = tf.distribute.get_replica_context()
            number = context.replica_id_in_sync_group
            batch = {
                name: tf.gather(tf.stack(tf.split(values, replicas)), number)
                for name, values in batch.items()
            }
        logits = self.model(batch, training=False)
        weights = self.task.weights(batch)
        losses = self.task.losses(logits, batch) * weights
        beyond_batch = list(range(1, len(losses.shape)))
        return (
            logits,
            tf.reduce_sum(losses, beyond_batch),
            tf.reduce_sum(weights, beyond_batch),
        )
