"""Adam with weight decay, as in the original implementation."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import tensorflow as tf

from official_bert.optimization.schedules import LinearWarmupDecay

# On CPUs, XLA is faster for weights of at least this size: it reads and writes
# a weight once, not a dozen times as separate operations do.
_MIN_SIZE_FOR_XLA = 2**14

_NO_DECAY = ("LayerNorm", "layer_norm", "bias")


@dataclasses.dataclass(eq=False, repr=False)
class AdamWeightDecay:
    """Clips gradients by their global norm, then updates the weights.

    Adam (Kingma and Ba, 2015) without bias correction and with decoupled weight
    decay (Loshchilov and Hutter, 2017). With the moments m and v, the gradient
    g, the weight w and the learning rate r::

        m <- 0.9 m + 0.1 g
        v <- 0.999 v + 0.001 g^2
        w <- w - r (m / (sqrt(v) + 1e-6) + 0.01 w)

    With `corrects_bias`, m / (1 - 0.9^t) and v / (1 - 0.999^t) take the place
    of m and v in the last line. t is the step, counted from 1.

    Create it in the strategy's scope.

    Args:
        exclude_from_weight_decay: Case-sensitive regular expressions. Weights
            whose path contains a match do not decay.
        clip_norm: Maximum global norm of the gradients; None: no clipping.
        corrects_bias: Whether to correct the moments, which start at 0, as Adam
            does and the original implementation does not.
        rate_scales: {path: factor of the learning rate}; 1 for other paths.

    Attributes:
        step: int64 variable, the number of updates.
        slots: {name in a checkpoint: variable}, the moments of each weight:
            its path and `/adam_m` or `/adam_v`.

    Raises:
        InputError: Two weights have the same path.
    """

    moments: ClassVar = ("adam_m", "adam_v")

    weights: Sequence[Any]
    schedule: LinearWarmupDecay
    _: dataclasses.KW_ONLY
    weight_decay_rate: float = 0.01
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-6
    exclude_from_weight_decay: Sequence[str] = _NO_DECAY
    clip_norm: float | None = 1.0
    corrects_bias: bool = False
    rate_scales: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.step = tf.Variable(
            0, dtype=tf.int64, trainable=False, name="global_step"
        )
        # Traced once for each shape, and not inlined: with 25 operations for
        # each weight in the graph, BERT-Base would start three seconds later.
        self._traced_update = tf.function(
            self._update,
            autograph=False,
            experimental_attributes={"_noinline": True},
        )
        self._compiled_update = tf.function(
            self._update, autograph=False, jit_compile=True
        )
        self.slots: dict[str, tf.Variable] = {}
        for weight in self.weights:
            for moment in self.moments:
                name = f"{weight.path}/{moment}"
                if name in self.slots:
                    raise ValueError(
                        f"Two weights have the path {weight.path!r}. Give "
                        "their layers different names, such as "
                        "Bert(config, name='second_bert')."
                    )
                self.slots[name] = tf.Variable(
                    tf.zeros(weight.shape), trainable=False, name=name
                )

    def state(self) -> dict[str, tf.Variable]:
        """Returns {name in a checkpoint: variable}: moments and step."""
        return {**self.slots, "global_step": self.step}

    def decays(self, path: str) -> bool:
        """Whether weight decay applies to the weight with this path."""
        patterns = self.exclude_from_weight_decay
        return not any(re.search(pattern, path) for pattern in patterns)

    def apply(
        self, gradients: Sequence[Any], *, skips_non_finite: bool = False
    ) -> tuple[Any, Any]:
        """Updates all weights once; call it in replica context.

        Args:
            gradients: One for each weight, summed over all replicas. They must
                be dense, because repeated rows of a sparse gradient would be
                squared one by one. None leaves a weight and its moments
                unchanged.
            skips_non_finite: Whether a gradient that is not finite leaves all
                weights and moments unchanged. The step still counts.

        Returns:
            The global norm before clipping, and the learning rate.
        """
        norm = tf.linalg.global_norm(gradients)
        rate = self.schedule(self.step)
        is_finite = tf.math.is_finite(norm) if skips_non_finite else None
        tf.distribute.get_replica_context().merge_call(
            self._update_all,
            args=(gradients, self._clip(norm), rate, is_finite),
        )
        return norm, rate

    def _clip(self, norm: Any) -> Any:
        """Returns the clipping factor; not finite if `norm` is not."""
        if self.clip_norm is None:
            return tf.ones_like(norm)
        clip = self.clip_norm * tf.minimum(1.0 / norm, 1.0 / self.clip_norm)
        return tf.where(tf.math.is_finite(norm), clip, norm * 0.0)

    def _update_all(
        self,
        strategy: Any,
        gradients: Any,
        clip: Any,
        rate: Any,
        is_finite: Any,
    ) -> None:
        """Updates all replicas' copies; runs in cross-replica context."""
        for weight, gradient in zip(self.weights, gradients, strict=True):
            if gradient is None:
                continue
            m, v = (self.slots[f"{weight.path}/{m}"] for m in self.moments)
            strategy.extended.update(
                weight.value,
                self._update_if,
                args=(is_finite, m, v, gradient, clip, rate),
                kwargs={"path": weight.path},
                group=False,
            )
        strategy.extended.update(
            self.step, lambda step: step.assign_add(1), group=False
        )

    def _update_if(
        self,
        weight: Any,
        is_finite: Any,
        m: Any,
        v: Any,
        gradient: Any,
        clip: Any,
        rate: Any,
        path: str,
    ) -> None:
        """Updates one weight, unless `is_finite` is given and false."""
        rate *= self.rate_scales.get(path, 1.0)
        is_large = weight.shape.num_elements() >= _MIN_SIZE_FOR_XLA
        is_cpu = ":CPU:" in weight.device
        if tf.distribute.has_strategy():
            # A trace would use the moments of the first weight of this shape.
            update = self._update
        elif is_large and is_cpu:
            update = self._compiled_update
        else:
            update = self._traced_update

        def run_update() -> Any:
            update(weight, m, v, gradient, clip, rate, self.decays(path))
            return tf.constant(True)

        if is_finite is None:
            run_update()
        else:
            tf.cond(is_finite, run_update, lambda: is_finite)

    def _update(
        self,
        weight: Any,
        m: Any,
        v: Any,
        gradient: Any,
        clip: Any,
        rate: Any,
        decays: bool,
    ) -> None:
        """Computes the formulas in the docstring of the class."""
        gradient *= clip
        m.assign(self.beta_1 * m + (1.0 - self.beta_1) * gradient)
        v.assign(self.beta_2 * v + (1.0 - self.beta_2) * tf.square(gradient))
        update = self._direction(m, v)
        if decays:
            update += self.weight_decay_rate * weight
            rate = self._adapted_rate(rate, weight, update)
        weight.assign_sub(rate * update)

    def _direction(self, m: Any, v: Any) -> Any:
        """Returns the update before weight decay and learning rate."""
        if self.corrects_bias:
            steps = tf.cast(self.step + 1, tf.float32)
            m = m / (1.0 - tf.pow(self.beta_1, steps))
            v = v / (1.0 - tf.pow(self.beta_2, steps))
        return m / (tf.sqrt(v) + self.epsilon)

    def _adapted_rate(self, rate: Any, weight: Any, update: Any) -> Any:
        """Returns the learning rate of one weight; `Lamb` overrides this."""
        return rate
