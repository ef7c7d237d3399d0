"""An exported encoder equals our BERT, without this project."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from support import hub_modules, recorded

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.export import tfhub_encoder

# A user who has TensorFlow and nothing else.
LOAD = """
import json, sys
for name in ("official_bert", "tensorflow_hub", "tf_keras", "keras_nlp"):
    sys.modules[name] = None
import tensorflow as tf
module = tf.saved_model.load(sys.argv[1])
ids = tf.constant(json.loads(sys.argv[2]))
inputs = {
    "input_word_ids": ids,
    "input_mask": tf.ones_like(ids),
    "input_type_ids": tf.zeros_like(ids),
}
with tf.GradientTape() as tape:
    outputs = module(inputs, training=True)
    loss = tf.reduce_sum(outputs["sequence_output"] ** 3)
gradients = tape.gradient(loss, module.trainable_variables)
print(json.dumps({
    "pooled_output": module(inputs)["pooled_output"].numpy().tolist(),
    "no_gradient": sum(gradient is None for gradient in gradients),
    "vocab": open(module.vocab_file.asset_path.numpy()).read(),
}))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Our model, the module's directory, and what `export` returned."""
    directory = tmp_path_factory.mktemp("encoder")
    model = hub_modules.write_files(directory)
    return model, *hub_modules.export(directory)


@pytest.fixture(scope="module")
def module(exported):
    return tf.saved_model.load(exported[1])


@pytest.fixture(scope="module")
def case():
    return recorded.part(np.load(recorded.EXTRACT / "model.npz"), "case/")


def inputs_of(case):
    """Returns the recorded inputs of our model and of a module."""
    arrays = recorded.part(case, "in/")
    ours = [arrays[n] for n in ("input_ids", "input_mask", "segment_ids")]
    return ours, hub_modules.inputs(*ours)


def predict_masked(module, case):
    positions = tf.constant(case["in/masked_lm_positions"])
    _, inputs = inputs_of(case)
    return module.mlm({**inputs, "masked_lm_positions": positions})


def test_outputs_equal_the_original(module, case):
    outputs = predict_masked(module, case)
    log_probs = tf.nn.log_softmax(outputs["mlm_logits"])
    found = {
        "sequence_output_every8": outputs["sequence_output"][:, ::8],
        "pooled_output": outputs["pooled_output"],
        "mlm_log_probs": tf.reshape(log_probs, [-1, 513]),
    }
    compared = [name for name in found if f"out/{name}" in case]
    assert len(compared) >= 2
    for name in compared:
        np.testing.assert_allclose(
            found[name], case[f"out/{name}"], atol=2e-5, err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [("base", 101), ("relu", 102)])
def test_outputs_equal_all_recorded_ones(golden, name, seed, tmp_path):
    directory = golden / "model" / name
    config = BertConfig.from_json_file(str(directory / "bert_config.json"))
    hub_modules.write_files(tmp_path, config, seed=seed)
    module = tf.saved_model.load(hub_modules.export(tmp_path, config)[0])
    arrays = np.load(directory / "pad.npz")

    outputs = predict_masked(module, arrays)

    for key in ("sequence_output", "pooled_output"):
        np.testing.assert_allclose(
            outputs[key], arrays[f"out/{key}"], atol=1e-5, err_msg=key
        )
    logits = tf.reshape(outputs["mlm_logits"], [-1, config.vocab_size])
    np.testing.assert_allclose(logits, arrays["out/mlm_logits"], atol=2e-5)
    for number, layer in enumerate(outputs["encoder_outputs"]):
        np.testing.assert_allclose(
            layer, arrays[f"out/encoder_layer_{number}"], atol=1e-5
        )


def test_outputs_and_signature_equal_our_model(exported, module, case):
    model, _, _ = exported
    ours, inputs = inputs_of(case)
    expected = model.bert(*ours)

    outputs = module(inputs)

    assert isinstance(outputs["encoder_outputs"], list)
    assert len(outputs) == 4
    for one, other in [
        (outputs["default"], expected.pooled_output),
        (outputs["pooled_output"], expected.pooled_output),
        (outputs["sequence_output"], expected.sequence_output),
        *zip(outputs["encoder_outputs"], expected.encoder_outputs, strict=True),
    ]:
        np.testing.assert_allclose(one, other, atol=1e-5)
    signature = module.signatures["tokens"](
        input_ids=inputs["input_word_ids"],
        input_mask=inputs["input_mask"],
        segment_ids=inputs["input_type_ids"],
    )
    assert set(signature) == {"pooled_output", "sequence_output"}
    for name, values in signature.items():
        np.testing.assert_allclose(values, outputs[name], atol=1e-6)
    masked = predict_masked(module, case)
    assert set(masked) == {*outputs, "mlm_logits"} - {"default"}
    np.testing.assert_allclose(
        masked["mlm_logits"],
        model(recorded.part(case, "in/")).masked_lm_logits,
        atol=1e-5,
    )


