"""Reading vocabularies, odd ones too, and looking tokens up in them."""

import base64
import json

import pytest
from support.recorded import EXTRACT

from official_bert.errors import InputError
from official_bert.tokenization import (
    FullTokenizer,
    convert_by_vocab,
    convert_ids_to_tokens,
    convert_tokens_to_ids,
    load_vocab,
)

ODD_FILES = json.loads((EXTRACT / "tokenization.json").read_text())[
    "vocab_edge"
]


@pytest.mark.parametrize("name", ODD_FILES)
def test_odd_files_are_read_as_the_original_reads_them(tmp_path, name):
    path = tmp_path / "vocab.txt"
    path.write_bytes(base64.b64decode(ODD_FILES[name]["b64"]))
    expected = ODD_FILES[name]["load_vocab"]
    if expected is None:
        with pytest.raises(InputError, match=r"vocab\.txt:2: .* UTF-8"):
            load_vocab(str(path))
        return
    pairs = [(token, index) for token, index in expected]
    assert list(load_vocab(str(path)).items()) == pairs
    assert list(FullTokenizer(str(path)).inv_vocab.items()) == [
        (index, token) for token, index in pairs
    ]


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="absent"):
        load_vocab(str(tmp_path / "absent.txt"))


def test_look_ups(make_vocab):
    vocab = {"[UNK]": 0, "a": 1}
    assert convert_tokens_to_ids(vocab, ["a", "[UNK]", "a"]) == [1, 0, 1]
    assert convert_ids_to_tokens({0: "[UNK]", 1: "a"}, [1, 0]) == ["a", "[UNK]"]
    assert convert_by_vocab(vocab, []) == []
    tokenizer = FullTokenizer(make_vocab(*vocab))
    assert tokenizer.vocab == vocab
    assert tokenizer.convert_tokens_to_ids(["a"]) == [1]
    assert tokenizer.convert_ids_to_tokens([0]) == ["[UNK]"]


def test_missing_tokens_and_ids_are_key_errors():
    with pytest.raises(KeyError, match="'b'"):
        convert_tokens_to_ids({"a": 0}, ["a", "b"])
    with pytest.raises(KeyError, match="7"):
        convert_ids_to_tokens({0: "a"}, [7])
