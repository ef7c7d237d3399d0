import dataclasses
import json
import math
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy import special
from support import recorded
from support.processes import run_python

from official_bert.modeling.encoder import Bert
from official_bert.modeling.finetuning_models import SequenceClassifier
from official_bert.modeling.pretraining_model import PretrainingModel

CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG,
    vocab_size=50,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=40,
)
IDS = np.random.RandomState(9).randint(0, 50, (2, 9))
MASK = np.array([[1] * 9, [1] * 5 + [0] * 4])
SEGMENTS = np.random.RandomState(8).randint(0, 2, (2, 9))


@pytest.fixture
def model():
    return recorded.assign(PretrainingModel(CONFIG), 5)


def test_attention_equals_the_formula_of_the_paper(model):
    weights = {w.path: np.float64(w) for w in model.trainable_variables}
    output = model.bert(IDS, MASK, SEGMENTS, return_attention=True)

    def heads(name):
        name = f"bert/encoder/layer_0/attention/self/{name}"
        x = np.float64(output.embedding_output) @ weights[f"{name}/kernel"]
        x += weights[f"{name}/bias"]
        return x.reshape(*x.shape[:2], 3, -1).swapaxes(1, 2)

    query, key = heads("query"), heads("key")
    scores = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[-1])
    scores -= (1 - MASK[:, None, None, :]) * 10000.0
    expected = special.softmax(scores, axis=-1)
    np.testing.assert_allclose(output.attention_probs[0], expected, atol=2e-6)
    assert model.bert(IDS, MASK).attention_probs == []


def test_batch_may_be_empty(model):
    output = model.bert(IDS[:0], MASK[:0], output_positions=IDS[:0, :0])
    assert output.pooled_output.shape == (0, model.config.hidden_size)


@pytest.mark.parametrize("positions", [[[], []], [[5], [0]], [[8, 2], [2, 2]]])
def test_selected_outputs_equal_the_complete_outputs(model, positions):
    positions = np.array(positions, int)
    whole = model.bert(IDS, MASK, SEGMENTS)
    selected = model.bert(
        IDS, MASK, SEGMENTS, output_positions=positions, return_attention=True
    )
    expected = np.take_along_axis(
        np.array(whole.sequence_output), positions[..., None], axis=1
    )
    np.testing.assert_allclose(selected.sequence_output, expected, atol=1e-5)
    np.testing.assert_allclose(
        selected.pooled_output, whole.pooled_output, atol=1e-5
    )
    # The last layer also computes [CLS], which is pooled.
    assert [tuple(p.shape) for p in selected.attention_probs] == [
        (2, 3, 9, 9),
        (2, 3, 1 + positions.shape[1], 9),
    ]


def test_segment_id_outside_the_table_adds_nothing(model):
    table = model.bert.embeddings.token_type_embeddings
    outside = model.bert(IDS, None, IDS * 0 + 7).embedding_output
    table.assign(np.zeros(table.shape))
    # The default segment is 0.
    inside = model.bert(IDS).embedding_output
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


@pytest.mark.parametrize("mask", [MASK[:, :2], MASK[0], [[1]]])
def test_mask_of_another_shape_is_an_error(model, mask):
    for name in ("input_mask", "segment_ids"):
        with pytest.raises(ValueError, match=f"`{name}` must have the shape"):
            model.bert(IDS, **{name: mask})


def test_frozen_parts_stay_frozen_when_the_rest_is_built():
    bert = Bert(CONFIG)
    bert.embeddings.trainable = False
    bert.build()
    assert not bert.embeddings.trainable_variables
    assert bert.encoder.trainable_variables


@pytest.mark.parametrize("inputs", [{"input_ids": IDS}, [IDS, MASK]])
@pytest.mark.parametrize("is_built", [True, False])
def test_dict_or_list_as_first_argument_is_an_error(model, inputs, is_built):
    bert = model.bert if is_built else Bert(CONFIG)
    with pytest.raises(TypeError, match=r"bert\(\*\*batch\)"):
        bert(inputs)


@pytest.mark.parametrize("config", ["a", None, np.ones([1, 2])])
def test_model_that_is_made_without_a_config_is_an_error(config):
    for model_class in (Bert, PretrainingModel, SequenceClassifier):
        with pytest.raises(TypeError, match=r"`config` .*`from_pretrained"):
            model_class(config, input_ids=IDS)
        with pytest.raises(TypeError, match=r"argument.* 'config'"):
            model_class(input_ids=IDS)


def test_subclass_may_have_its_own_arguments():
    class Pooled(Bert):
        def __init__(self, size, config):
            super().__init__(config)
            self.size = size

        def call(self, input_ids):
            return super().call(input_ids).pooled_output[:, : self.size]

    assert Pooled(3, CONFIG)(IDS).shape == (len(IDS), 3)


