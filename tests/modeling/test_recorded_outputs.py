"""Outputs, losses and gradients equal those of the original implementation."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.config import BertConfig
from official_bert.modeling.losses import cross_entropy
from official_bert.modeling.pretraining_model import PretrainingModel

# Where a whole row is masked, scores of -10000 have about three decimals in
# float32: the recorded run itself differs from float64 by 1e-3 there.
CASES = {
    ("base", "full"): 2e-5,
    ("base", "holes"): 2e-3,
    ("base", "nomask"): 2e-5,
    ("base", "onehot"): 2e-5,
    ("base", "pad"): 2e-5,
    ("base", "zeroweights"): 2e-5,
    ("relu", "pad"): 2e-5,
    ("relu", "short"): 2e-5,
}
SEEDS = {"base": 101, "relu": 102}
GRADIENT_TOLERANCE = 1e-5


def run(model, batch):
    """Returns all outputs under their recorded names, and the gradients."""
    batch = {name: tf.constant(value) for name, value in batch.items()}
    with tf.GradientTape() as tape:
        bert = model.bert(
            batch["input_ids"], batch["input_mask"], batch["segment_ids"]
        )
        logits = model(batch)
        masked_lm = cross_entropy(
            logits.masked_lm_logits, batch["masked_lm_ids"]
        )
        next_sentence = cross_entropy(
            logits.next_sentence_logits, batch["next_sentence_labels"][:, 0]
        )
        weights = batch["masked_lm_weights"]
        mlm_loss = tf.reduce_sum(masked_lm * weights) / (
            tf.reduce_sum(weights) + 1e-5
        )
        nsp_loss = tf.reduce_mean(next_sentence)
        total_loss = mlm_loss + nsp_loss
    gradients = tape.gradient(total_loss, model.trainable_variables)
    vocab_size = logits.masked_lm_logits.shape[-1]
    mlm_logits = tf.reshape(logits.masked_lm_logits, [-1, vocab_size])
    outputs = {
        "embedding_output": bert.embedding_output,
        "sequence_output": bert.sequence_output,
        "pooled_output": bert.pooled_output,
        "mlm_logits": mlm_logits,
        "mlm_log_probs": tf.nn.log_softmax(mlm_logits),
        "mlm_example_loss": tf.reshape(masked_lm, [-1]),
        "mlm_loss": mlm_loss,
        "nsp_logits": logits.next_sentence_logits,
        "nsp_log_probs": tf.nn.log_softmax(logits.next_sentence_logits),
        "nsp_example_loss": next_sentence,
        "nsp_loss": nsp_loss,
        "total_loss": total_loss,
    } | {
        f"encoder_layer_{i}": output
        for i, output in enumerate(bert.encoder_outputs)
    }
    gradients = {
        weight.path: tf.convert_to_tensor(gradient).numpy()
        for weight, gradient in zip(
            model.trainable_variables, gradients, strict=True
        )
    }
    return {k: np.asarray(v) for k, v in outputs.items()}, gradients


@pytest.mark.parametrize(("name", "case"), CASES)
def test_outputs_and_gradients_equal_the_original(golden, name, case):
    folder = golden / "model" / name
    config = BertConfig.from_json_file(str(folder / "bert_config.json"))
    model = PretrainingModel(config)
    recorded.set_weights(model.trainable_variables, SEEDS[name])
    arrays = np.load(folder / f"{case}.npz")
    batch = recorded.part(arrays, "in/")
    if case == "nomask":
        batch["input_mask"] = np.ones_like(batch["input_ids"])
        batch["segment_ids"] = np.zeros_like(batch["input_ids"])

    outputs, gradients = run(model, batch)

    expected = recorded.part(arrays, "out/")
    compared = set(outputs) & set(expected)
    assert compared >= {"sequence_output", "mlm_log_probs", "total_loss"}
    assert {n for n in expected if n.startswith("encoder_layer")} <= compared
    for output in compared:
        np.testing.assert_allclose(
            outputs[output],
            expected[output],
            atol=CASES[name, case],
            err_msg=output,
        )
    for weight, gradient in recorded.part(arrays, "grad/").items():
        np.testing.assert_allclose(
            gradients[weight],
            gradient,
            atol=GRADIENT_TOLERANCE,
            err_msg=weight,
        )


def test_outputs_and_gradients_equal_the_committed_extract():
    arrays = recorded.part(np.load(recorded.EXTRACT / "model.npz"), "case/")
    model = PretrainingModel(recorded.RELU_CONFIG)
    recorded.set_weights(model.trainable_variables, SEEDS["relu"])

    outputs, gradients = run(model, recorded.part(arrays, "in/"))

    every8 = arrays.pop("out/sequence_output_every8")
    np.testing.assert_allclose(
        outputs["sequence_output"][:, ::8], every8, atol=2e-5
    )
    for name, expected in recorded.part(arrays, "out/").items():
        np.testing.assert_allclose(
            outputs[name], expected, atol=2e-5, err_msg=name
        )
    for weight, expected in recorded.part(arrays, "norm/").items():
        norm = np.linalg.norm(gradients[weight].astype(np.float64))
        np.testing.assert_allclose(norm, expected, atol=2e-5, err_msg=weight)


def test_default_mask_is_ones_and_default_segment_is_zero():
    config = BertConfig(
        7, 8, 1, 2, 16, max_position_embeddings=9, type_vocab_size=2
    )
    bert = PretrainingModel(config).bert
    ids = tf.constant([[1, 2, 3], [4, 5, 6]])
    given = bert(ids, tf.ones_like(ids), tf.zeros_like(ids))
    np.testing.assert_array_equal(
        bert(ids).sequence_output, given.sequence_output
    )


@pytest.mark.slow
def test_bert_base_equals_the_original(golden):
    folder = golden / "model" / "real_size"
    arrays = np.load(folder / "summary.npz")
    model = PretrainingModel(
        BertConfig.from_json_file(str(folder / "bert_config.json"))
    )
    shapes = json.loads((folder / "variables.json").read_text())["variables"]
    assert {w.path: list(w.shape) for w in model.trainable_variables} == dict(
        map(tuple, shapes)
    )
    recorded.set_weights(model.trainable_variables, 101)

    outputs, gradients = run(model, recorded.part(arrays, "in/"))

    for name, expected in recorded.part(arrays, "out/").items():
        if name == "sequence_output_every16":
            actual = outputs["sequence_output"][:, ::16]
        elif name in outputs:
            actual = outputs[name]
        else:
            continue  # Norms are compared below.
        # Twelve layers of 768 add up more rounding than three of 64.
        np.testing.assert_allclose(actual, expected, atol=1e-4, err_msg=name)
    for name, expected in recorded.part(arrays, "rownorm/").items():
        norms = np.linalg.norm(outputs[name].astype(np.float64), axis=-1)
        np.testing.assert_allclose(norms, expected, rtol=1e-5, err_msg=name)
    for name, expected in recorded.part(arrays, "gradnorm/").items():
        norm = np.linalg.norm(gradients[name].astype(np.float64))
        np.testing.assert_allclose(
            norm, expected, rtol=1e-3, atol=1e-5, err_msg=name
        )
    for name, expected in recorded.part(arrays, "gradhead/").items():
        np.testing.assert_allclose(
            gradients[name].ravel()[: len(expected)],
            expected,
            atol=GRADIENT_TOLERANCE,
            err_msg=name,
        )
    total = np.sqrt(
        sum(np.sum(np.square(g.astype(np.float64))) for g in gradients.values())
    )
    np.testing.assert_allclose(
        total, arrays["out/grad_global_norm_dense"], rtol=1e-4
    )
