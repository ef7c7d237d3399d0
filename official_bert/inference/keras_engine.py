"""Runs models with TensorFlow."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.tasks.engines import Engine


def make(function: Callable[[dict[str, Any]], list[Any]]) -> Engine:
    """Returns an engine that compiles a function once, for all shapes.

    `function` returns Tensors for a dict of Tensors.
    """
    compiled = tf.function(function, autograph=False)

    def compute(batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        tensors = {name: tf.constant(values) for name, values in batch.items()}
        specs = {
            name: tf.TensorSpec([None] * values.ndim, values.dtype)
            for name, values in batch.items()
        }
        outputs = compiled.get_concrete_function(specs)(tensors)
        return [values.numpy() for values in outputs]

    return compute


def make_gradients(model: Any) -> Engine:
    """Returns an engine that multiplies gradients by changes of embeddings.

    For each row of a batch, the output is the sum of the logits of a fine-tuned
    model times `logit_weights`. The embeddings, after layer normalization, are
    the point `fractions` [B] on the straight line from the embeddings of
    `baseline_ids`, at 0, to the embeddings of `input_ids`, at 1. The engine
    returns float [B, S]: the gradient with respect to the embedding of each
    token, times the difference of the embeddings at the ends of the line.
    """

    def compute(batch: dict[str, Any]) -> list[Any]:
        length = tf.shape(batch["input_ids"])[-1]

        def embed(name: str) -> Any:  # Multiple choice has ids [B, 1, S].
            inputs = (batch[name], batch["segment_ids"])
            return model.bert.embeddings(
                *(tf.reshape(ids, (-1, length)) for ids in inputs)
            )

        baseline = embed("baseline_ids")
        change = embed("input_ids") - baseline
        fractions = tf.reshape(batch["fractions"], (-1, 1, 1))
        point = baseline + fractions * change
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(point)
            logits = model({**batch, "embedding_output": point})
            output = tf.reduce_sum(logits * batch["logit_weights"])
        return [tf.reduce_sum(tape.gradient(output, point) * change, -1)]

    return make(compute)
