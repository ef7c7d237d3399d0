"""Adam as BERT was trained with it.

It is Kingma and Ba's, 2015, without bias correction, and with weight decay that
does not pass through the moments (as Loshchilov and Hutter's, 2017).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from official_bert.optimization.schedules import LinearWarmupDecay


class AdamWeightDecay:
    """Clips by global norm, then updates.

    With the moments m and v, the gradient g, the weight w and the rate r::

        m <- 0.9 m + 0.1 g
        v <- 0.999 v + 0.001 g^2
        w <- w - r (m / (sqrt(v) + 1e-6) + 0.01 w)

    The last term is left out for weights whose path matches one of
    `exclude_from_weight_decay`, anywhere and in this case.

    Make it inside the strategy's scope.

    Args:
        weights: The `keras.Variable`s to train.
        schedule: Step -> learning rate.
        weight_decay_rate: How strongly weights are pulled to zero.
        beta_1: Decay of the first moment.
        beta_2: Decay of the second.
        epsilon: Added outside the root.
        exclude_from_weight_decay: Regular expressions.
        clip_norm: The largest norm of all gradients together.
        rate_scales: {path: factor of the learning rate}; 1 where a path is not.

    Attributes:
        step: int64 variable, how many updates were made.
        slots: {name in a checkpoint: variable}: the two moments of each weight,
            under its path and `/adam_m` or `/adam_v`.
    """

    def __init__(
        self,
        weights: Sequence[Any],
        schedule: LinearWarmupDecay,
        *,
        weight_decay_rate: float = 0.01,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        exclude_from_weight_decay: Sequence[str] = (
            "LayerNorm",
            "layer_norm",
            "bias",
        ),
        clip_norm: float = 1.0,
        rate_scales: Mapping[str, float] | None = None,
    ) -> None:
        self.weights = list(weights)
        self.schedule = schedule
        self.weight_decay_rate = weight_decay_rate
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.exclude_from_weight_decay = tuple(exclude_from_weight_decay)
        self.clip_norm = clip_norm
        self.rate_scales = dict(rate_scales or {})
        self.step = tf.Variable(
            0, dtype=tf.int64, trainable=False, name="global_step"
        )
        self.slots: dict[str, tf.Variable] = {}
        for weight in self.weights:
            for moment in ("adam_m", "adam_v"):
                name = f"{weight.path}/{moment}"
                self.slots[name] = tf.Variable(
                    tf.zeros(weight.shape), trainable=False, name=name
                )

    def state(self) -> dict[str, tf.Variable]:
        """Returns {name in a checkpoint: variable}: moments and step."""
        return {**self.slots, "global_step": self.step}

    def decays(self, path: str) -> bool:
        """Whether the weight called `path` is pulled to zero."""
        return not any(
            re.search(pattern, path)
            for pattern in self.exclude_from_weight_decay
        )

    def apply(self, gradients: Sequence[Any]) -> tuple[Any, Any]:
        """Updates all weights once; call it in replica context.

        Args:
            gradients: One for each weight, dense, already summed over all
                replicas and equal on all of them. Dense, because repeated rows
                of a sliced one would be squared apart. None leaves a weight
                and its moments as they are.

        Returns:
            The gradients' norm before clipping, and the learning rate used.
        """
        norm = tf.linalg.global_norm(gradients)
        clipped, _ = tf.clip_by_global_norm(
            gradients, self.clip_norm, use_norm=norm
        )
        rate = self.schedule(self.step)
        tf.distribute.get_replica_context().merge_call(
            self._update_all, args=(clipped, rate)
        )
        return norm, rate

    def _update_all(
        self, strategy: tf.distribute.Strategy, gradients: Any, rate: Any
    ) -> None:
        """Updates every replica's copy of every weight, out of replicas."""
        for weight, gradient in zip(self.weights, gradients, strict=True):
            if gradient is None:
                continue
            strategy.extended.update(
                weight.value,
                self._update,
                args=(
                    gradient,
                    self.slots[f"{weight.path}/adam_m"],
                    self.slots[f"{weight.path}/adam_v"],
                    rate,
                ),
                kwargs={"path": weight.path},
                group=False,
            )
        strategy.extended.update(
            self.step, lambda step: step.assign_add(1), group=False
        )

    def _update(
        self, weight: Any, gradient: Any, m: Any, v: Any, rate: Any, path: str
    ) -> None:
        """The three lines of the class's docstring."""
        rate *= self.rate_scales.get(path, 1.0)
        m.assign(self.beta_1 * m + (1.0 - self.beta_1) * gradient)
        v.assign(self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient))
        update = m / (tf.sqrt(v) + self.epsilon)
        if self.decays(path):
            update += self.weight_decay_rate * weight
        weight.assign_sub(rate * update)
