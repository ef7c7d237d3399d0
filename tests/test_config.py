"""`BertConfig` is the 2018 release's, and its sizes are the published ones."""

import json
import lzma
import math
import pathlib
import runpy

import pytest

from official_bert.config import RELEASED, BertConfig
from official_bert.errors import InputError

GOLDEN = pathlib.Path(__file__).parent / "golden"
ORIGINAL = json.loads((GOLDEN / "bert_config.json").read_text())


def test_the_committed_extract_is_the_original_record(golden):
    extract = runpy.run_path(str(GOLDEN / "make_bert_config.py"))["extract"]

    assert extract(golden) == ORIGINAL


def test_json_text_is_the_originals_byte_for_byte():
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
def test_missing_and_unknown_keys_are_the_originals(name, json_object):
    [_, expected] = ORIGINAL["cases"][name]

    assert BertConfig.from_dict(json_object).to_dict() == expected


def write(tmp_path, text):
    path = tmp_path / "bert_config.json"
    path.write_bytes(text.encode())
    return str(path)


def test_a_file_comes_back_as_it_was(tmp_path):
    text = BertConfig.from_dict(
        {"vocab_size": 30522, "type_vocab_size": 2, "directionality": "bidi"}
    ).to_json_string()

    config = BertConfig.from_json_file(write(tmp_path, text))

    assert config.to_json_string() == text
    assert config.directionality == "bidi"


def test_a_file_that_is_silent_about_segments_has_16(tmp_path):
    config = BertConfig.from_json_file(write(tmp_path, '{"vocab_size": 9}'))

    assert config.type_vocab_size == 16


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = write(tmp_path, '\ufeff{"vocab_size": 9}')

    assert BertConfig.from_json_file(path).vocab_size == 9


def test_changing_a_dict_leaves_its_config_alone():
    config = BertConfig.from_dict({"vocab_size": 5, "foo": [1]})

    config.to_dict()["foo"].append(2)

    assert config.foo == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"json:1: must be valid JSON. .* column 1"),
        ('{\n "vocab_size": 5,\n}', r"json:[23]: must be valid JSON"),
        ('{\n "vocab_size" 5\n}', r"json:2: must be valid JSON. .* column 15"),
        ("[1]", "json:1: must hold one JSON object. Received: list. Use"),
        ("{}", "json: `vocab_size` must be a positive integer. Received: None"),
    ],
)
def test_a_file_that_is_no_config_is_refused_with_its_line(
    tmp_path, text, message
):
    with pytest.raises(InputError, match=message):
        BertConfig.from_json_file(write(tmp_path, text))


def test_a_config_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(InputError, match=r"Cannot read .*missing.json"):
        BertConfig.from_json_file(str(tmp_path / "missing.json"))


COUNTS = [
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
]
DROPOUTS = ["hidden_dropout_prob", "attention_probs_dropout_prob"]


@pytest.mark.parametrize("value", [None, 0, -1, 2.0, "2", True])
@pytest.mark.parametrize("name", COUNTS)
def test_sizes_are_positive_integers(name, value):
    config = BertConfig.from_dict({"vocab_size": 9, name: value})

    with pytest.raises(
        InputError,
        match=f"`{name}` must be a positive integer. Received: {value!r}",
    ):
        config.validate()


def test_no_dropout_may_be_written_as_null():
    config = {"vocab_size": 9, "hidden_dropout_prob": None}
    BertConfig.from_dict(config).validate()


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, math.nan, "0.1"])
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropouts_are_numbers_from_0_to_below_1(name, value):
    config = BertConfig.from_dict({"vocab_size": 9, name: value})

    with pytest.raises(InputError, match=f"`{name}` must be .* {value!r}"):
        config.validate()


@pytest.mark.parametrize("value", [None, -0.02, math.nan, "0.02"])
def test_the_initial_deviation_is_a_number_from_0(value):
    config = BertConfig(vocab_size=9, initializer_range=value)

    with pytest.raises(InputError, match=f"`initializer_range` .* {value!r}"):
        config.validate()


def test_the_heads_divide_the_width():
    config = BertConfig(vocab_size=9, hidden_size=37, num_attention_heads=12)

    with pytest.raises(
        InputError,
        match=r"multiple .*hidden_size=37, num_attention_heads=12",
    ):
        config.validate()


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        (name, outcome)
        for name, [outcome, _] in ORIGINAL["cases"].items()
        if name.startswith("get_activation")
    ],
)
def test_activations_are_those_the_original_knows(name, outcome):
    [quoted] = name.removeprefix("get_activation(").split(")")[:1]
    activation = None if quoted == "None" else quoted.strip("'")
    config = BertConfig(vocab_size=9, hidden_act=activation)

    if outcome == "ok":
        config.validate()
    else:
        with pytest.raises(
            InputError, match=f"`hidden_act` must be one of .*'{activation}'"
        ):
            config.validate()


def pieces(number):
    """Returns a vocabulary of that many pieces."""
    tokens = ["[UNK]", "[CLS]", "[SEP]", *map(str, range(number - 3))]
    return {token: index for index, token in enumerate(tokens)}


