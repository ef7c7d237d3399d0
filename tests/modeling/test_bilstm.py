"""The BiLSTM equals its formula, Keras' own, and does not see padding."""

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.pooling_head import BiLstm

SIZE, WIDTH = 3, 5
LENGTHS = np.array([7, 4, 1, 0])
MASK = (np.arange(7) < LENGTHS[:, np.newaxis]).astype(np.int32)


@pytest.fixture(scope="module")
def bilstm():
    layer = BiLstm(SIZE)
    layer.build((None, None, WIDTH))
    recorded.set_weights(layer.trainable_variables, 3)
    return layer


def vectors(length=7, seed=0):
    shape = (len(LENGTHS), length, WIDTH)
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, kernel, recurrent_kernel, bias):
    """Hochreiter and Schmidhuber's, with the forget gate, for one sequence."""
    h = c = np.zeros(SIZE)
    found = []
    for x in xs:
        gates = x @ kernel + h @ recurrent_kernel + bias
        i, f, g, o = gates.reshape(4, SIZE)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return np.array(found).reshape(-1, SIZE)


def formula(xs, weights):
    """Both layers and directions, in float64; returns outputs and last."""
    for layer in ("layer_0", "layer_1"):
        of = [
            [
                weights[f"bilstm/{layer}/{way}/{name}"]
                for name in ("kernel", "recurrent_kernel", "bias")
            ]
            for way in ("forward", "backward")
        ]
        forward, backward = lstm(xs, *of[0]), lstm(xs[::-1], *of[1])
        last = np.concatenate([forward[-1:].sum(0), backward[-1:].sum(0)])
        xs = np.concatenate([forward, backward[::-1]], axis=1)
    return xs, last


def test_weights_are_named_by_layer_and_direction(bilstm):
    shapes = {w.path: tuple(w.shape) for w in bilstm.trainable_variables}
    expected = {}
    for layer, width in (("layer_0", WIDTH), ("layer_1", 2 * SIZE)):
        for way in ("forward", "backward"):
            prefix = f"bilstm/{layer}/{way}"
            expected[f"{prefix}/kernel"] = (width, 4 * SIZE)
            expected[f"{prefix}/recurrent_kernel"] = (SIZE, 4 * SIZE)
            expected[f"{prefix}/bias"] = (4 * SIZE,)
    assert shapes == expected


def test_equals_the_formula(bilstm):
    weights = {
        w.path: np.asarray(w.numpy(), np.float64)
        for w in bilstm.trainable_variables
    }
    x = vectors()
    outputs, last = bilstm(x, MASK)
    for row, length in enumerate(LENGTHS):
        expected, state = formula(x[row, :length].astype(np.float64), weights)
        np.testing.assert_allclose(
            outputs[row, :length], expected, atol=1e-6, err_msg=str(length)
        )
        np.testing.assert_allclose(last[row], state, atol=1e-6)
        assert not np.any(outputs[row, length:])


def test_padding_changes_nothing(bilstm):
    short = vectors()
    long = np.concatenate([short, vectors(5, seed=1)], axis=1)
    garbage = np.where(MASK[..., np.newaxis], short, 1e3).astype(np.float32)
    long_mask = np.pad(MASK, ((0, 0), (0, 5)))
    outputs, last = bilstm(short, MASK)
    for x, mask in ((long, long_mask), (garbage, MASK)):
        again, last_again = bilstm(x, mask)
        np.testing.assert_allclose(again[:, :7], outputs, atol=1e-6)
        np.testing.assert_allclose(last_again, last, atol=1e-6)
        assert not np.any(again[:, 7:])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradients_are_the_same_compiled(bilstm, jit_compile):
    """And for lengths that are known only when it runs."""

    def gradients(x, mask):
        with tf.GradientTape() as tape:
            outputs, last = bilstm(x, mask)
            loss = tf.reduce_sum(outputs**2) + tf.reduce_sum(last)
        return tape.gradient(loss, bilstm.trainable_variables)

    length = 7 if jit_compile else None  # XLA knows all lengths.
    signature = [
        tf.TensorSpec([None, length, WIDTH]),
        tf.TensorSpec([None, length], tf.int32),
    ]
    compiled = tf.function(
        gradients, input_signature=signature, jit_compile=jit_compile
    )
    x, mask = tf.constant(vectors()), tf.constant(MASK)
    for ours, expected in zip(
        compiled(x, mask), gradients(x, mask), strict=True
    ):
        assert np.any(expected)
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)


def test_at_first_nothing_is_forgotten():
    layer = BiLstm(SIZE)
    layer.build((None, None, WIDTH))
    bias = layer.backward_1.cell.bias.numpy().reshape(4, SIZE)
    np.testing.assert_array_equal(bias, [[0] * 3, [1] * 3, [0] * 3, [0] * 3])
