import functools
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.config import ACTIVATIONS
from official_bert.modeling import layers
from official_bert.modeling.gradients import gelu
from official_bert.modeling.layers import Dropout, LayerNorm, StepContext
from official_bert.training.step import random_bits

ONES = np.ones((4, 1000), "float32")


def xla(function):
    return tf.function(function, autograph=False, jit_compile=True)


def gelu_and_gradient(gelu, x, upstream, compile_function):
    """Runs gelu as the activation of a dense layer with an identity kernel."""
    layer = layers.Dense(1, activation=gelu, kernel_initializer="ones")
    training = StepContext(lambda *_: None, compile_function)

    @tf.function
    def run(x, upstream):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=training)
        return y, tape.gradient(y, x, output_gradients=upstream)

    return [t[:, 0] for t in run(x[:, None], upstream[:, None])]


def tanh_gelu(x):
    """Returns the gelu of the 2018 release and its derivative."""
    scale = np.sqrt(2 / np.pi)
    t = np.tanh(scale * (x + 0.044715 * x**3))
    slope = scale * (1 + 3 * 0.044715 * x**2)
    return 0.5 * x * (1 + t), 0.5 * (1 + t + x * (1 - t**2) * slope)


def exact_gelu(x):
    """Returns the gelu of Hugging Face's models and its derivative."""
    normal = np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x])
    return x * normal, normal + x * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


@pytest.mark.parametrize("compile_function", [None, lambda f: f, xla])
@pytest.mark.parametrize(
    ("gelu", "formula", "tolerance"),
    # XLA's erf is off by up to 1.2e-7, which -30 multiplies.
    [(gelu, tanh_gelu, 2e-6), (keras.activations.gelu, exact_gelu, 4e-6)],
)
def test_gelu_and_its_gradient_equal_the_formula(
    gelu, formula, tolerance, compile_function
):
    random = np.random.default_rng(0)
    x = np.concatenate([random.normal(size=5000) * 2, [0.0, -30.0, 30.0]])
    upstream = random.normal(size=x.shape)
    y, gradient = gelu_and_gradient(
        gelu,
        *(tf.constant(a, tf.float32) for a in (x, upstream)),
        compile_function,
    )
    value, derivative = formula(x)
    np.testing.assert_allclose(y, value, rtol=0, atol=tolerance)
    exact = upstream * derivative
    np.testing.assert_allclose(gradient, exact, rtol=0, atol=2e-5)


@pytest.mark.parametrize("name", ["gelu", "gelu_erf"])
def test_training_compiles_every_gelu(name):
    names = []

    def compile_function(function):
        names.append(function.__name__)
        return function

    layer = layers.Dense(1, activation=layers.get_activation(name))
    layer(ONES, training=StepContext(lambda *_: None, compile_function))
    assert len(names) == 2


@pytest.mark.parametrize(
    # XLA's erf is off by up to 1.2e-7.
    ("gelu", "tolerance"),
    [(gelu, 0.0), (keras.activations.gelu, 1.2e-7)],
)
def test_gelu_of_large_float16_is_finite_and_has_a_gradient(gelu, tolerance):
    keras.config.set_dtype_policy("float16")
    try:
        # Their squares overflow float16.
        x = tf.constant([-1000.0, 1000.0], tf.float16)
        compiled, gradient = gelu_and_gradient(gelu, x, tf.ones_like(x), xla)
    finally:
        keras.config.set_dtype_policy("float32")
    assert gradient.dtype == tf.float16
    np.testing.assert_allclose(gradient, [0.0, 1.0], rtol=0, atol=tolerance)
    error = 1000.0 * tolerance
    for found in (gelu(x), compiled):
        np.testing.assert_allclose(found, [0.0, 1000.0], rtol=0, atol=error)


def test_every_activation_of_the_config_exists():
    for name in ACTIVATIONS:
        layers.get_activation(name.upper())
    assert layers.get_activation(None) is None
    with pytest.raises(ValueError, match="swish"):
        layers.get_activation("swish")


def exact_layer_norm():
    return keras.layers.LayerNormalization(epsilon=1e-12, dtype="float64")


def test_layer_norm_computes_float16_in_float32():
    # Their squares overflow float16.
    x = tf.constant([[1000.0, 3000.0, 5000.0]], tf.float16)
    np.testing.assert_allclose(LayerNorm()(x), [[-1.2247, 0, 1.2247]], 1e-3)


def test_layer_norm_has_an_epsilon_of_1e_12():
    # A larger one would matter beside so small a variance.
    x = np.random.default_rng(0).normal(size=(3, 16)) * 1e-5
    found, exact = LayerNorm()(x.astype("float32")), exact_layer_norm()(x)
    np.testing.assert_allclose(found, exact, rtol=1e-4)


def dropped(layer, seed):
    bits = functools.partial(random_bits, tf.constant(seed))
    return layer(ONES, training=StepContext(bits)).numpy()


def test_dropout_zeroes_its_rate_and_scales_the_rest():
    y = dropped(Dropout(0.25, name="a"), [1, 2])
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    # Five standard errors of a share of 4000.
    assert abs((y == 0).mean() - 0.25) < 0.035


def test_dropout_masks_are_a_function_of_seed_and_layer():
    masks = [
        dropped(Dropout(0.5, name=name), seed)
        for name in ("a", "b")
        for seed in ([1, 2], [1, 3], [2, 2])
    ]
    again = dropped(Dropout(0.5, name="a"), [1, 2])
    np.testing.assert_array_equal(masks[0], again)
    for i, one in enumerate(masks):
        for other in masks[:i]:
            # Independent masks of 4000 agree in half, give or take 5 sigma.
            assert abs((one == other).mean() - 0.5) < 0.04


def test_dropout_without_a_context_uses_the_random_state_of_keras():
    layer = Dropout(0.5)
    first, second = (layer(ONES, training=True) for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(layer(ONES), ONES)
    assert layer.variables == []


def test_initialization_is_skipped_only_in_the_context():
    def kernel():
        layer = layers.dense(recorded.SMALL_CONFIG, 4)
        layer.build((1, 8))
        return layer.kernel.numpy()

    with layers.default_policy("bfloat16"), layers.to_be_loaded():
        assert not kernel().any()
        assert kernel().dtype == np.float32
    assert kernel().all()
