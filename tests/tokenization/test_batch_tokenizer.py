"""The fast engine equals the reference, and keeps within its bounds."""

import pickle
import sys
import unicodedata

import pytest

from official_bert.tokenization import (
    BasicTokenizer,
    BatchTokenizer,
    FullTokenizer,
    memo,
)
from official_bert.tokenization.normalize import normalize


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("never_split", [(), ("[MASK]", "a")])
def test_equals_the_reference(
    odd_vocab, random_texts, do_lower_case, never_split
):
    settings = odd_vocab, do_lower_case, never_split
    reference, tokenizer = FullTokenizer(*settings), BatchTokenizer(*settings)
    texts = list(random_texts(5000))
    expected = [reference.tokenize(text) for text in texts]
    assert [tokenizer.tokenize(text) for text in texts] == expected
    assert list(tokenizer.tokenize_lines_to_ids(texts)) == [
        reference.convert_tokens_to_ids(pieces) for pieces in expected
    ]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_every_character_is_treated_as_in_the_reference(do_lower_case):
    tokenize = BasicTokenizer(do_lower_case).tokenize
    for start in range(0, sys.maxunicode, 256):
        block = [chr(start + i) for i in range(256)]
        if all(unicodedata.category(char) in ("Cn", "Co") for char in block):
            block = block[:1]  # Hundreds of thousands, and all alike.
        for char in block:
            assert normalize(char, do_lower_case).split() == tokenize(char)
        text = " ".join(f"A{char}b" for char in block)
        assert normalize(text, do_lower_case).split() == tokenize(text)


def test_bytes(odd_vocab):
    tokenizer = BatchTokenizer(odd_vocab)
    assert tokenizer.tokenize(b"\xc3\x89\xff!") == ["[UNK]", "!"]
    assert [*tokenizer.tokenize_lines_to_ids([b"a!"])] == [[2, 14]]


def test_memory_is_bounded(odd_vocab, random_texts, monkeypatch):
    monkeypatch.setattr(memo, "MAX_ENTRIES", 50)
    reference, tokenizer = FullTokenizer(odd_vocab), BatchTokenizer(odd_vocab)
    for text in random_texts(2000):
        assert tokenizer.tokenize(text) == reference.tokenize(text)
        assert tokenizer.tokenize_with_offsets(text)[0] == reference.tokenize(
            text
        )
        assert len(tokenizer._pieces_of_word) <= 50
        assert len(tokenizer._pieces_of_chunk) <= 50


def test_long_words_are_not_remembered(odd_vocab):
    tokenizer = BatchTokenizer(odd_vocab)
    long = "a" * (memo.MAX_REMEMBERED_LENGTH + 1)
    assert tokenizer.tokenize(long) == ["a"] + ["##a"] * (len(long) - 1)
    assert long not in tokenizer._pieces_of_word


def test_limits_of_the_word_piece_tokenizer_hold(make_vocab):
    tokens = ["[UNK]", "a", "##a", "b" * 201]
    tokenizer = BatchTokenizer(make_vocab(*tokens))
    assert tokenizer.tokenize("b" * 201) == ["[UNK]"]
    assert tokenizer.tokenize("a" * 200) == ["a"] + ["##a"] * 199
    assert BatchTokenizer(make_vocab()).tokenize("a b") == ["[UNK]", "[UNK]"]


def test_can_be_sent_to_another_process(odd_vocab, random_texts):
    tokenizer = BatchTokenizer(odd_vocab, never_split=("[MASK]",))
    texts = list(random_texts(100))
    expected = [tokenizer.tokenize_with_offsets(text) for text in texts]
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert [copy.tokenize_with_offsets(text) for text in texts] == expected