@pytest.mark.parametrize("token", ["[UNK]", "[CLS]", "[SEP]"])
def test_a_vocabulary_has_what_every_text_needs(token):
    vocab = pieces(10)
    del vocab[token]
    name = token.replace("[", r"\[")
    with pytest.raises(InputError, match=f"a.txt: .* 9 pieces without {name}"):
        BertConfig(vocab_size=100).require_vocabulary(vocab, "a.txt")


def test_a_vocabulary_may_be_smaller_than_the_model_but_not_larger():
    config = BertConfig(vocab_size=100)

    config.require_vocabulary(pieces(99), "vocab.txt")
    config.require_vocabulary(pieces(100), "vocab.txt")
    with pytest.raises(
        InputError, match=r"vocab_size=100, and 101 lines in 'vocab.txt'. Use"
    ):
        config.require_vocabulary(pieces(101), "vocab.txt")


def test_a_vocabulary_is_as_large_as_its_largest_id():
    """Where a token stands twice, there are fewer than that."""
    vocab = {**pieces(99), "doubled": 100}
    with pytest.raises(InputError, match="vocab_size=100, and 101 lines"):
        BertConfig(vocab_size=100).require_vocabulary(vocab, "vocab.txt")


def test_a_vocabulary_much_smaller_than_the_model_is_pointed_out(caplog):
    config = BertConfig(vocab_size=30522)
    config.require_vocabulary(pieces(30522 - 256), "vocab.txt")
    assert not caplog.text
    config.require_vocabulary(pieces(20000), "vocab.txt")
    assert "vocab.txt: has 20000 pieces, and the model 30522" in caplog.text


def test_a_sequence_may_be_as_long_as_the_model_reads_but_no_longer():
    config = BertConfig(vocab_size=9, max_position_embeddings=64)

    config.require_length(64)
    with pytest.raises(
        InputError, match=r"64 positions. Received: max_seq_length=65. Shorten"
    ):
        config.require_length(65)


@pytest.mark.parametrize("name", ["base", "relu", "real_size"])
def test_parameters_are_those_in_the_originals_checkpoints(name):
    expected = ORIGINAL["parameters"][name]
    config = BertConfig.from_dict(expected["config"])

    assert config.num_parameters() == expected["encoder"]
    assert config.num_parameters(with_heads=True) == expected["with_heads"]


# https://huggingface.co/keras/bert_large_en counts the encoder with its pooler.
ENCODERS_IN_MILLIONS = {
    "uncased_L-2_H-128_A-2": 4.39,
    "uncased_L-4_H-512_A-8": 28.76,
    "uncased_L-8_H-512_A-8": 41.37,
    "uncased_L-12_H-768_A-12": 109.48,
    "cased_L-12_H-768_A-12": 108.31,
    "chinese_L-12_H-768_A-12": 102.27,
    "multi_cased_L-12_H-768_A-12": 177.85,
    "uncased_L-24_H-1024_A-16": 335.14,
    "cased_L-24_H-1024_A-16": 333.58,
}


@pytest.mark.parametrize(("name", "millions"), ENCODERS_IN_MILLIONS.items())
def test_encoders_are_as_large_as_published(name, millions):
    assert round(RELEASED[name].num_parameters() / 1e6, 2) == millions


@pytest.mark.parametrize(
    ("name", "millions", "digits"),
    [
        # Devlin et al., 2018, section 3.
        ("uncased_L-12_H-768_A-12", 110, -1),
        ("uncased_L-24_H-1024_A-16", 340, -1),
        # https://promptlayer.com/models/bertuncasedl-2h-128a-2-f6b7 and
        # https://promptlayer.com/models/bert-large-uncased-1802
        ("uncased_L-2_H-128_A-2", 4.43, 2),
        ("uncased_L-24_H-1024_A-16", 336, 0),
    ],
)
def test_models_with_heads_are_as_large_as_published(name, millions, digits):
    parameters = RELEASED[name].num_parameters(with_heads=True)

    assert round(parameters / 1e6, digits) == millions


def test_all_released_sizes_are_there():
    # The table of 24 in the 2018 release's README, Turc et al., 2019.
    small = {
        f"uncased_L-{layers}_H-{hidden}_A-{heads}"
        for layers in (2, 4, 6, 8, 10, 12)
        for hidden, heads in [(128, 2), (256, 4), (512, 8), (768, 12)]
    }

    assert RELEASED.keys() == small | {
        "cased_L-12_H-768_A-12",
        "multilingual_L-12_H-768_A-12",
        "multi_cased_L-12_H-768_A-12",
        "chinese_L-12_H-768_A-12",
        "uncased_L-24_H-1024_A-16",
        "cased_L-24_H-1024_A-16",
        "wwm_uncased_L-24_H-1024_A-16",
        "wwm_cased_L-24_H-1024_A-16",
    }


@pytest.mark.parametrize(("name", "config"), RELEASED.items())
def test_a_released_config_has_the_sizes_in_its_name(name, config):
    config.validate()

    assert name.endswith(
        f"_L-{config.num_hidden_layers}_H-{config.hidden_size}"
        f"_A-{config.num_attention_heads}"
    )
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
def test_a_released_config_fits_its_vocabulary(shared_data, file, name):
    data = (shared_data / "vocab" / file).read_bytes()
    text = lzma.decompress(data) if file.endswith(".xz") else data

    assert RELEASED[name].vocab_size == text.count(b"\n")
