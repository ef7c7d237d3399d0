import shutil

import keras
import numpy as np
import pytest
from support.conversions import (
    VOCAB,
    assert_arrays,
    assert_equal_files,
    batch,
    change_json,
    convert,
    outputs,
    released,
    to_tf1,
)
from support.run_outputs import read_json

from official_bert.errors import InputError
from official_bert.tokenization import FullTokenizer
from tools.golden.transformers_process import SIZES

keras_hub = pytest.importorskip("keras_hub")

pytestmark = [
    # Keras warns when a model that was never compiled is saved.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow,
]


def call(model):
    features = batch()
    inputs = {
        "token_ids": features["input_ids"],
        "padding_mask": features["input_mask"],
        "segment_ids": features["segment_ids"],
    }
    if "mask_positions" in model.input:
        inputs["mask_positions"] = features["masked_lm_positions"]
    return model(inputs)


def to_kh(folder, **flags):
    """Converts a directory to a preset beside it."""
    output = folder.parent / "kh"
    return convert(input=folder, output=output, to="keras_hub", **flags)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_directory_is_preferred_to_a_published_model(tmp_path, monkeypatch):
    """KerasHub would download the published model of this name."""
    monkeypatch.chdir(tmp_path)
    name = "bert_tiny_en_uncased"
    assert name in keras_hub.models.BertBackbone.presets
    arrays = released(tmp_path / "a", "encoder")
    to_kh(tmp_path / "a").rename(name)
    convert(input=name, output="tf1", to="tf1")
    assert_arrays(tmp_path / "tf1", arrays)


def with_released_head(model):
    """Returns the model with a head made as docs/conversion.md shows."""
    head = keras_hub.layers.MaskedLMHead(
        token_embedding=model.backbone.token_embedding,
        intermediate_activation=lambda x: keras.activations.gelu(
            x, approximate=True
        ),
        layer_norm_epsilon=1e-12,
    )
    encoded = model.backbone(model.backbone.input)["sequence_output"]
    logits = head(encoded, model.input["mask_positions"])
    head.set_weights(model.masked_lm_head.get_weights())
    return keras.Model(model.input, logits)


@pytest.mark.parametrize("has_head", [True, False])
def test_preset_of_keras_hub_has_the_same_outputs_here(tmp_path, has_head):
    models, folder = keras_hub.models, tmp_path / "kh"
    model = backbone = models.BertBackbone(
        vocabulary_size=SIZES["vocab_size"],
        num_layers=SIZES["num_hidden_layers"],
        num_heads=SIZES["num_attention_heads"],
        hidden_dim=SIZES["hidden_size"],
        intermediate_dim=SIZES["intermediate_size"],
        max_sequence_length=SIZES["max_position_embeddings"],
        num_segments=SIZES["type_vocab_size"],
        dropout=0.2,
    )
    tokenizer = models.BertTokenizer(VOCAB, lowercase=True, strip_accents=True)
    if has_head:
        preprocessor = models.BertMaskedLMPreprocessor(tokenizer, 12)
        model = models.BertMaskedLM(backbone, preprocessor)
    random = np.random.default_rng(3)
    for weight in model.weights:
        weight.assign(random.normal(0.0, 0.4, weight.shape))
    model.save_to_preset(str(folder))
    if not has_head:
        tokenizer.save_to_preset(str(folder))
    ours = to_tf1(folder)
    found = outputs(ours, "masked_lm" if has_head else "encoder")
    if has_head:
        assert_close(found["logits"], call(with_released_head(model)))
    else:
        theirs = call(backbone)
        assert_close(found["last_hidden_state"], theirs["sequence_output"])
        assert_close(found["pooler_output"], theirs["pooled_output"])
    assert read_json(ours / "bert_config.json") == {
        **SIZES,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.2,
        "attention_probs_dropout_prob": 0.2,
        "initializer_range": 0.02,
    }
    assert (ours / "vocab.txt").read_text().split() == VOCAB


@pytest.mark.parametrize("head", ["encoder", "masked_lm"])
def test_keras_hub_has_the_same_outputs_with_our_preset(tmp_path, head, capsys):
    config = {"hidden_dropout_prob": 0.25, "initializer_range": 0.02}
    config["attention_probs_dropout_prob"] = 0.25
    arrays = released(tmp_path / "a", head, **config)
    folder = to_kh(tmp_path / "a", do_lower_case=True)
    printed = capsys.readouterr().out
    assert "largest difference 0." in printed
    assert "Not kept" not in printed
    theirs = call(keras_hub.models.BertBackbone.from_preset(str(folder)))
    ours = outputs(tmp_path / "a", head)
    if head == "encoder":
        assert_close(ours["last_hidden_state"], theirs["sequence_output"])
        assert_close(ours["pooler_output"], theirs["pooled_output"])
    else:
        model = keras_hub.models.BertMaskedLM.from_preset(str(folder))
        assert np.abs(ours["logits"] - call(model)).max() < 0.02
        assert_close(ours["logits"], call(with_released_head(model)))
    back = to_tf1(folder)
    assert_arrays(back, arrays)
    assert_equal_files(tmp_path / "a", back, "bert_config.json", "vocab.txt")