def test_batch_that_is_given_by_name_is_an_error(model):
    batch = {"input_ids": IDS, "input_mask": MASK, "segment_ids": SEGMENTS}
    classifier = SequenceClassifier(CONFIG)
    for takes_batch in (model, classifier):
        with pytest.raises(TypeError, match=r"input_ids.* Call model\(batch\)"):
            takes_batch(**batch)
    assert classifier(batch=batch).shape == (2, 2)


def test_masked_lm_logits_are_of_all_positions_by_default(model):
    batch = {"input_ids": IDS, "masked_lm_positions": MASK * 0 + 3}
    some, every = model(batch), model({"input_ids": IDS})
    np.testing.assert_allclose(
        some.masked_lm_logits[:, 0], every.masked_lm_logits[:, 3], atol=1e-5
    )
    np.testing.assert_allclose(
        some.next_sentence_logits, every.next_sentence_logits, atol=1e-5
    )


def test_tf_checkpoint_contains_every_weight(model, tmp_path):
    """It silently omits Keras layers that are held in lists."""
    prefix = tf.train.Checkpoint(model).write(str(tmp_path / "x"))
    saved = tf.train.load_checkpoint(prefix).get_variable_to_shape_map()
    values = [key for key in saved if key.endswith("VARIABLE_VALUE")]
    assert len(values) == len(model.trainable_variables)


def test_initial_weights_have_the_statistics_of_the_original(golden):
    folder = golden / "model"
    stats = json.loads((folder / "init_stats.json").read_text())["per_variable"]
    config = recorded.read_config(folder / "base")
    weights = PretrainingModel(config).trainable_variables
    assert {w.path for w in weights} == set(stats)
    for weight in weights:
        expected, values = stats[weight.path], weight.numpy()
        assert abs(values).max() <= max(abs(expected["max"]), 0.04)
        # Four standard errors of a mean and of a standard deviation.
        slack = 4 * expected["std"] / math.sqrt(values.size) + 1e-9
        assert abs(values.mean() - round(expected["mean"])) < slack
        assert abs(values.std() - expected["std"]) < slack


def pretraining_outputs():
    model = recorded.assign(PretrainingModel(CONFIG), 5)
    batch = {
        "input_ids": IDS,
        "input_mask": MASK,
        "segment_ids": SEGMENTS,
        "masked_lm_positions": np.array([[1], [4]]),
    }
    return [np.asarray(x).tolist() for x in model(batch)]


def test_jax_backend_gives_the_same_outputs():
    pytest.importorskip("jax")
    script = (
        "import json, keras; from modeling import test_encoder as test\n"
        "assert keras.backend.backend() == 'jax'\n"
        "print(json.dumps(test.pretraining_outputs()))"
    )
    path = {"PYTHONPATH": ":".join(sys.path), "PATH": ""}
    done = run_python("-c", script, env={"KERAS_BACKEND": "jax", **path})
    under_jax = json.loads(done.stdout.splitlines()[-1])
    for ours, theirs in zip(pretraining_outputs(), under_jax, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


@pytest.mark.slow
def test_adam_of_keras_updates_repeated_tokens_like_others():
    ids = keras.Input([None], dtype="int32")
    bert = Bert(dataclasses.replace(CONFIG, num_hidden_layers=1))
    model = keras.Model(ids, bert(ids).pooled_output)
    assert {w.path.split("/")[0] for w in model.weights} == {"bert"}
    model.compile(keras.optimizers.Adam(0.01, epsilon=1e-20), "mse")
    before = model.trainable_weights[0].numpy()
    model.train_on_batch(np.array([[1, 2, 2, 2, 3]]), np.zeros([1, 24]))
    change = model.trainable_weights[0].numpy() - before
    # The size of Adam's first step is the learning rate.
    np.testing.assert_allclose(np.abs(change[1:4]), 0.01, rtol=1e-3)
    assert not change[4:].any()


@pytest.mark.bfloat16
def test_16_bit_gradients_are_summed_in_32_bits():
    ids = np.random.default_rng(0).integers(0, 4, [256, 16])
    factors = np.random.default_rng(1).normal(1, 0.1, [256, 16, 24])
    found = []
    for policy in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        bert = Bert(CONFIG, dtype=policy)
        bert.build()
        with tf.GradientTape() as tape:
            output = tf.cast(bert(ids).sequence_output, "float32")
            loss = tf.reduce_sum(output**3 * factors)
        found.append(tape.gradient(loss, bert.trainable_weights))
    for weight, expected, gradient in zip(
        bert.trainable_weights, *found, strict=True
    ):
        # The pooler has no gradient, and the keys' biases have a zero one.
        if expected is not None and "key/bias" not in weight.path:
            error = tf.norm(gradient - expected) / tf.norm(expected)
            assert 0 < error < 0.02, weight.path