def test_gradients_equal_our_model(exported, module, case):
    model, _, _ = exported
    ours, inputs = inputs_of(case)

    def gradients(call, variables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(call()))
        return tape.gradient(loss, variables)

    weights = [weight.value for weight in model.bert.trainable_variables]
    expected = gradients(lambda: model.bert(*ours).pooled_output, weights)
    found = gradients(
        lambda: module(inputs)["pooled_output"], module.trainable_variables
    )
    for variable, one, other in zip(weights, found, expected, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(one),
            tf.convert_to_tensor(other),
            atol=1e-4,
            err_msg=variable.name,
        )


def test_dropout_differs_at_every_call_in_training_only(module, case):
    _, inputs = inputs_of(case)

    def embeddings(training):
        outputs = module(inputs, training=training)
        return outputs["encoder_outputs"][0].numpy()

    tf.random.set_seed(5)
    without = embeddings(False)
    np.testing.assert_array_equal(embeddings(False), without)
    samples = [embeddings(True) for _ in range(200)]
    assert np.abs(samples[0] - samples[1]).max() > 0.01
    assert np.abs(samples[0] - without).mean() > 0.2
    # The mean over calls differs by 0.095 only, because of normalization.
    assert np.abs(np.mean(samples, axis=0) - without).mean() < 0.1


def test_module_contains_names_vocabulary_and_casing(exported, module):
    model, _, written = exported
    names = [f"{w.path}:0" for w in model.bert.trainable_variables]
    assert [variable.name for variable in module.variables] == names
    assert [v.name for v in module.trainable_variables] == names
    head = [v.name for v in module.mlm.trainable_variables[len(names) :]]
    assert len(head) == 5
    assert all(name.startswith("cls/predictions/") for name in head)
    assert module.mlm.variables[0] is module.variables[0]
    assert list(module.regularization_losses) == []
    assert bool(module.do_lower_case)
    assert not module.do_lower_case.trainable
    info = module.signatures["tokenization_info"]()
    assert bool(info["do_lower_case"])
    for path in (info["vocab_file"], module.vocab_file.asset_path):
        text = tf.io.read_file(path).numpy().decode()
        assert text.split() == hub_modules.VOCAB
    assert written.has_masked_lm
    assert written.num_weights == sum(
        v.shape.num_elements() for v in module.variables
    )
    assert written.left_out == [
        "cls/seq_relationship/output_bias",
        "cls/seq_relationship/output_weights",
    ]


@pytest.mark.slow
def test_module_works_without_this_project(exported, module, tmp_path):
    ids = [[2, 5, 7, 3], [2, 6, 3, 3]]
    result = subprocess.run(
        [sys.executable, "-c", LOAD, exported[1], json.dumps(ids)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    found = json.loads(result.stdout)
    expected = module(hub_modules.inputs(ids))["pooled_output"]
    np.testing.assert_allclose(found["pooled_output"], expected, atol=1e-6)
    # `sequence_output` does not depend on the pooler's two weights.
    assert found["no_gradient"] <= 2
    assert found["vocab"].split() == hub_modules.VOCAB


def test_checkpoint_may_have_no_heads(tmp_path):
    hub_modules.write_files(tmp_path, without="cls/")
    path, written = hub_modules.export(tmp_path)
    assert not written.has_masked_lm
    assert written.left_out == []
    assert not hasattr(tf.saved_model.load(path), "mlm")


def test_failed_export_changes_nothing(tmp_path, monkeypatch):
    hub_modules.write_files(tmp_path, without="bert/pooler/")
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="missing: bert/pooler/dense/bias"):
        hub_modules.export(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before

    hub_modules.write_files(tmp_path)
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "a").write_text("b")

    def interrupt(module, directory, signatures):
        (tmp_path / directory / "saved_model.pb").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(tfhub_encoder.tf.saved_model, "save", interrupt)
    with pytest.raises(KeyboardInterrupt):
        hub_modules.export(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*before, "module"}
    assert [p.name for p in (tmp_path / "module").iterdir()] == ["a"]
