import itertools
import json
import math
import pathlib
import re

import pytest

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.sources import weight_names

GOLDEN = pathlib.Path(__file__).parent / "golden"
ORIGINAL = json.loads((GOLDEN / "bert_config.json").read_text())


def test_json_text_equals_the_original():
    name = "BertConfig(vocab_size=99, hidden_size=37).to_json_string()"
    [_, text] = ORIGINAL["cases"][name]
    assert BertConfig(vocab_size=99, hidden_size=37).to_json_string() == text


UNKNOWN = {"vocab_size": 5, "foo": [1], "pooler_type": "x"}


@pytest.mark.parametrize(
    ("name", "json_object"),
    [
        ("BertConfig.from_dict keeps unknown keys", UNKNOWN),
        ("BertConfig.from_dict({}) vocab_size", {}),
        ("from_json_file", {"vocab_size": 7, "hidden_act": "RELU"}),
    ],
)
def test_missing_or_unknown_keys_are_read_as_in_the_original(name, json_object):
    [_, expected] = ORIGINAL["cases"][name]
    assert BertConfig.from_dict(json_object).to_dict() == expected


def test_file_survives_reading_and_writing_if_it_is_valid(tmp_path):
    path = tmp_path / "a.json"
    given = {**UNKNOWN, "hidden_dropout_prob": None}  # The same as 0.
    path.write_text(text := BertConfig.from_dict(given).to_json_string())
    config = BertConfig.from_json_file(str(path))
    config.to_dict()["foo"].append(2)  # Changes only a copy.
    assert config.to_json_string() == text
    assert config.pooler_type == "x"
    path.write_text("{}")
    with pytest.raises(InputError, match=r"a\.json: `vocab_size`.* None"):
        BertConfig.from_json_file(str(path))


def test_config_of_transformers_is_an_error_unless_it_has_our_name(tmp_path):
    content = {**UNKNOWN, "hidden_act": "gelu", "model_type": "bert"}
    for name in ("config.json", "bert_config.json"):
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"/config\.json is a config of tran"):
        BertConfig.from_json_file(tmp_path / "config.json")
    config = BertConfig.from_json_file(tmp_path / "bert_config.json")
    assert config.hidden_act == "gelu"


def test_is_left_to_right_is_written_only_if_true():
    config = BertConfig(vocab_size=9, is_left_to_right=True)
    assert '"is_left_to_right": true' in config.to_json_string()
    assert BertConfig.from_dict(config.to_dict()) == config
    ordinary = BertConfig(vocab_size=9).to_dict()
    assert config.to_dict().keys() - ordinary.keys() == {"is_left_to_right"}


SIZES = (
    "vocab_size hidden_size num_hidden_layers num_attention_heads "
    "intermediate_size max_position_embeddings type_vocab_size"
)
DROPOUTS = "hidden_dropout_prob attention_probs_dropout_prob"
INVALID = {
    "num_hidden_layers": [257],
    SIZES: [None, 0, -1, 2**31, 2.0, "2", True],
    DROPOUTS: [-0.1, 1, 1.5, math.nan, "0.1"],
    "initializer_range": [None, -0.02, math.nan, "0.02"],
    "num_attention_heads": [5],
    "is_left_to_right": [1, "true"],
}


@pytest.mark.parametrize(("names", "values"), INVALID.items())
def test_invalid_value_is_an_error(names, values):
    for name, value in itertools.product(names.split(), values):
        config = BertConfig.from_dict({"vocab_size": 9, name: value})
        with pytest.raises(InputError, match=f"{name}.*{value!r}"):
            config.validate()


@pytest.mark.parametrize(
    "name", [n for n in ORIGINAL["cases"] if n.startswith("get_activation")]
)
def test_activations_are_those_of_the_original(name):
    quoted = re.match(r"get_activation\((.*?)\)", name)[1]
    activation = None if quoted == "None" else quoted.strip("'")
    config = BertConfig(vocab_size=9, hidden_act=activation)
    outcome, _ = ORIGINAL["cases"][name]
    if outcome == "ok":
        config.validate()
    else:
        with pytest.raises(InputError, match=f"`hidden_act` .*'{activation}'"):
            config.validate()


def make_vocab(number):
    tokens = ["[UNK]", "[CLS]", "[SEP]", *map(str, range(number - 3))]
    return {token: index for index, token in enumerate(tokens)}


@pytest.mark.parametrize("token", ["[UNK]", "[CLS]", "[SEP]"])
def test_vocabulary_without_a_special_token_is_an_error(token):
    vocab = make_vocab(10)
    del vocab[token]
    with pytest.raises(InputError, match=f"a.txt: .*{re.escape(token)}"):
        BertConfig(vocab_size=100).require_vocabulary(vocab, "a.txt")


def test_vocabulary_larger_than_the_model_is_an_error():
    config = BertConfig(vocab_size=100)
    # Blank lines at the end are not counted.
    config.require_vocabulary({**make_vocab(100), "": 101}, "a.txt")
    # The size is one more than the largest id, even if a token is duplicated.
    for vocab in (make_vocab(101), {**make_vocab(99), "doubled": 100}):
        with pytest.raises(InputError, match=r"a.txt: 101 .*=100.*gs\(101\)"):
            config.require_vocabulary(vocab, "a.txt")


def test_vocabulary_much_smaller_than_the_model_is_a_warning(caplog):
    config = BertConfig(vocab_size=30522)
    for size in (30522, 30522 - 256):
        config.require_vocabulary(make_vocab(size), "vocab.txt")
    assert not caplog.text
    config.require_vocabulary(make_vocab(20000), "vocab.txt")
    assert "vocab.txt: has 20000 tokens" in caplog.text


def count_weights(config, prefixes):
    shapes = weight_names.shapes(config)
    return sum(math.prod(shapes[n]) for n in shapes if n.startswith(prefixes))


@pytest.mark.parametrize("num_layers", [1, 12])
def test_names_and_shapes_are_those_of_the_model(num_layers):
    config = BertConfig(
        vocab_size=9,
        hidden_size=4,
        num_attention_heads=2,
        num_hidden_layers=num_layers,
        intermediate_size=6,
    )
    weights = PretrainingModel(config).trainable_variables
    shapes = weight_names.shapes(config)
    of_model = [(weight.path, tuple(weight.shape)) for weight in weights]
    assert [*shapes.items()][: len(of_model)] == of_model


@pytest.mark.parametrize("record", ORIGINAL["parameters"].values())
def test_number_of_weights_equals_the_checkpoint_of_the_original(record):
    config = BertConfig.from_dict(record["config"])
    encoder, heads = ("bert/",), ("cls/predictions", "cls/seq_relationship")
    assert count_weights(config, encoder) == record["encoder"]
    assert count_weights(config, encoder + heads) == record["with_heads"]
