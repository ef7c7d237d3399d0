"""Gelu and its gradient, against their formulas in float64."""

import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling import activations


def xla(function):
    return tf.function(function, autograph=False, jit_compile=True)


def with_gradient(x, upstream, compile_function):
    @tf.function
    def run(x, upstream):
        with (
            activations.compiling(compile_function),
            tf.GradientTape() as tape,
        ):
            tape.watch(x)
            y = activations.gelu(x)
        return y, tape.gradient(y, x, output_gradients=upstream)

    return run(x, upstream)


@pytest.mark.parametrize("compile_function", [None, lambda f: f, xla])
def test_gelu_is_the_formula(compile_function):
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=5000) * 2, [0.0, -30.0, 30.0]])
    upstream = random.normal(size=x.shape)
    scale = np.sqrt(2 / np.pi)
    t = np.tanh(scale * (x + 0.044715 * x**3))
    slope = scale * (1 + 3 * 0.044715 * x**2)
    y, gradient = with_gradient(
        *(tf.constant(a, tf.float32) for a in (x, upstream)), compile_function
    )
    np.testing.assert_allclose(y, 0.5 * x * (1 + t), rtol=0, atol=2e-6)
    exact = upstream * 0.5 * (1 + t + x * (1 - t**2) * slope)
    np.testing.assert_allclose(gradient, exact, rtol=0, atol=2e-5)


def test_large_numbers_of_sixteen_bits_have_a_gradient():
    # Their squares would overflow float16.
    x = tf.constant([-1000.0, 1000.0], tf.float16)
    _, gradient = with_gradient(x, tf.ones_like(x), xla)
    assert gradient.dtype == tf.float16
    np.testing.assert_allclose(gradient, [0.0, 1.0])


def test_nothing_is_compiled_outside():
    seen = []

    def compile_function(function):
        seen.append(function)
        return function

    with activations.compiling(compile_function):
        activations.gelu(tf.zeros([2]))
    assert len(seen) == 2
    activations.gelu(tf.zeros([2]))
    assert len(seen) == 2
