"""Pooling heads: features of a frozen BERT, BiLSTM, one vector per text."""

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
from official_bert.modeling.pooling_head import (
    NO_POOLING_HEAD,
    BiLstm,
    PoolingHead,
)
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


def make(kind, num_outputs, *head):
    model = kind(CONFIG, num_outputs, pooling_head=PoolingHead(*head))
    recorded.set_weights(model.trainable_variables, 5)
    return model


def outputs(model):
    """Returns the embeddings and the outputs of all layers, in float64."""
    output = model.encode(batch())
    layers = [output.embedding_output, *output.encoder_outputs]
    return [np.asarray(layer, np.float64) for layer in layers]


def weighted(model, layers):
    weights = np.asarray(model.features.layer_weights.numpy(), np.float64)
    shares = np.exp(weights) / np.exp(weights).sum()
    assert len(shares) == len(layers)
    scale = float(model.features.scale.numpy()[0])
    return scale * np.tensordot(shares, np.array(layers), 1)


FORMULAS = {
    "embeddings": lambda model, layers: layers[0],
    "second_to_last": lambda model, layers: layers[4],
    "last": lambda model, layers: layers[5],
    "weighted_sum_last_4": lambda model, layers: weighted(model, layers[2:]),
    "concat_last_4": lambda model, layers: np.concatenate(layers[2:], -1),
    "weighted_sum_all": lambda model, layers: weighted(model, layers[1:]),
}


def test_every_value_of_feature_layers_is_tested():
    assert {"none", *FORMULAS} == set(FEATURE_LAYERS)


@pytest.mark.parametrize("feature_layers", FORMULAS)
def test_features_equal_the_formula_and_bert_gets_no_gradient(feature_layers):
    model = make(TokenClassifier, 3, feature_layers)
    expected = FORMULAS[feature_layers](model, outputs(model))
    np.testing.assert_allclose(
        model.token_vectors(batch()), expected, atol=2e-5
    )
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(batch(), training=True) ** 2)
    logits = expected @ model.output_weights.numpy().T + model.output_bias
    np.testing.assert_allclose(model(batch()), logits, atol=2e-5)
    weights = {w.path: w.value for w in model.trainable_variables}
    learning = {w.path for w in model.learning_variables}
    assert learning == {n for n in weights if not n.startswith("bert/")}
    gradients = tape.gradient(loss, weights)
    assert {n for n, g in gradients.items() if g is not None} == learning
    assert all(np.any(gradients[name]) for name in learning)


def test_frozen_bert_has_no_dropout():
    model = make(TokenClassifier, 3, "last")
    model.dropout.rate = 0.0
    np.testing.assert_array_equal(model(batch(), training=True), model(batch()))


def test_weighted_sum_starts_as_the_mean_of_the_layers():
    head = PoolingHead("weighted_sum_all")
    model = TokenClassifier(CONFIG, 3, pooling_head=head)
    mean = np.mean(outputs(model)[1:], axis=0)
    np.testing.assert_allclose(model.token_vectors(batch()), mean, atol=1e-5)


def test_models_with_fewer_than_four_layers_use_all():
    config = BertConfig(**vars(CONFIG) | {"num_hidden_layers": 1})
    for feature_layers in (
        "concat_last_4",
        "weighted_sum_last_4",
        "second_to_last",
    ):
        head = PoolingHead(feature_layers)
        model = TokenClassifier(config, 3, pooling_head=head)
        assert model.token_vectors(batch()).shape == (3, 9, 8)
    embeddings = model.encode(batch()).embedding_output
    np.testing.assert_array_equal(model.token_vectors(batch()), embeddings)


