"""Dropout whose masks are a function of a seed and the layer's name.

A training run must be able to draw the same masks again after it was killed,
and other masks on every replica and at every step. So the masks come from no
hidden counter: whoever runs a step names its seed with `seeded`, and each layer
mixes in its own path.
"""

import contextlib
import threading
import zlib
from collections.abc import Iterator
from typing import Any

import keras

# Replicas of one step are traced in threads of their own.
_active = threading.local()


@contextlib.contextmanager
def seeded(seed: Any) -> Iterator[None]:
    """Makes all `Dropout` layers called inside draw their masks from `seed`.

    Args:
        seed: int32 Tensor of shape [2], different for every step and replica.
    """
    outer = getattr(_active, "seed", None)
    _active.seed = seed
    try:
        yield
    finally:
        _active.seed = outer


class Dropout(keras.layers.Layer):
    """Zeroes a share `rate` of its inputs in training, scaling up the rest.

    Outside `seeded`, as under `model.fit`, Keras' own random state decides.
    """

    def __init__(self, rate: float | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x: Any, training: bool = False) -> Any:
        """Returns `x`, in training with some of it dropped."""
        if not training or not self.rate:
            return x
        seed = getattr(_active, "seed", None)
        if seed is not None:
            seed = _TensorSeed(seed, site=zlib.crc32(self.path.encode()) >> 1)
        return keras.random.dropout(x, self.rate, seed=seed)


class _TensorSeed(keras.random.SeedGenerator):
    """A seed that is a tensor, where Keras' own keeps a variable."""

    def __init__(self, seed: Any, site: int) -> None:
        # Not calling the parent's, which would make that variable.
        self._mixed = keras.ops.bitwise_xor(seed, [0, site])

    def next(self, ordered: bool = True) -> Any:
        """Returns the seed as what `keras.random` takes, uint32 [2]."""
        return keras.ops.cast(self._mixed, "uint32")
