"""LAMB: Adam with updates in proportion to the norm of each weight."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official_bert.optimization.adam import AdamWeightDecay


class Lamb(AdamWeightDecay):
    """Algorithm 2 of You et al., 2020, Large Batch Optimization.

    With the moments m and v, the gradient g, the weight w, the rate r and the
    step t, counted from 1::

        m <- 0.9 m + 0.1 g
        v <- 0.999 v + 0.001 g^2
        u =  m / (1 - 0.9^t) / (sqrt(v / (1 - 0.999^t)) + 1e-6) + 0.01 w
        w <- w - r |w| / |u| u

    As in the paper, moments are bias-corrected, the ratio includes the decay,
    and gradients are not clipped. Weights that do not decay (biases, layer
    normalization) have a ratio of 1, as in the code released with ALBERT:
    biases start at 0, and a ratio of |w| would keep them there. The ratio is
    also 1 if one of the norms is 0.

    Arguments and attributes are those of `AdamWeightDecay`, except that slots
    are named `/lamb_m` and `/lamb_v`, so that a run cannot resume with the
    moments of the other optimizer.
    """

    moments = ("lamb_m", "lamb_v")

    def __init__(
        self, weights: Sequence[Any], schedule: Any, **kwargs: Any
    ) -> None:
        super().__init__(weights, schedule, **{"clip_norm": None, **kwargs})

    def _update(
        self,
        weight: Any,
        gradient: Any,
        m: Any,
        v: Any,
        clip: Any,
        rate: Any,
        decays: bool,
    ) -> None:
        """Computes the formulas in the docstring of the class."""
        self._update_moments(gradient * clip, m, v)
        steps = tf.cast(self.step + 1, tf.float32)
        m_corrected = m / (1.0 - tf.pow(self.beta_1, steps))
        v_corrected = v / (1.0 - tf.pow(self.beta_2, steps))
        update = m_corrected / (tf.sqrt(v_corrected) + self.epsilon)
        if decays:
            update += self.weight_decay_rate * weight
            rate *= _trust_ratio(tf.norm(weight), tf.norm(update))
        weight.assign_sub(rate * update)


def _trust_ratio(weight_norm: Any, update_norm: Any) -> Any:
    both = (weight_norm > 0.0) & (update_norm > 0.0)
    return tf.where(both, tf.math.divide_no_nan(weight_norm, update_norm), 1.0)
