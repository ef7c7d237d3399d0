import json

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import recorded

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
        mlm_logits, nsp_logits = model(batch)
        masked_lm = cross_entropy(mlm_logits, batch["masked_lm_ids"])
        next_sentence = cross_entropy(
            nsp_logits, batch["next_sentence_labels"][:, 0]
        )
        weights = batch["masked_lm_weights"]
        mlm_loss = tf.reduce_sum(masked_lm * weights) / (
            tf.reduce_sum(weights) + 1e-5
        )
        nsp_loss = tf.reduce_mean(next_sentence)
        total_loss = mlm_loss + nsp_loss
    weights = {w.path: w.value for w in model.trainable_variables}
    gradients = tape.gradient(total_loss, weights)
    mlm_logits = tf.reshape(mlm_logits, [-1, mlm_logits.shape[-1]])
    outputs = {
        "embedding_output": bert.embedding_output,
        "sequence_output": bert.sequence_output,
        "pooled_output": bert.pooled_output,
        "mlm_logits": mlm_logits,
        "mlm_log_probs": tf.nn.log_softmax(mlm_logits),
        "mlm_example_loss": tf.reshape(masked_lm, [-1]),
        "mlm_loss": mlm_loss,
        "nsp_logits": nsp_logits,
        "nsp_log_probs": tf.nn.log_softmax(nsp_logits),
        "nsp_example_loss": next_sentence,
        "nsp_loss": nsp_loss,
        "total_loss": total_loss,
    }
    for i, output in enumerate(bert.encoder_outputs):
        outputs[f"encoder_layer_{i}"] = output
    for every in (8, 16):
        rows = bert.sequence_output[:, ::every]
        outputs[f"sequence_output_every{every}"] = rows
    return (
        {name: np.asarray(value) for name, value in outputs.items()},
        {n: tf.convert_to_tensor(g).numpy() for n, g in gradients.items()},
    )


def norms(arrays, **arguments):
    """Returns {name: norm} of arrays, in float64."""
    return {
        name: np.linalg.norm(np.float64(array), **arguments)
        for name, array in arrays.items()
    }


@pytest.mark.parametrize(("name", "case"), CASES)
def test_outputs_and_gradients_equal_the_original(golden, name, case):
    folder = golden / "model" / name
    model = PretrainingModel(recorded.read_config(folder))
    recorded.assign(model, SEEDS[name])
    arrays = np.load(folder / f"{case}.npz")
    batch = recorded.part(arrays, "in/")
    if case == "nomask":
        batch["input_mask"] = np.ones_like(batch["input_ids"])
        batch["segment_ids"] = np.zeros_like(batch["input_ids"])
    outputs, gradients = run(model, batch)
    stored = recorded.part(arrays, "out/")
    expected = {n: value for n, value in stored.items() if n in outputs}
    layers = {n for n in stored if n.startswith("encoder_layer")}
    assert expected.keys() >= {
        *("sequence_output", "mlm_log_probs", "total_loss"),
        *layers,
    }
    recorded.assert_all_close(outputs, expected, atol=CASES[name, case])
    recorded.assert_all_close(
        gradients, recorded.part(arrays, "grad/"), atol=GRADIENT_TOLERANCE
    )


def test_outputs_and_gradients_equal_the_committed_extract():
    arrays = recorded.part(np.load(recorded.EXTRACT / "model.npz"), "case/")
    model = PretrainingModel(recorded.RELU_CONFIG)
    recorded.assign(model, SEEDS["relu"])
    outputs, gradients = run(model, recorded.part(arrays, "in/"))
    expected = recorded.part(arrays, "out/")
    assert "sequence_output_every8" in expected
    recorded.assert_all_close(outputs, expected, atol=2e-5)
    expected = recorded.part(arrays, "norm/")
    recorded.assert_all_close(norms(gradients), expected, atol=2e-5)


@pytest.mark.slow
def test_bert_base_equals_the_original(golden, monkeypatch):
    # The weights are assigned; drawing them first would take seconds.
    zeros = keras.initializers.Zeros.__call__
    monkeypatch.setattr(keras.initializers.TruncatedNormal, "__call__", zeros)
    folder = golden / "model" / "real_size"
    arrays = np.load(folder / "summary.npz")
    model = PretrainingModel(recorded.read_config(folder))
    shapes = json.loads((folder / "variables.json").read_text())["variables"]
    found = {w.path: list(w.shape) for w in model.trainable_variables}
    assert found == dict(map(tuple, shapes))
    recorded.assign(model, 101)
    outputs, gradients = run(model, recorded.part(arrays, "in/"))
    stored = recorded.part(arrays, "out/")
    norm = stored["grad_global_norm_dense"]
    expected = {n: value for n, value in stored.items() if n in outputs}
    # Twelve layers of 768 add up more rounding than three of 64.
    recorded.assert_all_close(outputs, expected, atol=1e-4)
    rows = recorded.part(arrays, "rownorm/")
    outputs = {name: outputs[name] for name in rows}
    recorded.assert_all_close(norms(outputs, axis=-1), rows, rtol=1e-5)
    found = norms(gradients)
    expected = recorded.part(arrays, "gradnorm/")
    recorded.assert_all_close(found, expected, rtol=1e-3, atol=1e-5)
    for name, expected in recorded.part(arrays, "gradhead/").items():
        start = gradients[name].ravel()[: len(expected)]
        np.testing.assert_allclose(
            start, expected, atol=GRADIENT_TOLERANCE, err_msg=name
        )
    total = np.linalg.norm([*found.values()])
    np.testing.assert_allclose(total, norm, rtol=1e-4)
