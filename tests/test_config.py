"""`BertConfig` reads and writes what the original does."""

import json
import lzma
import math
import pathlib
import re
import runpy

import pytest

from official_bert.checkpoints import weights
from official_bert.config import RELEASED, BertConfig
from official_bert.errors import InputError

GOLDEN = pathlib.Path(__file__).parent / "golden"
ORIGINAL = json.loads((GOLDEN / "bert_config.json").read_text())


def test_committed_extract_equals_the_golden_record(golden):
    extract = runpy.run_path(str(GOLDEN / "make_bert_config.py"))["extract"]
    assert extract(golden) == ORIGINAL


def test_json_text_equals_the_original():
    name = "BertConfig(vocab_size=99, hidden_size=37).to_json_string()"
    [_, text] = ORIGINAL["cases"][name]
    assert BertConfig(vocab_size=99, hidden_size=37).to_json_string() == text


@pytest.mark.parametrize(
    ("name", "json_object"),
    [
        (
            "BertConfig.from_dict keeps unknown keys",
            {"vocab_size": 5, "foo": [1], "pooler_type": "x"},
        ),
        ("BertConfig.from_dict({}) vocab_size", {}),
        ("from_json_file", {"vocab_size": 7, "hidden_act": "RELU"}),
    ],
)
def test_missing_and_unknown_keys_are_treated_as_in_the_original(
    name, json_object
):
    [_, expected] = ORIGINAL["cases"][name]
    assert BertConfig.from_dict(json_object).to_dict() == expected


def test_file_survives_reading_and_writing(tmp_path):
    text = BertConfig.from_dict(
        {"vocab_size": 30522, "type_vocab_size": 2, "directionality": "bidi"}
    ).to_json_string()
    (tmp_path / "a.json").write_text(text)
    config = BertConfig.from_json_file(str(tmp_path / "a.json"))
    assert config.to_json_string() == text
    assert config.directionality == "bidi"


def test_to_dict_returns_a_copy():
    config = BertConfig.from_dict({"vocab_size": 5, "foo": [1]})
    config.to_dict()["foo"].append(2)
    assert config.foo == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [("[1]", "a.json:1:.* list"), ("{}", "a.json: `vocab_size`.* None")],
)
def test_invalid_file_is_an_error(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=message):
        BertConfig.from_json_file(str(tmp_path / "a.json"))


SIZES = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads "
    "intermediate_size max_position_embeddings type_vocab_size"
)
DROPOUTS = "hidden_dropout_prob attention_probs_dropout_prob"
INVALID = {
    SIZES: [None, 0, -1, 2.0, "2", True],
    DROPOUTS: [-0.1, 1, 1.5, math.nan, "0.1"],
    "initializer_range": [None, -0.02, math.nan, "0.02"],
    "num_attention_heads": [5],
    "is_left_to_right": [1, "true"],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for names_, values in INVALID.items()
        for name in names_.split()
        for value in values
    ],
)
def test_invalid_value_is_an_error(name, value):
    config = BertConfig.from_dict({"vocab_size": 9, name: value})
    with pytest.raises(InputError, match=f"{name}.*{value!r}"):
        config.validate()


def test_dropout_may_be_null():
    config = {"vocab_size": 9, "hidden_dropout_prob": None}
    BertConfig.from_dict(config).validate()


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        (name, outcome)
        for name, [outcome, _] in ORIGINAL["cases"].items()
        if name.startswith("get_activation")
    ],
)
def test_activations_are_those_of_the_original(name, outcome):
    [quoted] = name.removeprefix("get_activation(").split(")")[:1]
    activation = None if quoted == "None" else quoted.strip("'")
    config = BertConfig(vocab_size=9, hidden_act=activation)
    if outcome == "ok":
        config.validate()
    else:
        with pytest.raises(InputError, match=f"`hidden_act` .*'{activation}'"):
            config.validate()


def make_vocab(number):
    tokens = ["[UNK]", "[CLS]", "[SEP]", *map(str, range(number - 3))]
    return {token: index for index, token in enumerate(tokens)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        *(({t: None}, re.escape(t)) for t in ("[UNK]", "[CLS]", "[SEP]")),
        ({"more": 99, "another": 100}, "101 .*=100"),
        # The size is one more than the largest id: a token may be duplicated.
        ({"doubled": 100}, "101 .*=100"),
    ],
)
def test_vocabulary_that_does_not_fit_is_an_error(changes, message):
    vocab = {**make_vocab(99), **changes}
    vocab = {token: i for token, i in vocab.items() if i is not None}
    with pytest.raises(InputError, match=f"a.txt: .*{message}"):
        BertConfig(vocab_size=100).require_vocabulary(vocab, "a.txt")