@pytest.mark.parametrize("lower", [True, False])
def test_keras_hub_tokenizer_has_the_same_tokens(tmp_path, shared_data, lower):
    released(tmp_path / "a", "encoder", vocab_size=30522)
    vocab_file = shared_data / "vocab" / "uncased.txt"
    flags = {"vocab_file": vocab_file, "do_lower_case": lower}
    folder = to_kh(tmp_path / "a", **flags)
    tokenizer = keras_hub.models.BertTokenizer.from_preset(str(folder))
    text = "Élan vital: the naïve typewriters of Zürich, unaffable."
    ours = FullTokenizer(str(vocab_file), do_lower_case=lower)
    expected = ours.convert_tokens_to_ids(ours.tokenize(text))
    assert np.asarray(tokenizer(text)).tolist() == expected


def test_weights_and_settings_that_are_not_kept_are_reported(tmp_path, capsys):
    dropout = {"attention_probs_dropout_prob": 0.3}
    arrays = released(tmp_path / "a", "pretraining", **dropout)
    folder = to_kh(tmp_path / "a", skip="^cls/seq_relationship/")
    printed = capsys.readouterr().out
    assert "Left out: cls/seq_relationship/output_b" in printed
    assert "Not kept by keras_hub: attention_probs_dropout_prob: 0.3" in printed
    kept = {n: a for n, a in arrays.items() if "seq_relationship" not in n}
    assert_arrays(to_tf1(folder), kept)


@pytest.mark.parametrize(
    ("head", "config", "message"),
    [
        ("pretraining", {}, r"--skip='\^\(cls/seq_relationship/output_weig"),
        ("question_answering", {}, "head question_answering"),
        ("encoder", {"hidden_act": "relu"}, "have `hidden_act` gelu"),
        ("encoder", {"is_left_to_right": True}, "bidirectional"),
    ],
)
def test_model_without_counterpart_is_an_error(tmp_path, head, config, message):
    released(tmp_path / "a", head, **config)
    with pytest.raises(InputError, match=message):
        to_kh(tmp_path / "a")
    if head == "encoder":
        with pytest.raises(InputError, match="keeps no added tokens whole"):
            to_kh(tmp_path / "a", never_split="a")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset")
    released(folder / "a", "masked_lm")
    return to_kh(folder / "a")


@pytest.fixture
def preset(tmp_path, converted):
    """A copy of a preset with a masked LM."""
    return shutil.copytree(converted, tmp_path / "kh")


def named(name):
    return {"registered_name": f"keras_hub>{name}"}


@pytest.mark.parametrize(
    ("file", "changes", "message"),
    [
        ("tokenizer", named("OtherTokenizer"), "Received: OtherTokenizer"),
        ("task", named("BertTextClassifier"), "save the backbone alone"),
        ("config", named("RobertaBackbone"), "Received: RobertaBackbone"),
        ("config", {"config": 5}, "config.json: `config` must be an object"),
        ("tokenizer", {"config": 5}, "er.json: `config` must be an object"),
    ],
)
def test_preset_of_another_model_is_an_error(preset, file, changes, message):
    change_json(preset / f"{file}.json", **changes)
    with pytest.raises(InputError, match=message):
        to_tf1(preset)


@pytest.mark.parametrize("damage", [0, 100, 6000, b"SNOD", b"TREE", b"HEAP"])
def test_damaged_preset_is_an_error(preset, damage):
    """The weights are truncated, or a signature of HDF5 is overwritten."""
    path = preset / "model.weights.h5"
    data = path.read_bytes()
    if isinstance(damage, int):
        data = data[:damage]
    else:
        before, _, after = data.rpartition(damage)
        data = before + b"XXXX" + after
    path.write_bytes(data)
    with pytest.raises(InputError, match="complete preset that KerasHub"):
        to_tf1(preset)


def test_accents_are_kept_if_the_preset_keeps_them(preset):
    path = preset / "tokenizer.json"
    config = {**read_json(path)["config"], "strip_accents": False}
    change_json(path, config=config)
    folder = to_tf1(preset)
    assert read_json(folder / "tokenizer_config.json")["strip_accents"] is False
    back = to_kh(folder, overwrite=True)
    config = read_json(back / "tokenizer.json")["config"]
    assert (config["lowercase"], config["strip_accents"]) == (True, False)
    change_json(path, config={**config, "suffix_indicator": "@@"})
    with pytest.raises(InputError, match='`suffix_indicator` must be "##"'):
        to_tf1(preset, "c")


@pytest.mark.parametrize("token", ["a", "[MASK]"])
def test_vocabulary_with_a_repeated_token_is_an_error(tmp_path, token):
    """The token "b" occurs twice: it replaces another token."""
    released(tmp_path / "a", "encoder")
    vocab = tmp_path / "a" / "vocab.txt"
    vocab.write_text(vocab.read_text().replace(token + "\n", "b\n", 1))
    with pytest.raises(InputError, match="without duplicates"):
        to_kh(tmp_path / "a")
