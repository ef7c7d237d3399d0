"""Mixed precision: 16-bit layers, and loss scaling for float16."""

import contextlib
import functools
from typing import Any

import tensorflow as tf

from official_bert.modeling import layers

_GROWTH_STEPS = 2000


def policy(name: str) -> contextlib.AbstractContextManager[None]:
    """Layers created in the context compute in `bfloat16` or `float16`.

    Weights, embeddings, layer normalization, softmax and losses stay in
    float32.
    """
    if name == "none":
        return contextlib.nullcontext()
    return layers.default_policy(f"mixed_{name}")


class LossScale:
    """The factor of a float16 loss, without which small gradients become 0.

    It halves when a gradient overflows, and doubles after 2000 steps without
    overflow (Micikevicius et al., 2018, Mixed Precision Training, section 3.2).

    Create it in the strategy's scope. `value` is the factor, at least 1;
    `finite_steps` counts the steps since it last changed.
    """

    def __init__(self, initial: float = 2.0**15) -> None:
        create = functools.partial(
            tf.Variable,
            trainable=False,
            # All replicas compute the same value.
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        self.value = create(initial)
        self.finite_steps = create(0)

    def state(self) -> dict[str, tf.Variable]:
        """Returns {name in a checkpoint: variable}."""
        return {
            "loss_scale/value": self.value,
            "loss_scale/finite_steps": self.finite_steps,
        }

    def update(self, is_finite: Any) -> None:
        """Adapts the scale to whether all gradients of a step were finite."""
        steps = tf.where(is_finite, self.finite_steps + 1, 0)
        grows = steps >= _GROWTH_STEPS
        factor = tf.where(is_finite, tf.where(grows, 2.0, 1.0), 0.5)
        self.value.assign(tf.maximum(self.value * factor, 1.0))
        self.finite_steps.assign(tf.where(grows, 0, steps))