@pytest.mark.parametrize(
    ("kind", "num_outputs"), [(TokenClassifier, 3), (SpanModel, 2)]
)
def test_bilstm_reads_the_last_layer_of_a_trained_bert(kind, num_outputs):
    model = make(kind, num_outputs, "none", 4)
    unused = {w.path for w in model.trainable_variables} - {
        w.path for w in model.learning_variables
    }
    assert unused == {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
    found, _ = model.bilstm(model.encode(batch()).sequence_output, MASK)
    expected = np.array(found) @ model.output_weights.numpy().T
    expected += model.output_bias.numpy()
    np.testing.assert_allclose(model(batch()), expected, atol=1e-5)


def test_text_vector_is_the_mean_of_features_or_the_final_bilstm_states():
    model = make(SequenceClassifier, 2, "last")
    last = outputs(model)[-1]
    mean = [last[i, :n].mean(0) for i, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(model.text_vector(batch()), mean, atol=1e-5)

    model = make(SequenceClassifier, 2, "none", 4)
    vectors = np.array(model.token_vectors(batch()))
    found = model.text_vector(batch())
    ends = vectors[np.arange(3), LENGTHS - 1, :4]
    np.testing.assert_allclose(found[:, :4], ends, atol=1e-6)
    np.testing.assert_allclose(found[:, 4:], vectors[:, 0, 4:], atol=1e-6)


def test_choices_are_pooled_one_by_one():
    model = make(ChoiceClassifier, 1, "last", 4)
    both = {name: tf.stack([v, v[::-1]], 1) for name, v in batch().items()}
    alone = [
        model.project(model.text_vector({n: v[:, i] for n, v in both.items()}))
        for i in range(2)
    ]
    np.testing.assert_allclose(
        model(both), np.concatenate(alone, axis=1), atol=1e-5
    )


def test_pooling_head_survives_json_and_the_default_is_left_out():
    for head in (
        NO_POOLING_HEAD,
        PoolingHead("last", 5),
        PoolingHead(bilstm_size=2),
    ):
        task = {"kind": "text", **head.to_json()}
        assert PoolingHead.from_json(task) == head
    assert NO_POOLING_HEAD.to_json() == {}


# The BiLSTM.

SIZE, WIDTH = 3, 5
LSTM_LENGTHS = np.array([7, 4, 1, 0])
LSTM_MASK = (np.arange(7) < LSTM_LENGTHS[:, np.newaxis]).astype(np.int32)


@pytest.fixture(scope="module")
def bilstm():
    layer = BiLstm(SIZE)
    layer.build((None, None, WIDTH))
    bias = layer.backward_1.cell.bias.numpy().reshape(4, SIZE)
    # The forget gates start open.
    np.testing.assert_array_equal(bias, np.eye(4)[1][:, None] * np.ones(SIZE))
    recorded.set_weights(layer.trainable_variables, 3)
    return layer


def vectors(length=7, seed=0):
    shape = (len(LSTM_LENGTHS), length, WIDTH)
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(xs, kernel, recurrent_kernel, bias):
    """An LSTM with forget gate, for one sequence."""
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
    """Returns outputs and final states of the upper layer, in float64."""
    for layer in ("layer_0", "layer_1"):
        forward, backward = (
            [
                weights[f"bilstm/{layer}/{direction}/{name}"]
                for name in ("kernel", "recurrent_kernel", "bias")
            ]
            for direction in ("forward", "backward")
        )
        forward, backward = lstm(xs, *forward), lstm(xs[::-1], *backward)
        last = np.concatenate([forward[-1:].sum(0), backward[-1:].sum(0)])
        xs = np.concatenate([forward, backward[::-1]], axis=1)
    return xs, last


def test_bilstm_weights_are_named_by_layer_and_direction(bilstm):
    shapes = {w.path: tuple(w.shape) for w in bilstm.trainable_variables}
    expected = {}
    for layer, width in (("layer_0", WIDTH), ("layer_1", 2 * SIZE)):
        for direction in ("forward", "backward"):
            prefix = f"bilstm/{layer}/{direction}"
            expected[f"{prefix}/kernel"] = (width, 4 * SIZE)
            expected[f"{prefix}/recurrent_kernel"] = (SIZE, 4 * SIZE)
            expected[f"{prefix}/bias"] = (4 * SIZE,)
    assert shapes == expected


def test_bilstm_equals_the_formula(bilstm):
    weights = {
        w.path: np.asarray(w.numpy(), np.float64)
        for w in bilstm.trainable_variables
    }
    x = vectors()
    found, last = bilstm(x, LSTM_MASK)
    for row, length in enumerate(LSTM_LENGTHS):
        expected, state = formula(x[row, :length].astype(np.float64), weights)
        np.testing.assert_allclose(found[row, :length], expected, atol=1e-6)
        np.testing.assert_allclose(last[row], state, atol=1e-6)
        assert not np.any(found[row, length:])


def test_bilstm_ignores_padding(bilstm):
    short = vectors()
    long = np.concatenate([short, vectors(5, seed=1)], axis=1)
    garbage = np.where(LSTM_MASK[..., None], short, 1e3).astype(np.float32)
    long_mask = np.pad(LSTM_MASK, ((0, 0), (0, 5)))
    expected, last = bilstm(short, LSTM_MASK)
    for x, mask in ((long, long_mask), (garbage, LSTM_MASK)):
        again, last_again = bilstm(x, mask)
        np.testing.assert_allclose(again[:, :7], expected, atol=1e-6)
        np.testing.assert_allclose(last_again, last, atol=1e-6)
        assert not np.any(again[:, 7:])
