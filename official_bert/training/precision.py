"""16-bit layers or matrix products, and loss scaling for float16."""

import contextlib
import functools
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert.modeling import layers

_GROWTH_STEPS = 2000
_CPU_INFO = "/proc/cpuinfo"


def policy(
    mixed_precision: str, matmul_precision: str = "float32"
) -> contextlib.AbstractContextManager[None]:
    """Layers created in the context compute in `bfloat16` or `float16`.

    By default, they compute in float32, whatever the global policy of Keras is.
    With `mixed_precision`, weights, embeddings, layer normalization, softmax
    and losses stay in float32; with `matmul_precision`, everything except
    matrix products. Warns if the processor has no instructions for these.
    """
    if matmul_precision == "bfloat16":
        if runs_on_cpu() and not _has_bfloat16():
            logging.warning(
                "--matmul_precision=bfloat16: this processor has no bfloat16 "
                "instructions (avx512_bf16 or amx_bf16), so training is slower "
                "than in float32. Omit the flag"
            )
        return layers.default_policy(layers.Bfloat16Matmul())
    if mixed_precision == "none":
        return layers.default_policy("float32")
    return layers.default_policy(f"mixed_{mixed_precision}")


def runs_on_cpu() -> bool:
    """Whether TensorFlow has no other devices."""
    devices = {d.device_type for d in tf.config.list_logical_devices()}
    return devices == {"CPU"}


def _has_bfloat16() -> bool:
    """Whether the processor multiplies bfloat16; True if this is unknown."""
    try:
        with open(_CPU_INFO, encoding="utf-8") as file:
            names = set(file.read().split())
    except OSError:  # Not Linux.
        return True
    # The last one is the name on ARM.
    return not names.isdisjoint(("avx512_bf16", "amx_bf16", "bf16"))


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
