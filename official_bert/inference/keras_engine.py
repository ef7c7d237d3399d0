"""Runs models with TensorFlow."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.tasks.engines import Engine


def make(
    function: Callable[[dict[str, Any]], list[Any]], names: Iterable[str]
) -> Engine:
    """Returns an engine that compiles a function for all shapes [B, S].

    `function` returns Tensors for a dict of int32 Tensors with these names.
    """
    shape = tf.TensorSpec([None, None], tf.int32)
    compiled = tf.function(
        function, input_signature=[dict.fromkeys(names, shape)], autograph=False
    )

    def compute(batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        tensors = {name: tf.constant(values) for name, values in batch.items()}
        return [values.numpy() for values in compiled(tensors)]

    return compute
