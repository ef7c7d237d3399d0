"""Tokens equal those recorded with the original implementation."""

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


def text_of(record):
    if "b64" in record:
        return base64.b64decode(record["b64"])
    return record["text"]


def assert_equal(records, field, function):
    wrong = [r for r in records if function(text_of(r)) != r[field]]
    assert not wrong, f"{len(wrong)} differ, such as {wrong[0]}"


@pytest.mark.parametrize("vocabulary", ["uncased", "multi_cased", "chinese"])
@pytest.mark.parametrize("engine", ENGINES)
def test_tokens_and_ids_equal_the_recorded_ones(
    records, vocab_files, engine, vocabulary
):
    tokenizer = engine(
        vocab_files[vocabulary], do_lower_case=vocabulary != "multi_cased"
    )
    if engine is FullTokenizer:  # Slow; other records show the same.
        records = records[::4]
    assert_equal(records, f"tok_{vocabulary}", tokenizer.tokenize)
    ids = [record[f"ids_{vocabulary}"] for record in records]
    for record, ids_of_record in zip(records, ids, strict=True):
        tokens = record[f"tok_{vocabulary}"]
        assert tokenizer.convert_tokens_to_ids(tokens) == ids_of_record
        assert tokenizer.convert_ids_to_tokens(ids_of_record) == tokens
    if engine is BatchTokenizer:
        texts = map(text_of, records)
        assert list(tokenizer.tokenize_lines_to_ids(texts)) == ids


def test_words_equal_the_recorded_ones(records, vocab_files):
    some = records[::3]
    assert_equal(some, "basic_lower", BasicTokenizer(True).tokenize)
    assert_equal(some, "basic_cased", BasicTokenizer(False).tokenize)
    wordpiece = FullTokenizer(vocab_files["uncased"]).wordpiece_tokenizer
    assert_equal(some, "wp_raw_uncased", wordpiece.tokenize)


@pytest.mark.parametrize("engine", ENGINES)
def test_tokens_equal_the_committed_extract(
    tokenization_extract, make_vocab, engine
):
    records = tokenization_extract["records"]
    for vocabulary, tokens in tokenization_extract["vocabularies"].items():
        tokenizer = engine(
            make_vocab(*tokens), do_lower_case=vocabulary != "multi_cased"
        )
        assert_equal(records, f"tok_{vocabulary}", tokenizer.tokenize)


def test_words_equal_the_committed_extract(tokenization_extract):
    records = tokenization_extract["records"]
    assert_equal(records, "basic_lower", BasicTokenizer(True).tokenize)
    assert_equal(records, "basic_cased", BasicTokenizer(False).tokenize)
    wordpiece = WordpieceTokenizer(
        tokenization_extract["vocabularies"]["uncased"]
    )
    assert_equal(records, "wp_raw_uncased", wordpiece.tokenize)


def is_unchanged(char):
    """Whether `char` has the properties it had when it was recorded.

    If Python's Unicode tables are not the recorded ones, that holds for the
    characters that have not changed since Unicode 3.2, the oldest tables in
    Python.
    """
    if unicodedata.unidata_version == "14.0.0":  # That of Python 3.11.
        return True
    old = unicodedata.ucd_3_2_0
    return unicodedata.category(char) == old.category(
        char
    ) != "Cn" and unicodedata.decomposition(char) == old.decomposition(char)


def is_skipped(char):
    """Whether `char` is unassigned, except for a few of the 400,000."""
    is_unassigned = unicodedata.category(char) in ("Cn", "Co")
    return is_unassigned and ord(char) % 64 != 0


@pytest.mark.parametrize(
    "step", [29, pytest.param(1, marks=pytest.mark.nightly)]
)
def test_words_of_single_characters_equal_the_recorded_ones(golden, step):
    lower, cased = BasicTokenizer(True), BasicTokenizer(False)
    path = golden / "tokenization" / "sweep_even.tsv.xz"
    num_compared = 0
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            codepoint, *results = line.split("\t")
            char = chr(int(codepoint, 16))
            if index % step or is_skipped(char) or not is_unchanged(char):
                continue
            num_compared += 1
            inside, inside_cased, alone = map(json.loads, results)
            assert lower.tokenize(f"a{char}b") == inside
            assert cased.tokenize(f"A{char}B") == inside_cased
            assert lower.tokenize(char) == alone
            assert normalize(f"a{char}b", True).split() == inside
            assert normalize(f"A{char}B", False).split() == inside_cased
            assert normalize(char, True).split() == alone
    assert num_compared > 40_000 / step