def test_vocabulary_much_smaller_than_the_model_is_a_warning(caplog):
    config = BertConfig(vocab_size=30522)
    for size in (30522, 30522 - 256):
        config.require_vocabulary(make_vocab(size), "vocab.txt")
    assert not caplog.text
    config.require_vocabulary(make_vocab(20000), "vocab.txt")
    assert "vocab.txt: has 20000 tokens" in caplog.text


def test_sequence_longer_than_the_model_supports_is_an_error():
    config = BertConfig(vocab_size=9, max_position_embeddings=64)
    config.require_length(64)
    with pytest.raises(InputError, match=r"--max_seq_length=65 .*64"):
        config.require_length(65)


ENCODER = ("bert/",)
WITH_HEADS = ("bert/", "cls/predictions", "cls/seq_relationship")


def count_weights(config, prefixes):
    shapes = weights.shapes(config)
    return sum(math.prod(shapes[n]) for n in shapes if n.startswith(prefixes))


@pytest.mark.parametrize("name", ORIGINAL["parameters"])
def test_number_of_weights_equals_the_checkpoint_of_the_original(name):
    record = ORIGINAL["parameters"][name]
    config = BertConfig.from_dict(record["config"])
    assert count_weights(config, ENCODER) == record["encoder"]
    assert count_weights(config, WITH_HEADS) == record["with_heads"]


# Millions of parameters of the encoder, and with the pre-training heads: from
# https://huggingface.co/keras/bert_large_en, section 3 of the paper (110), and
# https://promptlayer.com/models/bertuncasedl-2h-128a-2-f6b7.
@pytest.mark.parametrize(
    ("name", "encoder", "with_heads"),
    [
        ("uncased_L-2_H-128_A-2", "4.39", "4.43"),
        ("uncased_L-4_H-512_A-8", "28.76", None),
        ("uncased_L-8_H-512_A-8", "41.37", None),
        ("uncased_L-12_H-768_A-12", "109.48", "110"),
        ("cased_L-12_H-768_A-12", "108.31", None),
        ("chinese_L-12_H-768_A-12", "102.27", None),
        ("multi_cased_L-12_H-768_A-12", "177.85", None),
        ("uncased_L-24_H-1024_A-16", "335.14", "336"),
        ("cased_L-24_H-1024_A-16", "333.58", None),
    ],
)
def test_released_model_has_the_published_size(name, encoder, with_heads):
    published = {ENCODER: encoder, WITH_HEADS: with_heads}
    for prefixes, millions in published.items():
        if millions:
            digits = len(millions.partition(".")[2])
            count = count_weights(RELEASED[name], prefixes)
            assert f"{count / 1e6:.{digits}f}" == millions


def test_all_released_models_are_listed_with_the_sizes_in_their_names():
    # The table of 24 in the original's README, Turc et al., 2019.
    small = {
        f"uncased_L-{layers}_H-{hidden}_A-{heads}"
        for layers in (2, 4, 6, 8, 10, 12)
        for hidden, heads in [(128, 2), (256, 4), (512, 8), (768, 12)]
    }
    base = {
        f"{name}_L-12_H-768_A-12"
        for name in ("cased", "multilingual", "multi_cased", "chinese")
    }
    large = {
        f"{name}_L-24_H-1024_A-16"
        for name in ("uncased", "cased", "wwm_uncased", "wwm_cased")
    }
    assert RELEASED.keys() == small | base | large
    for name, config in RELEASED.items():
        config.validate()
        sizes = f"_L-{config.num_hidden_layers}_H-{config.hidden_size}"
        assert name.endswith(f"{sizes}_A-{config.num_attention_heads}")
        assert config.intermediate_size == 4 * config.hidden_size
        assert config.max_position_embeddings == 512
        assert config.type_vocab_size == 2


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("uncased.txt", "uncased_L-12_H-768_A-12"),
        ("cased.txt", "wwm_cased_L-24_H-1024_A-16"),
        ("chinese.txt", "chinese_L-12_H-768_A-12"),
        ("multi_cased.txt.xz", "multi_cased_L-12_H-768_A-12"),
    ],
)
def test_released_config_has_the_size_of_its_vocabulary(
    shared_data, file, name
):
    data = (shared_data / "vocab" / file).read_bytes()
    text = lzma.decompress(data) if file.endswith(".xz") else data

    assert RELEASED[name].vocab_size == text.count(b"\n")
