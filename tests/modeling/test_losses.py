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


def unit_vectors(*shape):
    vectors = np.random.default_rng(2).normal(size=shape)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def embedding_loss(name, vectors, **batch):
    """Returns the losses and the gradient of their sum for the vectors."""
    vectors = tf.constant(vectors, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        found = losses.EMBEDDING_LOSSES[name](vectors, batch, 0.1)
        total = tf.reduce_sum(found)
    return found.numpy(), tape.gradient(total, vectors).numpy()


def test_ranking_loss_equals_the_softmax_over_the_negatives_of_the_batch():
    vectors = unit_vectors(4, 3, 6)
    # The matches of 0 and 2 are equal, the first texts of 1 and 3 too. The
    # negative of 0 is missing, and that of 2 is the match of 1: it is right for
    # the equal text of 3, too.
    ids = np.array([[1, 5, 0], [2, 6, 7], [3, 5, 6], [2, 8, 9]])
    queries, candidates = vectors[:, 0], vectors[:, 1:].transpose(1, 0, 2)
    candidates = candidates.reshape(8, 6)  # Matches 0 to 3, negatives 4 to 7.
    left_out = [[2, 4], [3, 4, 6], [0, 4], [1, 4, 6]]
    scores = queries @ candidates.T / 0.1
    for row, columns in zip(scores, left_out, strict=True):
        row[columns] = -np.inf
    logs = special.log_softmax(scores, axis=1)
    errors = (np.exp(logs) - np.eye(4, 8)) / 0.1
    gradients = (errors.T @ queries).reshape(2, 4, 6).transpose(1, 0, 2)
    gradients = np.concatenate([(errors @ candidates)[:, None], gradients], 1)
    found, found_gradients = embedding_loss("ranking", vectors, text_ids=ids)
    np.testing.assert_allclose(found, -np.diag(logs), rtol=1e-5)
    np.testing.assert_allclose(found_gradients, gradients, atol=1e-5)


def test_symmetric_loss_is_the_mean_of_both_directions():
    vectors = unit_vectors(4, 3, 6)
    # The first texts of 0 and 2 are equal, the matches of 1 and 3 too.
    ids = np.array([[1, 5, 0], [2, 6, 7], [1, 8, 5], [4, 6, 9]])
    queries, matches = vectors[:, 0], vectors[:, 1]
    scores = matches @ queries.T / 0.1
    for row, column in enumerate([2, 3, 0, 1]):
        scores[row, column] = -np.inf
    logs = special.log_softmax(scores, axis=1)
    errors = (np.exp(logs) - np.eye(4)) / 0.1
    gradients = np.zeros_like(vectors)
    gradients[:, 0], gradients[:, 1] = errors.T @ matches, errors @ queries
    forward, of_forward = embedding_loss("ranking", vectors, text_ids=ids)
    found, found_gradients = embedding_loss(
        "symmetric_ranking", vectors, text_ids=ids
    )
    expected = (forward - np.diag(logs)) / 2
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    expected = (of_forward + gradients) / 2
    np.testing.assert_allclose(found_gradients, expected, atol=1e-5)


def test_loss_of_vectors_falls_with_their_cosine_to_the_teacher():
    vectors = unit_vectors(5, 6)
    answers = np.roll(vectors, 1, axis=0)
    expected = 1 - (vectors * answers).sum(-1)
    batch = {"teacher_answers": answers.astype(np.float32)}
    found, gradients = embedding_loss("teacher", vectors, **batch)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(gradients, -answers, atol=1e-6)


def test_losses_of_scored_pairs_equal_their_formulas():
    vectors = unit_vectors(5, 2, 6)
    scores = np.array([0.2, 1.0, 0.2, 0.0, 0.5])
    labels = scores[:, None].astype(np.float32)
    cosines = (vectors[:, 0] * vectors[:, 1]).sum(-1)
    terms = {
        (i, j): np.exp((cosines[i] - cosines[j]) / 0.1)
        for i in range(5)
        for j in range(5)
        if scores[i] < scores[j]
    }
    total = 1 + sum(terms.values())
    slopes = np.zeros(5)
    for (i, j), term in terms.items():
        slopes[i] += term / total / 0.1
        slopes[j] -= term / total / 0.1
    expected = {
        # Each of the five pairs has the loss of the batch.
        "cosent": (np.full(5, np.log(total)), 5 * slopes),
        "cosine": ((cosines - scores) ** 2, 2 * (cosines - scores)),
    }
    for name, (values, slopes) in expected.items():
        found, gradients = embedding_loss(name, vectors, label_ids=labels)
        np.testing.assert_allclose(found, values, rtol=1e-5)
        of_vectors = slopes[:, None, None] * vectors[:, ::-1]
        np.testing.assert_allclose(gradients, of_vectors, atol=1e-5)
