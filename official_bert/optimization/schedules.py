"""Learning rate schedules."""

import dataclasses
import math
from typing import Any

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable("official_bert")
@dataclasses.dataclass(frozen=True)
class LinearWarmupDecay(keras.optimizers.schedules.LearningRateSchedule):
    r"""Linear warm-up, then linear decay to 0, as in the 2018 release.

    The linear decay starts at step 0, not at the end of the warm-up. With
    warm-up, the rate therefore drops where the two meet, and never reaches
    `peak`::

        peak  |      .
              |    / |\
              |  /     \
              |/         \___
              0   warm-up   num_train_steps

    If `num_warmup_steps` exceeds `num_train_steps`, the rate keeps rising until
    the warm-up ends, and is 0 from then on.

    Other kinds of decay start at the end of the warm-up, at `peak`: "cosine"
    follows half a cosine wave to 0 (Loshchilov and Hutter, 2017, SGDR), and
    "constant" stays at `peak`.

    Attributes:
        peak: The learning rate from which both lines are computed.
        num_train_steps: The step at which the decay reaches 0.
        num_warmup_steps: The step at which the warm-up ends; 0: no warm-up.
        decay: "linear", "cosine" or "constant".
    """

    peak: float
    num_train_steps: int
    num_warmup_steps: int
    decay: str = "linear"

    def __call__(self, step: Any) -> Any:
        """Returns the float32 rate of the update after `step` updates."""
        decayed = self.peak * self._share_of_peak(step)
        if not self.num_warmup_steps:
            return decayed
        warmup_step = tf.cast(step, tf.float32)
        warming = self.peak * (warmup_step / float(self.num_warmup_steps))
        return tf.where(step < self.num_warmup_steps, warming, decayed)

    def _share_of_peak(self, step: Any) -> Any:
        """Returns the rate without warm-up, divided by the peak."""
        step = tf.cast(tf.minimum(step, self.num_train_steps), tf.float32)
        if self.decay == "linear":
            return 1.0 - step / float(self.num_train_steps)
        if self.decay == "constant":
            return tf.ones_like(step)
        start = self.num_warmup_steps
        num_steps = max(1, self.num_train_steps - start)
        return 0.5 + 0.5 * tf.cos(math.pi * (step - start) / num_steps)

    def get_config(self) -> dict[str, Any]:
        """Returns the attributes, with which Keras saves an optimizer."""
        return dataclasses.asdict(self)
