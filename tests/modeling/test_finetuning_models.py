"""Fine-tuning models: recorded outputs, weight names, inputs of the heads."""

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.config import BertConfig
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import (
    ChoiceClassifier,
    SequenceClassifier,
    SpanModel,
    TokenClassifier,
)

CONFIG = recorded.SMALL_CONFIG


@pytest.mark.parametrize("num_labels", [2, 3])
def test_classifier_equals_the_original(num_labels, golden):
    arrays = np.load(
        golden / "classifier" / "model" / f"labels{num_labels}.npz"
    )
    config = BertConfig.from_json_file(
        str(golden / "model" / "base" / "bert_config.json")
    )
    model = SequenceClassifier(config, num_labels)
    recorded.set_weights(model.trainable_variables, 101)
    batch = {
        name: tf.constant(value)
        for name, value in recorded.part(arrays, "in/").items()
    }
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
    config = BertConfig(**vars(CONFIG) | {"initializer_range": 1.0})
    weights = SequenceClassifier(config, 500).output_weights.numpy()
    assert 0.016 < weights.std() < 0.019
    assert abs(weights).max() <= 0.0401


def batch(shape, seed=0):
    random = np.random.RandomState(seed)
    return {
        "input_ids": tf.constant(random.randint(0, 30, shape), tf.int32),
        "input_mask": tf.constant(random.randint(0, 2, shape), tf.int32),
        "segment_ids": tf.constant(random.randint(0, 2, shape), tf.int32),
    }


def test_choices_are_scored_independently():
    model = ChoiceClassifier(CONFIG)
    together = batch((4, 3, 10))
    logits = model(together)
    assert logits.shape == (4, 3)
    for choice in range(3):
        alone = {name: v[:, choice] for name, v in together.items()}
        pooled = model.encode(alone).pooled_output
        scores = np.array(pooled) @ model.output_weights.numpy().T
        np.testing.assert_allclose(
            logits[:, choice], scores[:, 0], atol=1e-6, rtol=1e-5
        )


@pytest.mark.parametrize(
    ("model", "outputs"), [(TokenClassifier, 5), (SpanModel, 2)]
)
def test_token_models_read_the_vector_of_each_token(model, outputs):
    made = model(CONFIG, 5) if outputs == 5 else model(CONFIG)
    given = batch((4, 10))
    vectors = made.encode(given).sequence_output
    expected = np.array(vectors) @ made.output_weights.numpy().T
    logits = made(given)
    assert logits.shape == (4, 10, outputs)
    np.testing.assert_allclose(logits, expected, atol=1e-6, rtol=1e-5)
    assert len(made.learning_variables) == len(made.trainable_variables) - 2


def test_output_dropout_is_applied_in_training_except_in_span_models():
    config = BertConfig(
        **vars(CONFIG)
        | {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    )
    given = batch((4, 10))
    for model, differs in (
        (SequenceClassifier(config, 3), True),
        (TokenClassifier(config, 3), True),
        (SpanModel(config), False),
    ):
        same = np.allclose(model(given), model(given, training=True))
        assert same != differs


def test_losses_equal_the_formulas():
    random = np.random.RandomState(0)
    logits = random.normal(size=(6, 4)).astype(np.float32)
    labels = random.randint(0, 2, (6, 4))
    p = 1 / (1 + np.exp(-logits.astype(np.float64)))
    expected = -(labels * np.log(p) + (1 - labels) * np.log(1 - p)).mean(1)
    np.testing.assert_allclose(
        losses.binary_cross_entropy(logits, labels), expected, rtol=1e-5
    )
    numbers = random.normal(size=6).astype(np.float32)
    np.testing.assert_allclose(
        losses.squared_error(logits[:, 0], numbers),
        (logits[:, 0].astype(np.float64) - numbers) ** 2,
        rtol=1e-5,
    )
