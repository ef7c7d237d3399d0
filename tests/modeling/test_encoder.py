"""The encoder equals the formulas of the paper, in float64."""

import dataclasses
import json
import math
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.config import BertConfig
from official_bert.modeling.pretraining_model import PretrainingModel

CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG,
    vocab_size=50,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=40,
)


@pytest.fixture
def model():
    model = PretrainingModel(CONFIG)
    recorded.set_weights(model.trainable_variables, seed=5)
    return model


def reference(weights, ids, mask, segments, heads):
    """The paper's formulas in float64; returns sequence and pooled output."""
    weights = {name: w.astype(np.float64) for name, w in weights.items()}

    def dense(x, name):
        return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]

    def norm(x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12)
        gamma, beta = (
            weights[f"{name}/LayerNorm/{part}"] for part in ("gamma", "beta")
        )
        return x * gamma + beta

    def gelu(x):
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + np.tanh(inner))

    def split(x):
        return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)

    table = weights["bert/embeddings/word_embeddings"]
    segment_table = weights["bert/embeddings/token_type_embeddings"]
    positions = weights["bert/embeddings/position_embeddings"]
    x = table[ids] + segment_table[segments] + positions[: ids.shape[1]]
    x = norm(x, "bert/embeddings")
    for i in range(CONFIG.num_hidden_layers):
        layer = f"bert/encoder/layer_{i}"
        query, key, value = (
            split(dense(x, f"{layer}/attention/self/{name}"))
            for name in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[-1])
        scores += (1 - mask[:, None, None, :]) * -10000.0
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        context = scores / scores.sum(-1, keepdims=True) @ value
        context = context.swapaxes(1, 2).reshape(x.shape)
        half = dense(context, f"{layer}/attention/output/dense") + x
        x = norm(half, f"{layer}/attention/output")
        inner = gelu(dense(x, f"{layer}/intermediate/dense"))
        x = norm(dense(inner, f"{layer}/output/dense") + x, f"{layer}/output")
    return x, np.tanh(dense(x[:, 0], "bert/pooler/dense"))


def example(model, length, num_tokens):
    """Returns inputs of two sequences, and the outputs by the formulas.

    The second sequence has only `num_tokens` tokens.
    """
    random = np.random.RandomState(length)
    ids = random.randint(0, 50, (2, length))
    mask = np.ones_like(ids)
    mask[1, num_tokens:] = 0
    inputs = ids, mask, random.randint(0, 2, ids.shape)
    weights = {w.path: w.numpy() for w in model.trainable_variables}
    return inputs, *reference(weights, *inputs, heads=3)


