"""What a frozen BERT gives to the model above it, and what stays frozen."""

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.config import BertConfig
from official_bert.modeling.finetuning_models import (
    ChoiceClassifier,
    SequenceClassifier,
    SpanModel,
    TokenClassifier,
)
from official_bert.modeling.pooling_head import NO_POOLING_HEAD, PoolingHead
from official_bert.options.finetuning import FEATURE_LAYERS

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=5,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    type_vocab_size=2,
)
LENGTHS = np.array([9, 6, 1])
MASK = (np.arange(9) < LENGTHS[:, np.newaxis]).astype(np.int32)


def batch():
    random = np.random.RandomState(0)
    return {
        "input_ids": tf.constant(random.randint(0, 30, MASK.shape), tf.int32),
        "input_mask": tf.constant(MASK),
        "segment_ids": tf.constant(random.randint(0, 2, MASK.shape), tf.int32),
    }


def made(kind, num_outputs, head):
    model = kind(CONFIG, num_outputs, pooling_head=head)
    recorded.set_weights(model.trainable_variables, 5)
    return model


def outputs(model):
    """Returns the embeddings and all layers' outputs, in float64."""
    output = model.encode(batch(), training=False)
    layers = [output.embedding_output, *output.encoder_outputs]
    return [np.asarray(layer, np.float64) for layer in layers]


def weighted(model, layers):
    weights = np.asarray(model.features.layer_weights.numpy(), np.float64)
    shares = np.exp(weights) / np.exp(weights).sum()
    assert len(shares) == len(layers)
    scale = float(model.features.scale.numpy()[0])
    return scale * np.tensordot(shares, np.array(layers), 1)


EXPECTED = {
    "embeddings": lambda model, layers: layers[0],
    "second_to_last": lambda model, layers: layers[4],
    "last": lambda model, layers: layers[5],
    "weighted_sum_last_4": lambda model, layers: weighted(model, layers[2:]),
    "concat_last_4": lambda model, layers: np.concatenate(layers[2:], -1),
    "weighted_sum_all": lambda model, layers: weighted(model, layers[1:]),
}


def test_every_choice_has_a_formula():
    assert {"none", *EXPECTED} == set(FEATURE_LAYERS)


@pytest.mark.parametrize("feature_layers", EXPECTED)
def test_the_vectors_are_those_of_the_formula(feature_layers):
    model = made(TokenClassifier, 3, PoolingHead(feature_layers))
    expected = EXPECTED[feature_layers](model, outputs(model))
    found = model.token_vectors(batch())
    np.testing.assert_allclose(found, expected, atol=2e-5)
    logits = expected @ model.output_weights.numpy().T + model.output_bias
    np.testing.assert_allclose(model(batch()), logits, atol=2e-5)


@pytest.mark.parametrize("bilstm_size", [0, 4])
@pytest.mark.parametrize("feature_layers", EXPECTED)
def test_bert_gets_no_gradient(feature_layers, bilstm_size):
    model = made(TokenClassifier, 3, PoolingHead(feature_layers, bilstm_size))
    learning = {w.path for w in model.learning_variables}
    weights = {w.path: w.value for w in model.trainable_variables}
    assert learning == {n for n in weights if not n.startswith("bert/")}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch(), training=True) ** 2)
    gradients = tape.gradient(loss, weights)
    assert {n for n, g in gradients.items() if g is not None} == learning
    assert all(np.any(gradients[name]) for name in learning)


def test_at_first_all_layers_count_the_same():
    model = TokenClassifier(CONFIG, 3, PoolingHead("weighted_sum_all"))
    layers = outputs(model)[1:]
    found = model.token_vectors(batch())
    np.testing.assert_allclose(found, np.mean(layers, axis=0), atol=1e-5)


def test_few_layers_are_all_there_are():
    config = BertConfig(**vars(CONFIG) | {"num_hidden_layers": 1})
    for feature_layers, size in (
        ("concat_last_4", 8),
        ("weighted_sum_last_4", 8),
        ("second_to_last", 8),
    ):
        model = TokenClassifier(config, 3, PoolingHead(feature_layers))
        assert model.token_vectors(batch()).shape == (3, 9, size)
    embeddings = model.encode(batch(), training=False).embedding_output
    np.testing.assert_array_equal(model.token_vectors(batch()), embeddings)


def test_a_bilstm_above_a_trained_bert():
    """It takes BERT's last vectors, and the pooler is of no use."""
    for kind, num_outputs in ((TokenClassifier, 3), (SpanModel, 2)):
        model = made(kind, num_outputs, PoolingHead(bilstm_size=4))
        assert "bert/pooler/dense/kernel" not in {
            w.path for w in model.learning_variables
        }
        assert len(model.learning_variables) == (
            len(model.trainable_variables) - 2
        )
        last = model.encode(batch(), training=False).sequence_output
        found, _ = model.bilstm(last, MASK)
        expected = np.array(found) @ model.output_weights.numpy().T
        expected += model.output_bias.numpy()
        np.testing.assert_allclose(model(batch()), expected, atol=1e-5)


def test_one_vector_for_a_text():
    """Of a BiLSTM both last states, of features their mean."""
    model = made(SequenceClassifier, 2, PoolingHead("last"))
    last = outputs(model)[-1]
    mean = [last[i, :n].mean(0) for i, n in enumerate(LENGTHS)]
    found = model.text_vector(batch())
    np.testing.assert_allclose(found, mean, atol=1e-5)

    model = made(SequenceClassifier, 2, PoolingHead(bilstm_size=4))
    vectors = np.array(model.token_vectors(batch()))
    found = model.text_vector(batch())
    ends = vectors[np.arange(3), LENGTHS - 1, :4]
    np.testing.assert_allclose(found[:, :4], ends, atol=1e-6)
    np.testing.assert_allclose(found[:, 4:], vectors[:, 0, 4:], atol=1e-6)


def test_choices_have_it_as_well():
    model = made(ChoiceClassifier, 1, PoolingHead("last", 4))
    both = {name: tf.stack([v, v[::-1]], 1) for name, v in batch().items()}
    logits = model(both)
    alone = [
        model.project(model.text_vector({n: v[:, i] for n, v in both.items()}))[
            :, 0
        ]
        for i in range(2)
    ]
    np.testing.assert_allclose(logits, np.stack(alone, 1), atol=1e-5)


def test_a_top_survives_json_and_none_leaves_no_trace():
    for top in (
        NO_POOLING_HEAD,
        PoolingHead("last", 5),
        PoolingHead(bilstm_size=2),
    ):
        assert PoolingHead.from_json({"kind": "text", **top.to_json()}) == top
    assert NO_POOLING_HEAD.to_json() == {}
