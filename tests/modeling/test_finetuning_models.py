"""Fine-tuning models: recorded outputs, and the inputs of the output layer."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import (
    SequenceClassifier,
    SpanModel,
    TokenClassifier,
)

CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


@pytest.mark.parametrize("num_labels", [2, 3])
def test_classifier_equals_the_original(num_labels, golden):
    arrays = np.load(
        golden / "classifier" / "model" / f"labels{num_labels}.npz"
    )
    config = recorded.read_config(golden / "model" / "base")
    model = recorded.assign(SequenceClassifier(config, num_labels), 101)
    inputs = recorded.part(arrays, "in/")
    batch = {name: tf.constant(value) for name, value in inputs.items()}
    with tf.GradientTape() as tape:
        logits = model(batch)
        example_losses = losses.cross_entropy(logits, batch["label_ids"])
        loss = tf.reduce_mean(example_losses)
    outputs = {
        "logits": logits,
        "probabilities": tf.nn.softmax(logits),
        "per_example_loss": example_losses,
        "loss": loss,
    }
    expected = {name: arrays[f"out/{name}"] for name in outputs}
    recorded.assert_all_close(outputs, expected, atol=2e-5)
    weights = {w.path: w.value for w in model.trainable_variables}
    gradients = tape.gradient(loss, weights)
    stored = recorded.part(arrays, "grad/")
    assert num_labels == 3 or set(stored) == set(gradients)
    found = {n: tf.convert_to_tensor(g) for n, g in gradients.items()}
    recorded.assert_all_close(found, stored, atol=1e-5)


def test_initial_output_weights_do_not_depend_on_the_config():
    """The original implementation has a fixed standard deviation of 0.02."""
    config = dataclasses.replace(CONFIG, initializer_range=1.0)
    weights = SequenceClassifier(config, 500).output_weights.numpy()
    assert 0.016 < weights.std() < 0.019
    assert abs(weights).max() <= 0.0401


@pytest.fixture
def batch():
    random = np.random.RandomState(0)
    limits = {"input_ids": 30, "input_mask": 2, "segment_ids": 2}
    return {
        name: tf.constant(random.randint(0, limit, (4, 10)), tf.int32)
        for name, limit in limits.items()
    }


@pytest.mark.parametrize("kind", [TokenClassifier, SpanModel])
def test_token_models_read_the_vector_of_each_token(batch, kind):
    model = kind(CONFIG)
    vectors = np.array(model.encode(batch).sequence_output)
    expected = vectors @ model.output_weights.numpy().T
    np.testing.assert_allclose(model(batch), expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "has_dropout"),
    [(SequenceClassifier, True), (TokenClassifier, True), (SpanModel, False)],
)
def test_output_dropout_is_applied_except_in_span_models(
    batch, kind, has_dropout
):
    model = kind(CONFIG)
    same = np.allclose(model(batch), model(batch, training=True))
    assert same != has_dropout
