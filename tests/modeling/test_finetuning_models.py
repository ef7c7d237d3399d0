import dataclasses
import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.finetuning_models import (
    ChoiceClassifier,
    SentenceEncoder,
    SequenceClassifier,
    SpanModel,
    TokenClassifier,
)
from official_bert.modeling.layers import StepContext
from official_bert.modeling.pooling_head import BiLstm
from official_bert.options import FinetuningOptions
from official_bert.sources.heads import PoolingHead
from official_bert.training.step import random_bits

CONFIG = dataclasses.replace(recorded.SMALL_CONFIG, num_hidden_layers=5)
LENGTHS = np.array([9, 6, 1])
MASK = (np.arange(9) < LENGTHS[:, np.newaxis]).astype(np.int32)
RANDOM = np.random.RandomState(0)
BATCH = {
    "input_ids": tf.constant(RANDOM.randint(0, 30, MASK.shape), tf.int32),
    "input_mask": tf.constant(MASK),
    "segment_ids": tf.constant(RANDOM.randint(0, 2, MASK.shape), tf.int32),
}
POOLER = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}


def make(kind, *head, **changes):
    config = dataclasses.replace(CONFIG, **changes)
    model = kind(config, pooling_head=PoolingHead(*head))
    return recorded.assign(model, 5)


def outputs(model):
    """Returns the embeddings and the outputs of all layers, in float64."""
    output = model.encode(BATCH)
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
    "second_to_last": lambda model, layers: layers[-2],
    "last": lambda model, layers: layers[-1],
    "weighted_sum_last_4": lambda model, layers: weighted(
        model, layers[1:][-4:]
    ),
    "concat_last_4": lambda model, layers: np.concatenate(layers[1:][-4:], -1),
    "weighted_sum_all": lambda model, layers: weighted(model, layers[1:]),
}


OPTION = FinetuningOptions.__dataclass_fields__["feature_layers"]


@pytest.mark.parametrize(
    ("feature_layers", "num_layers"),
    [
        *((name, 5) for name in OPTION.metadata["choices"][1:]),
        ("weighted_sum_last_4", 1),
        ("concat_last_4", 1),
    ],
)
def test_features_equal_the_formula_and_bert_gets_no_gradient(
    feature_layers, num_layers
):
    model = make(TokenClassifier, feature_layers, num_hidden_layers=num_layers)
    expected = FORMULAS[feature_layers](model, outputs(model))
    logits = expected @ model.output_weights.numpy().T + model.output_bias
    np.testing.assert_allclose(model(BATCH), logits, atol=2e-5)
    model.dropout.rate = 0.0
    with tf.GradientTape() as tape:
        logits = model(BATCH, training=True)
        loss = tf.reduce_sum(logits**2)
    np.testing.assert_array_equal(logits, model(BATCH))  # BERT has no dropout.
    weights = {w.path: w.value for w in model.trainable_variables}
    learning = {w.path for w in model.learning_variables}
    assert learning == {n for n in weights if not n.startswith("bert/")}
    gradients = tape.gradient(loss, weights)
    assert {n for n, g in gradients.items() if g is not None} == learning
    # The softmax of a single number is 1.
    without = {"features/layer_weights"} if num_layers == 1 else set()
    assert {n for n in learning if not np.any(gradients[n])} <= without


def test_weighted_sum_starts_as_the_mean_of_the_layers():
    head = PoolingHead("weighted_sum_all")
    model = TokenClassifier(CONFIG, pooling_head=head)
    mean = np.mean(outputs(model)[1:], axis=0)
    np.testing.assert_allclose(model.token_vectors(BATCH), mean, atol=1e-5)


def test_bilstm_reads_the_last_layer_of_a_trained_bert():
    model = make(SpanModel, "none", 4)
    found, _ = model.bilstm(model.encode(BATCH).sequence_output, MASK)
    expected = np.array(found) @ model.output_weights.numpy().T
    expected += model.output_bias.numpy()
    np.testing.assert_allclose(model(BATCH), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "bilstm_size", "unused"),
    [
        (SequenceClassifier, 0, set()),
        (SequenceClassifier, 4, POOLER),
        (TokenClassifier, 0, POOLER),
        (SpanModel, 4, POOLER),
    ],
)
def test_pooler_is_trained_where_an_output_reads_it(kind, bilstm_size, unused):
    model = make(kind, "none", bilstm_size)
    learning = {w.path for w in model.learning_variables}
    assert {w.path for w in model.trainable_variables} - learning == unused


