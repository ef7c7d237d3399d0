"""Tokens equal those that the 2018 release was recorded with."""

import base64
import json
import lzma
import unicodedata

import pytest

from official_bert.tokenization import (
    BasicTokenizer,
    BatchTokenizer,
    FullTokenizer,
    WordpieceTokenizer,
)
from official_bert.tokenization.normalize import normalize

ENGINES = [FullTokenizer, BatchTokenizer]
VOCABULARIES = ["uncased", "multi_cased", "chinese"]


def text_of(record):
    if "b64" in record:
        return base64.b64decode(record["b64"])
    return record["text"]


def assert_equal(records, field, function):
    wrong = [r for r in records if function(text_of(r)) != r[field]]
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("engine", ENGINES)
def test_pieces_and_ids(records, vocab_files, engine, vocabulary):
    tokenizer = engine(
        vocab_files[vocabulary], do_lower_case=vocabulary != "multi_cased"
    )
    assert_equal(records, f"tok_{vocabulary}", tokenizer.tokenize)
    for record in records:
        pieces, ids = record[f"tok_{vocabulary}"], record[f"ids_{vocabulary}"]
        assert tokenizer.convert_tokens_to_ids(pieces) == ids
        assert tokenizer.convert_ids_to_tokens(ids) == pieces


def test_words(records):
    assert_equal(records, "basic_lower", BasicTokenizer(True).tokenize)
    assert_equal(records, "basic_cased", BasicTokenizer(False).tokenize)


def test_pieces_of_raw_text(records, vocab_files):
    tokenizer = FullTokenizer(vocab_files["uncased"]).wordpiece_tokenizer
    assert_equal(records, "wp_raw_uncased", tokenizer.tokenize)


@pytest.mark.parametrize("engine", ENGINES)
def test_extract(tokenization_extract, make_vocab, engine):
    records = tokenization_extract["records"]
    for vocabulary, tokens in tokenization_extract["vocabularies"].items():
        tokenizer = engine(
            make_vocab(*tokens), do_lower_case=vocabulary != "multi_cased"
        )
        assert_equal(records, f"tok_{vocabulary}", tokenizer.tokenize)


def test_words_and_raw_text_of_the_extract(tokenization_extract):
    records = tokenization_extract["records"]
    assert_equal(records, "basic_lower", BasicTokenizer(True).tokenize)
    assert_equal(records, "basic_cased", BasicTokenizer(False).tokenize)
    raw = WordpieceTokenizer(tokenization_extract["vocabularies"]["uncased"])
    assert_equal(records, "wp_raw_uncased", raw.tokenize)


def is_comparable(char):
    """Whether `char` has kept its properties since the recording.

    With other tables than the recorded ones, that holds for the characters
    that are what they were in Unicode 3.2, the oldest tables that Python has:
    what did not change from 3.2 until now did not on the way either.
    """
    if unicodedata.unidata_version == "14.0.0":  # That of Python 3.11.
        return True
    old = unicodedata.ucd_3_2_0
    return unicodedata.category(char) == old.category(
        char
    ) != "Cn" and unicodedata.decomposition(char) == old.decomposition(char)


def is_one_of_many(char):
    """Whether `char` is one of 400,000 that are unassigned, but for a few."""
    is_nothing = unicodedata.category(char) in ("Cn", "Co")
    return is_nothing and ord(char) % 64 != 0


def test_single_characters(golden):
    lower, cased = BasicTokenizer(True), BasicTokenizer(False)
    path = golden / "tokenization" / "sweep_even.tsv.xz"
    num_compared = 0
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            codepoint, *results = line.split("\t")
            char = chr(int(codepoint, 16))
            if is_one_of_many(char) or not is_comparable(char):
                continue
            num_compared += 1
            inside, inside_cased, alone = map(json.loads, results)
            assert lower.tokenize(f"a{char}b") == inside
            assert cased.tokenize(f"A{char}B") == inside_cased
            assert lower.tokenize(char) == alone
            assert normalize(f"a{char}b", True).split() == inside
            assert normalize(f"A{char}B", False).split() == inside_cased
            assert normalize(char, True).split() == alone
    assert num_compared > 40_000
