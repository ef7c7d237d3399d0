import types

import numpy as np
import pytest

from official_bert.errors import InputError
from official_bert.inputs.text_inputs import encode
from official_bert.modeling.encoder import Bert
from official_bert.tokenization import Tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_pretrained("bert_tiny_demo")


def test_texts_and_pairs_are_padded_to_the_longest(tokenizer):
    batch = encode(tokenizer, ["Hello, world.", ("Who?", "A cat did it.")])
    found = [tokenizer.convert_ids_to_tokens(row) for row in batch["input_ids"]]
    hello = "[CLS] hello , world . [SEP]"
    pair = "[CLS] who ? [SEP] a cat did it . [SEP]"
    assert found == [[*hello.split(), *["[PAD]"] * 4], pair.split()]
    assert batch["input_mask"].tolist() == [[1] * 6 + [0] * 4, [1] * 10]
    assert batch["segment_ids"].tolist() == [[0] * 10, [0] * 4 + [1] * 6]
    assert {array.dtype for array in batch.values()} == {np.dtype("int32")}


def test_longer_text_is_truncated(tokenizer):
    pairs = [("a b c d", "e f"), ("a b", "c d e f"), "a b c d e f g"]
    batch = encode(tokenizer, pairs, max_seq_length=7)
    tokens = map(tokenizer.convert_ids_to_tokens, batch["input_ids"])
    assert [*map(" ".join, tokens)] == [
        "[CLS] a b [SEP] e f [SEP]",
        "[CLS] a b [SEP] c d [SEP]",
        "[CLS] a b c d e [SEP]",
    ]


def test_texts_can_be_padded_to_the_maximum_length(tokenizer):
    settings = {"max_seq_length": 9, "padding": "max_length"}
    batch = encode(tokenizer, ["a b c", "a"], **settings)
    assert batch["input_ids"].shape == (2, 9)
    assert batch["input_mask"].sum(axis=1).tolist() == [5, 3]


def test_bytes_are_texts_and_no_texts_are_an_empty_batch(tokenizer):
    text, pair = encode(tokenizer, [b"He laughed.", (b"a", b"b")])["input_ids"]
    expected = encode(tokenizer, ["He laughed.", ("a", "b")])["input_ids"]
    np.testing.assert_array_equal([text, pair], expected)
    bert = Bert.from_pretrained("bert_tiny_demo")
    assert bert(**encode(tokenizer, [])).pooled_output.shape == (0, 128)


TABLE = types.SimpleNamespace(columns=["text", "label"])  # As in pandas.
SINGLE = ["He laughed.", b"He laughed.", {"text": ["a"]}, TABLE]
MISSING = [None, float("nan"), ["a"], ["a", None]]


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (["He laughed."], {"max_seq_length": 2}, "at least 3"),
        (["He laughed."], {"max_seq_length": 9.0}, "integer .* 9.0"),
        (["He laughed."], {"padding": True}, "'longest' or"),
        *((texts, {}, r"such as \[text\]") for texts in SINGLE),
        *((["a", text], {}, r"pairs of .*texts\[1\] = ") for text in MISSING),
    ],
)
def test_wrong_texts_length_or_padding_are_an_error(
    tokenizer, texts, settings, message
):
    with pytest.raises(InputError, match=message):
        encode(tokenizer, texts, **settings)


def test_swapped_arguments_are_an_error(tokenizer):
    with pytest.raises(TypeError, match=r"be a Tokenizer.*\['He laughed\.'\]"):
        encode(["He laughed."], tokenizer)
