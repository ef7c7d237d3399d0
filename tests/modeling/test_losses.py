"""Cross-entropy, against its formula in float64, for few classes and many."""

import math

import numpy as np
import pytest
import tensorflow as tf

from official_bert.modeling.losses import cross_entropy

MANY = 5000


def exact(logits, labels):
    """Returns losses, and their gradients for an upstream gradient of 1."""
    logits = np.asarray(logits, np.float64)
    largest = logits.max(-1, keepdims=True)
    exponentials = np.exp(logits - largest)
    sums = exponentials.sum(-1, keepdims=True)
    of_labels = np.take_along_axis(logits, labels[..., None], -1)
    one_hot = np.arange(logits.shape[-1]) == labels[..., None]
    losses = np.log(sums) + largest - of_labels
    return losses[..., 0], exponentials / sums - one_hot


def ours(logits, labels, upstream=1.0):
    logits = tf.constant(logits)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = cross_entropy(logits, labels)
        total = tf.reduce_sum(losses * upstream)
    return losses.numpy(), tape.gradient(total, logits).numpy()


@pytest.mark.parametrize("classes", [2, 384, MANY])
@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_cross_entropy_equals_the_formula(classes, scale):
    random = np.random.default_rng(classes)
    logits = random.normal(size=(3, 4, classes)) * scale
    labels = random.integers(0, classes, (3, 4))
    upstream = random.normal(size=(3, 4)).astype(np.float32)
    losses, gradients = exact(logits.astype(np.float32), labels)
    found, found_gradients = ours(
        logits.astype(np.float32), labels.astype(np.int32), upstream
    )
    np.testing.assert_allclose(found, losses, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        found_gradients, gradients * upstream[..., None], atol=1e-6
    )


@pytest.mark.parametrize("classes", [2, MANY])
def test_cross_entropy_of_an_impossible_label_is_finite(classes):
    logits = np.zeros((2, classes), np.float32)
    logits[:, 1] = [1e4, -1e4]
    losses, gradients = ours(logits, np.array([0, 1], np.int32))
    np.testing.assert_allclose(losses, [1e4, 1e4 + math.log(classes - 1)])
    assert np.isfinite(gradients).all()


@pytest.mark.parametrize("classes", [2, MANY])
def test_labels_outside_the_classes_have_a_loss_of_zero(classes):
    logits = np.random.default_rng(0).normal(size=(3, classes))
    labels = np.array([0, classes, -1], np.int32)
    losses, gradients = ours(logits.astype(np.float32), labels)
    expected, _ = exact(logits, np.array([0, 0, 0]))
    np.testing.assert_allclose(losses, [expected[0], 0, 0], rtol=1e-6)
    assert gradients[0].any()
    assert not gradients[1:].any()


def test_cross_entropy_can_be_traced_with_unknown_batch_and_length():
    traced = tf.function(
        cross_entropy,
        input_signature=[
            tf.TensorSpec([None, None, MANY]),
            tf.TensorSpec([None, None], tf.int32),
        ],
    )
    logits = np.random.default_rng(0).normal(size=(2, 3, MANY))
    labels = np.array([[0, 1, 2], [3, 4, 5]])
    found = traced(logits.astype(np.float32), labels.astype(np.int32))
    np.testing.assert_allclose(found, exact(logits, labels)[0], rtol=1e-6)
