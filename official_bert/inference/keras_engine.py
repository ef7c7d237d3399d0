"""Runs models with TensorFlow, which is imported when an engine is made."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from official_bert.errors import InputError
from official_bert.inference.engines import Engine


def compile_function(
    function: Callable[[dict[str, Any]], Any],
    *,
    has_static_shapes: bool = False,
) -> Callable[[dict[str, np.ndarray]], Any]:
    """Compiles a function of {name: Tensor}; returns one of {name: array}.

    It is compiled once, for arrays of all sizes, or with `has_static_shapes`
    once for each size, as TPUs require. In a fork of this process, it raises
    `InputError`; so does this function with another backend of Keras.
    """
    import keras
    import tensorflow as tf

    if (backend := keras.backend.backend()) != "tensorflow":
        raise InputError(
            "Keras must use TensorFlow. Received: the backend "
            f"{backend}. Set KERAS_BACKEND=tensorflow before Keras is imported."
        )
    compiled = tf.function(function, autograph=False)
    process = os.getpid()

    def run(batch: dict[str, np.ndarray]) -> Any:
        if os.getpid() != process:
            raise InputError(
                "A model that runs with TensorFlow must be used in the process "
                "that loaded it: in a fork, TensorFlow hangs. Start processes "
                'with multiprocessing.get_context("spawn"), and load the model '
                "in each of them."
            )
        tensors = {name: tf.constant(values) for name, values in batch.items()}
        if has_static_shapes:
            return compiled(tensors)
        specs = {
            name: tf.TensorSpec([None] * values.ndim, values.dtype)
            for name, values in batch.items()
        }
        return compiled.get_concrete_function(specs)(tensors)

    return run


def make(function: Callable[[dict[str, Any]], list[Any]]) -> Engine:
    """Returns an engine that compiles a function of {name: Tensor} once."""
    run = compile_function(function)
    return lambda batch: [values.numpy() for values in run(batch)]


def make_gradients(model: Any) -> Engine:
    """Returns an engine that multiplies gradients by changes of embeddings.

    For each row of a batch, the output is the sum of the logits of a fine-tuned
    model times `logit_weights`. The embeddings, after layer normalization, are
    the point `fractions` [B] on the straight line from the embeddings of
    `baseline_ids`, at 0, to the embeddings of `input_ids`, at 1. The engine
    returns float [B, S]: the gradient with respect to the embedding of each
    token, times the difference of the embeddings at the ends of the line.
    """
    import tensorflow as tf

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
