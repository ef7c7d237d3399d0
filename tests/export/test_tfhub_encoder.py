import dataclasses
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from support import hub_modules, recorded

from official_bert.errors import InputError
from official_bert.hub import HubEncoder
from official_bert.tokenization.settings import TokenizerSettings

pytestmark = pytest.mark.slow

ONE_LAYER = dataclasses.replace(hub_modules.CONFIG, num_hidden_layers=1)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Our model, the module's directory, and what `export` returned."""
    directory = tmp_path_factory.mktemp("encoder")
    model = hub_modules.write_files(directory)
    config = directory / "tokenizer_config.json"
    config.write_text('{"strip_accents": false, "do_lower_case": false}')
    return model, *hub_modules.export(directory)


@pytest.fixture(scope="module")
def module(exported):
    return tf.saved_model.load(exported[1])


@pytest.fixture(scope="module")
def batch():
    arrays = np.load(recorded.EXTRACT / "model.npz")
    return recorded.part(arrays, "case/in/")


NAMES = ("input_ids", "input_mask", "segment_ids")


def inputs_of(batch):
    """Returns the inputs of our model and of a module."""
    ours = [batch[name] for name in NAMES]
    return ours, hub_modules.inputs(*ours)


def test_outputs_and_signature_equal_our_model(exported, module, batch):
    """`test_recorded_outputs.py` compares our model with the original."""
    model, _, _ = exported
    ours, inputs = inputs_of(batch)
    output = model.bert(*ours)

    outputs = module(inputs)
    positions = tf.constant(batch["masked_lm_positions"])
    masked = module.mlm({**inputs, "masked_lm_positions": positions})
    tokens = dict(zip(NAMES, inputs.values(), strict=True))
    signature = module.signatures["tokens"](**tokens)

    assert isinstance(outputs["encoder_outputs"], list)
    expected = {
        "default": output.pooled_output,
        "pooled_output": output.pooled_output,
        "sequence_output": output.sequence_output,
        "encoder_outputs": output.encoder_outputs,
    }
    assert outputs.keys() == expected.keys()
    recorded.assert_all_close(outputs, expected, atol=1e-5)
    assert signature.keys() == {"pooled_output", "sequence_output"}
    recorded.assert_all_close(outputs, signature, atol=1e-6)
    assert masked.keys() == {*outputs, "mlm_logits"} - {"default"}
    logits = model(batch).masked_lm_logits
    np.testing.assert_allclose(masked["mlm_logits"], logits, atol=1e-5)


def test_gradients_equal_our_model(exported, module, batch):
    model, _, _ = exported
    ours, inputs = inputs_of(batch)

    def gradients(call, variables):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.sin(call()))
        return tape.gradient(loss, variables)

    weights = [weight.value for weight in model.bert.trainable_variables]
    expected = gradients(lambda: model.bert(*ours).pooled_output, weights)
    found = gradients(
        lambda: module(inputs)["pooled_output"], module.trainable_variables
    )
    for weight, *pair in zip(weights, found, expected, strict=True):
        ours, theirs = map(tf.convert_to_tensor, pair)
        np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=weight.name)


def test_dropout_differs_at_every_call_in_training_only(module, batch):
    _, inputs = inputs_of(batch)

    def embeddings(training):
        outputs = module(inputs, training=training)
        return outputs["encoder_outputs"][0].numpy()

    tf.random.set_seed(5)
    without = embeddings(False)
    np.testing.assert_array_equal(embeddings(False), without)
    samples = [embeddings(True) for _ in range(200)]
    assert np.abs(samples[0] - samples[1]).max() > 0.01
    assert np.abs(samples[0] - without).mean() > 0.2
    # The mean differs by 0.095, because layer normalization is not linear.
    assert np.abs(np.mean(samples, axis=0) - without).mean() < 0.1


def test_module_contains_names_vocabulary_and_casing(exported, module):
    model, _, written = exported
    names = [f"{w.path}:0" for w in model.bert.trainable_variables]
    for variables in (module.variables, module.trainable_variables):
        assert [variable.name for variable in variables] == names
    assert module.mlm.variables[0] is module.variables[0]
    head = [v.name for v in module.mlm.trainable_variables[len(names) :]]
    assert len(head) == 5
    assert all(name.startswith("cls/predictions/") for name in head)
    assert list(module.regularization_losses) == []
    assert not module.do_lower_case.trainable
    info = module.signatures["tokenization_info"]()
    assert bool(module.do_lower_case)
    assert bool(info["do_lower_case"])
    for path in (info["vocab_file"], module.vocab_file.asset_path):
        text = tf.io.read_file(path).numpy().decode()
        assert text.split() == hub_modules.VOCAB
    assert written.has_masked_lm
    assert written.num_weights == sum(
        v.shape.num_elements() for v in module.variables
    )
    parts = ("output_bias", "output_weights")
    assert written.left_out == [f"cls/seq_relationship/{p}" for p in parts]


def test_module_contains_the_settings_of_the_tokenizer(exported):
    settings = HubEncoder(exported[1]).tokenizer.settings
    assert settings == TokenizerSettings(True, strip_accents=False)


def test_checkpoint_may_have_no_heads(tmp_path):
    hub_modules.write_files(tmp_path, ONE_LAYER, without="cls/")
    path, written = hub_modules.export(tmp_path)
    assert not written.has_masked_lm
    assert written.left_out == []
    assert not hasattr(tf.saved_model.load(path), "mlm")


def test_module_has_the_heads_of_the_newest_undamaged_checkpoint(tmp_path):
    """The newest checkpoint is damaged and has no heads, the other has them."""
    prefixes = [str(tmp_path / f"model.ckpt-{step}") for step in (1, 2)]
    for prefix, without in zip(prefixes, ("-", "cls/"), strict=True):
        hub_modules.write_files(tmp_path, ONE_LAYER, without=without)
        for path in tmp_path.glob("bert_model.ckpt.*"):
            path.rename(prefix + path.suffix)
    data = pathlib.Path(f"{prefixes[1]}.data-00000-of-00001")
    data.write_bytes(data.read_bytes()[:-100])

    path, written = hub_modules.export(tmp_path, checkpoint="")

    assert written.has_masked_lm
    assert all(n.startswith("cls/seq_relationship/") for n in written.left_out)
    assert len(written.left_out) == 2
    assert hasattr(tf.saved_model.load(path), "mlm")


def test_missing_weight_is_an_error_and_writes_nothing(tmp_path):
    hub_modules.write_files(tmp_path, ONE_LAYER, without="bert/pooler/")
    before = {path.name for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="missing: bert/pooler/dense/bias"):
        hub_modules.export(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == before
