"""An exported encoder says what our BERT says, to who has none of it."""

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

# What a user does who has TensorFlow and nothing else.
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
def made(tmp_path_factory):
    """Returns our model, and the module's folder."""
    folder = tmp_path_factory.mktemp("encoder")
    model = hub_modules.write_files(folder)
    path, written = hub_modules.export(folder)
    return model, path, written


@pytest.fixture(scope="module")
def module(made):
    return tf.saved_model.load(made[1])


@pytest.fixture(scope="module")
def case():
    return recorded.part(np.load(recorded.EXTRACT / "model.npz"), "case/")


def given(case):
    arrays = recorded.part(case, "in/")
    ours = [arrays[n] for n in ("input_ids", "input_mask", "segment_ids")]
    return ours, hub_modules.inputs(*ours)


def test_equals_the_original(module, case):
    _, inputs = given(case)
    outputs = module(inputs)
    positions = tf.constant(case["in/masked_lm_positions"])
    guessed = module.mlm({**inputs, "masked_lm_positions": positions})
    found = {
        "sequence_output_every8": outputs["sequence_output"][:, ::8],
        "pooled_output": outputs["pooled_output"],
        "mlm_log_probs": tf.reshape(
            tf.nn.log_softmax(guessed["mlm_logits"]), [-1, 513]
        ),
    }
    compared = [name for name in found if f"out/{name}" in case]
    assert len(compared) >= 2
    for name in compared:
        np.testing.assert_allclose(
            found[name], case[f"out/{name}"], atol=2e-5, err_msg=name
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "relu"])
def test_equals_all_that_is_recorded(golden, name, tmp_path):
    folder = golden / "model" / name
    config = BertConfig.from_json_file(str(folder / "bert_config.json"))
    seed = {"base": 101, "relu": 102}[name]
    hub_modules.write_files(tmp_path, config, seed=seed)
    module = tf.saved_model.load(hub_modules.export(tmp_path, config)[0])
    arrays = np.load(folder / "pad.npz")
    _, inputs = given(arrays)
    positions = tf.constant(arrays["in/masked_lm_positions"])

    outputs = module.mlm({**inputs, "masked_lm_positions": positions})

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


def test_equals_our_own_model(made, module, case):
    model, _, _ = made
    ours, inputs = given(case)
    expected = model.bert(*ours)

    outputs = module(inputs)

    assert set(outputs) == {
        "default",
        "pooled_output",
        "sequence_output",
        "encoder_outputs",
    }
    assert isinstance(outputs["encoder_outputs"], list)
    for one, other in [
        (outputs["default"], expected.pooled_output),
        (outputs["pooled_output"], expected.pooled_output),
        (outputs["sequence_output"], expected.sequence_output),
        *zip(outputs["encoder_outputs"], expected.encoder_outputs, strict=True),
    ]:
        np.testing.assert_allclose(one, other, atol=1e-5)
    old = module.signatures["tokens"](
        input_ids=inputs["input_word_ids"],
        input_mask=inputs["input_mask"],
        segment_ids=inputs["input_type_ids"],
    )
    assert set(old) == {"pooled_output", "sequence_output"}
    for name, values in old.items():
        np.testing.assert_allclose(values, outputs[name], atol=1e-6)


def test_guesses_what_our_own_model_guesses(made, module, case):
    model, _, _ = made
    arrays = recorded.part(case, "in/")
    positions = arrays["masked_lm_positions"]
    _, inputs = given(case)

    outputs = module.mlm({**inputs, "masked_lm_positions": positions})

    np.testing.assert_allclose(
        outputs["mlm_logits"], model(arrays).masked_lm_logits, atol=1e-5
    )
    assert set(outputs) == {*module(inputs), "mlm_logits"} - {"default"}


def test_gradients_are_those_of_our_own_model(made, module, case):
    model, _, _ = made
    ours, inputs = given(case)

    def gradients(call, variables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(call()))
        return tape.gradient(loss, variables)

    own = [weight.value for weight in model.bert.trainable_variables]
    expected = gradients(lambda: model.bert(*ours).pooled_output, own)
    found = gradients(
        lambda: module(inputs)["pooled_output"], module.trainable_variables
    )
    for variable, one, other in zip(own, found, expected, strict=True):
        np.testing.assert_allclose(
            tf.convert_to_tensor(one),
            tf.convert_to_tensor(other),
            atol=1e-4,
            err_msg=variable.name,
        )


def test_drops_anew_at_every_call_in_training_only(module, case):
    _, inputs = given(case)

    def call(training):
        return module(inputs, training=training)["pooled_output"].numpy()

    tf.random.set_seed(5)
    one, other = call(True), call(True)
    assert np.abs(one - other).max() > 0.01
    np.testing.assert_array_equal(call(False), call(False))
    # Dropout changes no mean: over many calls, embeddings are the same but for
    # 0.095 (with 100 calls 0.099), as normalization is not linear.
    first = [
        module(inputs, training=True)["encoder_outputs"][0].numpy()
        for _ in range(400)
    ]
    still = module(inputs)["encoder_outputs"][0].numpy()
    assert np.abs(np.mean(first, axis=0) - still).mean() < 0.1
    assert np.abs(first[0] - still).mean() > 0.2


def test_says_what_it_is(made, module):
    model, _, written = made
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
def test_needs_none_of_this_project(made, module, tmp_path):
    ids = [[2, 5, 7, 3], [2, 6, 3, 3]]
    result = subprocess.run(
        [sys.executable, "-c", LOAD, made[1], json.dumps(ids)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    found = json.loads(result.stdout)
    expected = module(hub_modules.inputs(ids))["pooled_output"]
    np.testing.assert_allclose(found["pooled_output"], expected, atol=1e-6)
    # The pooler's two, which `sequence_output` does not depend on.
    assert found["no_gradient"] <= 2
    assert found["vocab"].split() == hub_modules.VOCAB


def test_a_checkpoint_without_heads_is_enough(tmp_path):
    hub_modules.write_files(tmp_path, without="cls/")
    path, written = hub_modules.export(tmp_path)
    assert not written.has_masked_lm
    assert written.left_out == []
    assert not hasattr(tf.saved_model.load(path), "mlm")


def test_a_checkpoint_that_does_not_fit_leaves_nothing(tmp_path):
    hub_modules.write_files(tmp_path, without="bert/pooler/")
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="missing: bert/pooler/dense/bias"):
        hub_modules.export(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before


def test_an_interrupted_export_leaves_what_was_there(tmp_path, monkeypatch):
    hub_modules.write_files(tmp_path)
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / "a").write_text("b")

    def interrupt(module, folder, signatures):
        (tmp_path / folder / "saved_model.pb").write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(tfhub_encoder.tf.saved_model, "save", interrupt)
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(KeyboardInterrupt):
        hub_modules.export(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before
    assert [p.name for p in (tmp_path / "module").iterdir()] == ["a"]
