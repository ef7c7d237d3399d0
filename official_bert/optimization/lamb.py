"""LAMB: Adam with updates in proportion to the norm of each weight."""

import dataclasses
from typing import Any, ClassVar

import tensorflow as tf

from official_bert.optimization.adam import AdamWeightDecay


@dataclasses.dataclass(eq=False, repr=False)
class Lamb(AdamWeightDecay):
    """Algorithm 2 of You et al., 2020, Large Batch Optimization.

    With the moments m and v, the gradient g, the weight w, the rate r and the
    step t, counted from 1::

        m <- 0.9 m + 0.1 g
        v <- 0.999 v + 0.001 g^2
        u =  m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-6) + 0.01 w
        w <- w - r |w| / |u| u

    By default gradients are not clipped, as in the paper. Weights that do not
    decay (biases, layer normalization) have a ratio |w| / |u| of 1, as in the
    code released with ALBERT: biases start at 0, and a ratio of 0 would keep
    them there. The ratio is also 1 if one of the norms is 0.

    Slots are named `/lamb_m` and `/lamb_v`, so that a run cannot resume with
    the moments of `AdamWeightDecay`.
    """

    moments: ClassVar = ("lamb_m", "lamb_v")

    clip_norm: float | None = None
    corrects_bias: bool = True

    def _adapted_rate(self, rate: Any, weight: Any, update: Any) -> Any:
        weight_norm, update_norm = tf.norm(weight), tf.norm(update)
        are_nonzero = (weight_norm > 0.0) & (update_norm > 0.0)
        ratio = tf.math.divide_no_nan(weight_norm, update_norm)
        return rate * tf.where(are_nonzero, ratio, 1.0)
