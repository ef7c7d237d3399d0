"""Learning rates as functions of the step."""

import dataclasses
from typing import Any

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class LinearWarmupDecay:
    r"""The 2018 release's schedule: up over the warm-up, down to zero.

    The decay counts from step 0, not from the end of the warm-up, so the rate
    drops a little where the two meet, and never quite reaches `peak`::

        peak  |      .
              |    / |\
              |  /     \
              |/         \___
              0   warm-up   num_train_steps

    Attributes:
        peak: The rate that the warm-up aims at.
        num_train_steps: Where the rate has become 0, and stays.
        num_warmup_steps: Steps of warm-up; step 0 then has the rate 0.
    """

    peak: float
    num_train_steps: int
    num_warmup_steps: int

    def __call__(self, step: Any) -> Any:
        """Returns the float32 rate of the update that follows `step` others."""
        now = tf.cast(tf.minimum(step, self.num_train_steps), tf.float32)
        decayed = self.peak * (1.0 - now / float(self.num_train_steps))
        if not self.num_warmup_steps:
            return decayed
        warming = self.peak * (now / float(self.num_warmup_steps))
        return tf.where(step < self.num_warmup_steps, warming, decayed)
