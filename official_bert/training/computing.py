"""From options to how a run computes: layers, optimizer, step."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.lamb import Lamb
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options.training import StepOptions
from official_bert.training import precision
from official_bert.training.precision import LossScale
from official_bert.training.recomputing import recomputed
from official_bert.training.step import Computation


@contextlib.contextmanager
def scope(
    options: StepOptions, strategy: tf.distribute.Strategy
) -> Iterator[None]:
    """Where to make a model: on the strategy's devices, in its precision."""
    with strategy.scope(), precision.policy(options.mixed_precision):
        yield


def set_recomputing(model: Any, options: StepOptions) -> None:
    """Makes a model remember no more than `--remat` allows."""
    model.bert.encoder.recomputed = recomputed if options.remat else None


def make_optimizer(
    options: StepOptions,
    weights: Sequence[Any],
    schedule: LinearWarmupDecay,
    rate_scales: Mapping[str, float] | None = None,
) -> AdamWeightDecay:
    """Returns what `--optimizer` names; call it in the strategy's scope.

    Args:
        options: Of the run.
        weights: To train.
        schedule: Of the learning rate.
        rate_scales: {path: factor of the learning rate}.
    """
    kind = Lamb if options.optimizer == "lamb" else AdamWeightDecay
    return kind(weights, schedule, rate_scales=rate_scales)


def make_computation(
    options: StepOptions, strategy: tf.distribute.Strategy
) -> Computation:
    """Returns how to compute steps, with its variables on the devices."""
    with strategy.scope():
        loss_scale = (
            LossScale() if options.mixed_precision == "float16" else None
        )
    num_replicas = strategy.num_replicas_in_sync
    return Computation(
        num_micro_batches=options.gradient_accumulation_steps,
        loss_scale=loss_scale,
        jit_gradients=options.jit_compile and num_replicas > 1,
    )