@pytest.mark.slow
def test_text_vector_is_the_mean_of_features_or_the_final_bilstm_states():
    model = make(SequenceClassifier, "last")
    last = outputs(model)[-1]
    mean = [last[i, :n].mean(0) for i, n in enumerate(LENGTHS)]
    np.testing.assert_allclose(model.text_vector(BATCH), mean, atol=1e-5)

    model = make(SequenceClassifier, "none", 4)
    _, states = model.bilstm(model.encode(BATCH).sequence_output, MASK)
    np.testing.assert_allclose(model.text_vector(BATCH), states, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("head", [(), ("last", 4)])
def test_choices_are_scored_independently(head):
    model = make(ChoiceClassifier, *head)
    batch = {name: tf.stack([v, v[::-1]], 1) for name, v in BATCH.items()}
    alone = [
        model.project(model.text_vector({n: v[:, i] for n, v in batch.items()}))
        for i in range(2)
    ]
    expected = np.concatenate(alone, axis=1)
    np.testing.assert_allclose(model(batch), expected, atol=1e-5)


def test_initial_output_weights_do_not_depend_on_the_config():
    """The original implementation has a fixed standard deviation of 0.02."""
    config = dataclasses.replace(CONFIG, initializer_range=1.0)
    weights = SequenceClassifier(config, 500).output_weights.numpy()
    assert 0.016 < weights.std() < 0.019
    assert abs(weights).max() <= 0.0401


@pytest.mark.parametrize(
    ("kind", "has_dropout"),
    [(SequenceClassifier, True), (TokenClassifier, True), (SpanModel, False)],
)
def test_output_dropout_is_applied_except_in_span_models(kind, has_dropout):
    model = kind(recorded.without_dropout(CONFIG))
    same = np.allclose(model(BATCH), model(BATCH, training=True))
    assert same != has_dropout


# The BiLSTM.

SIZE, WIDTH = 3, 5
LSTM_LENGTHS = np.array([7, 4, 1, 0])
LSTM_MASK = (np.arange(7) < LSTM_LENGTHS[:, np.newaxis]).astype(np.int32)
VECTORS = RANDOM.normal(size=(4, 7, WIDTH)).astype(np.float32)


@pytest.fixture(scope="module")
def bilstm():
    layer = BiLstm(SIZE)
    layer.build((None, None, WIDTH))
    return recorded.assign(layer, 3)


def test_bilstm_reads_each_text_as_if_it_were_alone(bilstm):
    found, last = bilstm(VECTORS, LSTM_MASK)
    for row, length in enumerate(LSTM_LENGTHS[:3]):
        x = VECTORS[row : row + 1, :length]
        for layer in (bilstm.layer_0, bilstm.layer_1):
            unmasked = keras.layers.Bidirectional(
                keras.layers.LSTM(SIZE, return_sequences=True)
            )
            unmasked.build(x.shape)
            unmasked.set_weights(layer.get_weights())
            x = unmasked(x)
        np.testing.assert_allclose(found[row, :length], x[0], atol=1e-6)
        state = np.concatenate([x[0, -1, :SIZE], x[0, 0, SIZE:]])
        np.testing.assert_allclose(last[row], state, atol=1e-6)
        assert not np.any(found[row, length:])
    assert not np.any(found[3])
    assert not np.any(last[3])


@pytest.mark.bfloat16
@pytest.mark.parametrize("head", [("weighted_sum_all", 4), ("last",)])
def test_heads_compute_in_float32_under_a_16_bit_policy(head):
    model = SequenceClassifier(
        CONFIG, pooling_head=PoolingHead(*head), dtype="mixed_bfloat16"
    )
    assert model.bert.compute_dtype == "bfloat16"
    assert model.text_vector(BATCH).dtype == tf.float32
    assert model.features.compute_dtype == "float32"
    if model.bilstm:
        lstm = model.bilstm.layer_1.backward_layer
        assert lstm.compute_dtype == "float32"
    assert model(BATCH).dtype == tf.float32


def texts_of_lengths(lengths):
    """Returns a batch of texts, [B, C, 9]."""
    mask = np.arange(9) < np.array(lengths)[..., np.newaxis]
    ids = np.random.RandomState(0).randint(0, 30, mask.shape)
    return {
        "input_ids": tf.constant(ids * mask, tf.int32),
        "input_mask": tf.constant(mask, tf.int32),
        "segment_ids": tf.zeros(mask.shape, tf.int32),
    }


def of_any_length(function):
    """Compiles a function of batches for all lengths, as training does."""
    spec = tf.TensorSpec((None, 3, None), tf.int32)
    names = ("input_ids", "input_mask", "segment_ids")
    return tf.function(
        function, input_signature=[dict.fromkeys(names, spec)], autograph=False
    )


@pytest.mark.slow
def test_padding_of_all_first_texts_or_all_others_is_not_computed():
    config = recorded.without_dropout(recorded.SMALL_CONFIG)
    model = recorded.assign(SentenceEncoder(config), 5)

    def compute(batch):
        with tf.GradientTape() as tape:
            vectors = model(batch)
            loss = tf.reduce_sum(vectors**3)
        gradients = tape.gradient(loss, model.learning_variables)
        return [vectors, *map(tf.convert_to_tensor, gradients)]

    compiled = of_any_length(compute)
    for lengths in ([[2, 9, 5], [3, 1, 0]], [[9, 3, 2]], [[4, 0, 0]]):
        # Token 999 is not in the vocabulary, so it cannot be looked up.
        width = np.max(lengths, axis=0)
        width = np.array([width[0], *[max(width[1:])] * 2])
        is_computed = np.arange(9) < np.maximum(width, 1)[:, np.newaxis]
        batch = texts_of_lengths(lengths)
        expected = compute(batch)
        batch["input_ids"] = tf.where(is_computed, batch["input_ids"], 999)
        for one, other in zip(compiled(batch), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.slow
def test_equal_texts_of_an_example_have_different_dropout_masks():
    config = dataclasses.replace(
        recorded.SMALL_CONFIG, hidden_dropout_prob=0.5, initializer_range=0.3
    )
    model = SentenceEncoder(config)
    context = StepContext(functools.partial(random_bits, [1, 2]))
    encode = of_any_length(lambda batch: model(batch, training=context))
    batch = texts_of_lengths([[9, 9, 9]])
    batch["input_ids"] = tf.tile(batch["input_ids"][:, :1], (1, 3, 1))
    [[first, second, third]] = encode(batch)
    for one, other in ((first, second), (second, third)):
        assert np.abs(one - other).max() > 0.1
