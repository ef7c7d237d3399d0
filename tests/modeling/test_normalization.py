"""Layer normalization, against its formula in float64 and Keras' gradients."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling.normalization import LayerNorm


@pytest.mark.parametrize("shape", [(4, 3), (2, 5, 64)])
def test_output_and_gradients_are_those_of_the_formula(shape):
    random = np.random.default_rng(0)
    x, upstream = random.normal(size=(2, *shape)) * 3
    gamma, beta = random.normal(size=(2, shape[-1]))
    ours = LayerNorm()
    ours.build(shape)
    keras_own = keras.layers.LayerNormalization(epsilon=1e-12, dtype="float64")
    keras_own.build(shape)
    found = []
    for layer in (ours, keras_own):
        layer.gamma.assign(gamma)
        layer.beta.assign(beta)
        inputs = tf.constant(x, layer.variable_dtype)
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = layer(inputs)
            loss = tf.reduce_sum(y * tf.cast(upstream, y.dtype))
        weights = [inputs, layer.gamma.value, layer.beta.value]
        found.append([y, *tape.gradient(loss, weights)])
    for mine, exact in zip(*found, strict=True):
        np.testing.assert_allclose(mine, exact, rtol=1e-5, atol=1e-5)
    centered = x - x.mean(-1, keepdims=True)
    n = centered / np.sqrt((centered**2).mean(-1, keepdims=True))
    np.testing.assert_allclose(found[0][0], n * gamma + beta, atol=1e-5)


def test_sixteen_bits_are_normalized_in_thirty_two():
    # Their squares would overflow float16.
    x = tf.constant([[1000.0, 3000.0, 5000.0]], tf.float16)
    layer = LayerNorm()
    layer.build((1, 3))
    y = layer(x)
    np.testing.assert_allclose(y, [[-1.2247, 0, 1.2247]], atol=1e-3)


def test_epsilon_is_that_of_2018():
    """1e-12: also beside so small a variance it changes nothing to speak of."""
    x = np.random.default_rng(0).normal(size=(3, 16)) * 1e-5
    layer = LayerNorm()
    layer.build(x.shape)
    centered = x - x.mean(-1, keepdims=True)
    exact = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(layer(x.astype("float32")), exact, rtol=1e-4)