@pytest.mark.filterwarnings("ignore:You are using a softmax over axis -1")
@pytest.mark.parametrize("length", [1, 2, 16])
def test_encoder_equals_the_formulas(model, length):
    inputs, sequence, pooled = example(model, length, length // 2 + 1)
    output = model.bert(*inputs)
    np.testing.assert_allclose(output.sequence_output, sequence, atol=1e-5)
    np.testing.assert_allclose(output.pooled_output, pooled, atol=1e-5)


@pytest.mark.parametrize("positions", [[[], []], [[5], [0]], [[8, 2], [2, 2]]])
def test_selected_positions_equal_those_of_all_positions(model, positions):
    inputs, sequence, pooled = example(model, 9, 5)
    positions = np.array(positions, int)
    output = model.bert(
        *inputs, output_positions=positions, return_attention=True
    )
    expected = np.take_along_axis(sequence, positions[..., None], axis=1)
    np.testing.assert_allclose(output.sequence_output, expected, atol=1e-5)
    np.testing.assert_allclose(output.pooled_output, pooled, atol=1e-5)
    # The last layer also computes [CLS], which is pooled.
    assert [tuple(p.shape) for p in output.attention_probs] == [
        (2, 3, 9, 9),
        (2, 3, 1 + positions.shape[1], 9),
    ]


def test_attention_probabilities_are_returned_on_request(model):
    ids = np.array([[1, 2, 3, 4]])
    mask = np.array([[1, 1, 1, 0]])
    assert model.bert(ids, mask).attention_probs == []
    probabilities = model.bert(ids, mask, return_attention=True).attention_probs
    assert [tuple(p.shape) for p in probabilities] == [(1, 3, 4, 4)] * 2
    np.testing.assert_allclose(np.sum(probabilities[0], -1), 1.0, rtol=1e-6)
    np.testing.assert_array_equal(probabilities[1][..., 3], 0.0)


def test_segment_id_outside_the_table_adds_nothing(model):
    table = model.bert.embeddings.token_type_embeddings
    ids = np.array([[1, 2]])
    outside = model.bert(ids, None, np.array([[7, 7]])).embedding_output
    table.assign(np.zeros(table.shape))
    inside = model.bert(ids, None, np.array([[1, 1]])).embedding_output
    np.testing.assert_array_equal(outside, inside)


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([[50]], tf.errors.InvalidArgumentError, "50"),
        ([[0] * 17], ValueError, "17"),
        ([0] * 4, ValueError, "must have two axes"),
    ],
    ids=["id_outside_the_table", "too_long", "no_batch_axis"],
)
def test_invalid_ids_are_an_error(model, ids, error, message):
    with pytest.raises(error, match=message):
        model.bert(np.array(ids))


def test_tf_checkpoint_contains_every_weight(model, tmp_path):
    """It silently omits Keras layers that are held in lists."""
    prefix = tf.train.Checkpoint(model).write(str(tmp_path / "x"))
    saved = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    values = [key for key in saved if key.endswith("VARIABLE_VALUE")]
    assert len(values) == len(model.trainable_variables)


def test_initial_weights_have_the_statistics_of_the_original(golden):
    recorded_stats = json.loads(
        (golden / "model" / "init_stats.json").read_text()
    )["per_variable"]
    config = BertConfig.from_json_file(
        str(golden / "model" / "base" / "bert_config.json")
    )
    weights = PretrainingModel(config).trainable_variables
    assert {w.path for w in weights} == set(recorded_stats)
    for weight in weights:
        expected = recorded_stats[weight.path]
        values = weight.numpy()
        assert abs(values).max() <= max(abs(expected["max"]), 0.04)
        # Four standard errors of a mean and of a standard deviation.
        slack = 4 * expected["std"] / math.sqrt(values.size) + 1e-9
        assert abs(values.mean() - round(expected["mean"])) < slack
        assert abs(values.std() - expected["std"]) < slack


def test_model_runs_on_the_jax_backend(model):
    pytest.importorskip("jax")
    script = (
        "import json, numpy as np, keras\nfrom support import recorded\n"
        "from official_bert.config import BertConfig\n"
        "from official_bert.modeling.pretraining_model import "
        "PretrainingModel\n"
        "assert keras.backend.backend() == 'jax'\n"
        "model = PretrainingModel(BertConfig(50, 24, 2, 3, 40,"
        " max_position_embeddings=16, type_vocab_size=2))\n"
        "recorded.set_weights(model.trainable_variables, seed=5)\n"
        "ids = np.arange(10).reshape(2, 5)\n"
        "batch = dict(input_ids=ids, input_mask=ids > 0, segment_ids=ids % 2,"
        " masked_lm_positions=np.array([[1], [4]]))\n"
        "output = model(batch)\n"
        "print(json.dumps([np.asarray(x).tolist() for x in output]))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={
            "KERAS_BACKEND": "jax",
            "PYTHONPATH": ":".join(sys.path),
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    ids = np.arange(10).reshape(2, 5)
    batch = {
        "input_ids": ids,
        "input_mask": ids > 0,
        "segment_ids": ids % 2,
        "masked_lm_positions": np.array([[1], [4]]),
    }
    under_jax = json.loads(result.stdout.splitlines()[-1])
    for ours, theirs in zip(model(batch), under_jax, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
