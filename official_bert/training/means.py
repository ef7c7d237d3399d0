"""Means of losses and accuracies over many batches, on all replicas."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import progress
from official_bert.training import distribution
from official_bert.training.objectives import (
    Batch,
    PretrainingObjective,
    Scalars,
)
from official_bert.training.step import all_sum


def over(
    model: Any,
    objective: PretrainingObjective,
    batches: tf.data.Dataset,
    strategy: tf.distribute.Strategy,
    num_batches: int,
) -> dict[str, np.float32]:
    """Returns the means of all sums, and `loss`, the mean of batches' losses.

    Sums are added up in float64, so that their order does not matter.

    Args:
        model: Made in the strategy's scope.
        objective: What it was trained for.
        batches: Of the data.
        strategy: Which devices to use.
        num_batches: How many there are at most, to show progress.
    """

    def step(batch: Batch) -> tuple[Scalars, Scalars]:
        sums = all_sum(objective.evaluation_sums(model, batch))
        weights = all_sum(objective.weights(batch))
        losses = objective.means(sums, weights)
        sums["loss"] = tf.add_n(list(losses.values()))
        return sums, {**weights, "loss": tf.constant(1.0)}

    compiled = tf.function(lambda batch: strategy.run(step, args=(batch,)))
    total_sums: dict[str, float] = {}
    total_weights: dict[str, float] = {}
    for batch in progress.bar(
        distribution.deal_out(batches, strategy),
        description="Evaluating",
        total=num_batches,
        unit="batch",
        unit_scale=False,
    ):
        sums, weights = distribution.first(strategy, compiled(batch))
        _add(total_sums, sums)
        _add(total_weights, weights)
    return {
        name: np.float32(total / _weight_of(name, total_weights))
        for name, total in total_sums.items()
    }


def _add(totals: dict[str, float], scalars: Scalars) -> None:
    for name, value in scalars.items():
        totals[name] = totals.get(name, 0.0) + float(value)


def _weight_of(name: str, weights: Mapping[str, float]) -> float:
    """Returns what to divide by; an accuracy has the weight of its loss."""
    # No masked piece at all gives 0, as the 2018 release's metrics do.
    return weights[name.replace("_accuracy", "_loss")] or 1.0
