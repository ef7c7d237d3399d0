import math

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from official_bert.modeling import losses

MANY = 5000


def draw(classes, scale=1.0):
    random = np.random.default_rng(classes)
    logits = random.normal(size=(3, 4, classes)) * scale
    labels = random.integers(0, classes, (3, 4)).astype(np.int32)
    return logits.astype(np.float32), labels


def exact(logits, labels):
    """Returns losses, and their gradients for an upstream gradient of 1."""
    logs = special.log_softmax(np.asarray(logits, np.float64), axis=-1)
    one_hot = np.arange(logits.shape[-1]) == labels[..., None]
    of_labels = np.take_along_axis(logs, labels[..., None], -1)
    return -of_labels[..., 0], np.exp(logs) - one_hot


def ours(logits, labels, upstream=1.0):
    logits = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        found = losses.cross_entropy(logits, labels)
        total = tf.reduce_sum(found * upstream)
    return found.numpy(), tape.gradient(total, logits).numpy()


@pytest.mark.parametrize("classes", [2, MANY])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_cross_entropy_equals_the_formula(classes, scale):
    logits, labels = draw(classes, scale)
    upstream = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    expected, gradients = exact(logits, labels)
    found, found_gradients = ours(logits, labels, upstream)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        found_gradients, gradients * upstream[..., None], atol=1e-6
    )


@pytest.mark.parametrize("classes", [2, MANY])
def test_cross_entropy_of_an_impossible_label_is_finite(classes):
    logits = np.zeros((2, classes), np.float32)
    logits[:, 1] = [1e4, -1e4]
    found, gradients = ours(logits, np.array([0, 1], np.int32))
    np.testing.assert_allclose(found, [1e4, 1e4 + math.log(classes - 1)])
    assert np.isfinite(gradients).all()


@pytest.mark.parametrize("classes", [2, MANY])
def test_labels_outside_the_classes_have_a_loss_of_zero(classes):
    logits = draw(classes)[0][0, :3]
    found, gradients = ours(logits, np.array([0, classes, -1], np.int32))
    expected, _ = exact(logits, np.array([0, 0, 0]))
    np.testing.assert_allclose(found, [expected[0], 0, 0], rtol=1e-6)
    assert gradients[0].any()
    assert not gradients[1:].any()


def test_cross_entropy_can_be_traced_with_unknown_batch_and_length():
    logits, labels = draw(MANY)
    shapes = (
        tf.TensorSpec([None, None, MANY]),
        tf.TensorSpec([None] * 2, "int32"),
    )
    traced = tf.function(losses.cross_entropy, input_signature=shapes)
    expected, _ = exact(logits, labels)
    np.testing.assert_allclose(traced(logits, labels), expected, rtol=1e-6)
