"""`Tokenizer` equals `FullTokenizer`, and both equal the original algorithm."""

import itertools
import sys
import unicodedata

import pytest
from support import unpack

from official_bert.tokenization import (
    BasicTokenizer,
    FullTokenizer,
    Tokenizer,
    characters,
)
from official_bert.tokenization.tokenizer import MAX_REMEMBERED_LENGTH


def assert_equals_reference(settings, texts):
    """Checks lists of ids and arrays of ids of all texts."""
    reference, tokenizer = FullTokenizer(*settings), Tokenizer(*settings)
    ids = [
        reference.convert_tokens_to_ids(reference.tokenize(text))
        for text in texts
    ]
    assert list(tokenizer.tokenize_lines_to_ids(texts)) == ids
    encoded = tokenizer.encode_lines(texts)
    assert [a.dtype.name for a in encoded] == ["int32", "int64"]
    assert encoded.ids.tolist() == [*itertools.chain(*ids)]
    row_splits = [0, *itertools.accumulate(map(len, ids))]
    assert encoded.row_splits.tolist() == row_splits


def assigned_characters():
    """Yields blocks of assigned characters, and a few of the others."""
    for start in range(0, sys.maxunicode, 256):
        block = [chr(start + i) for i in range(256)]
        if all(unicodedata.category(char) in ("Cn", "Co") for char in block):
            block = block[:1]
        yield block


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("never_split", [(), ("[MASK]", "a")])
def test_texts_have_the_tokens_of_the_reference(
    odd_vocab, random_texts, do_lower_case, never_split
):
    for texts in (
        random_texts,
        [],
        [""],
        ["", "  ", "\n", "a", "", ""],
        ["ab\na", "\t", "\x00", "a"],
        ["a" * n for n in (64, 65, 200, 201)],
        ["한" * 1000, "a" + "\u0301" * 1000 + "! a"],
        ["[MASK]" * 1000, "a[MASK]a [MASK] [MASK", "MASK]"],
        [b"\xc3\x89\xff!", b""],
    ):
        assert_equals_reference((odd_vocab, do_lower_case, never_split), texts)


def words_by_character(text, do_lower_case):
    """Returns the words of a text as the original makes them."""

    def isolate(text, is_word):
        return "".join(f" {c} " if is_word(c) else c for c in text).split()

    text = "".join(char for char in text if not characters.is_removed(char))
    words = []
    for word in isolate(text, characters.is_chinese):
        if do_lower_case:
            letters = unicodedata.normalize("NFD", word.lower())
            marks = filter(characters.is_nonspacing_mark, letters)
            word = letters.translate({ord(mark): None for mark in marks})
        words += isolate(word, characters.is_punctuation)
    return words


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
    "step", [37, pytest.param(1, marks=pytest.mark.nightly)]
)
def test_words_equal_the_original_algorithm(random_texts, do_lower_case, step):
    tokenize = BasicTokenizer(do_lower_case).tokenize
    texts = [*random_texts]
    for block in assigned_characters():
        texts += block[::step]
        texts.append(" ".join(f"A{char}b" for char in block[::step]))
    for text in texts:
        assert tokenize(text) == words_by_character(text, do_lower_case), text


def test_cache_of_words_is_bounded(odd_vocab, random_texts, monkeypatch):
    module = "official_bert.tokenization.tokenizer"
    monkeypatch.setattr(f"{module}.MAX_ENTRIES", 50)
    tokenizer = Tokenizer(odd_vocab)
    for ids, text in zip(
        tokenizer.tokenize_lines_to_ids(random_texts), random_texts, strict=True
    ):
        tokens = tokenizer.tokenize(text)
        assert tokenizer.convert_tokens_to_ids(tokens) == ids
        assert len(tokenizer._ids_of_word) <= 50


def test_long_words_are_not_cached_and_longer_ones_are_unknown(make_vocab):
    tokenizer = Tokenizer(make_vocab("[UNK]", "a", "##a", "b" * 201))
    for length in (MAX_REMEMBERED_LENGTH + 1, 200):
        [ids] = tokenizer.tokenize_lines_to_ids(["a" * length])
        assert ids == [1] + [2] * (length - 1)
        assert "a" * length not in tokenizer._ids_of_word
    assert [*tokenizer.tokenize_lines_to_ids(["b" * 201])] == [[0]]


def test_ids_of_unknown_words_need_the_token_unk(make_vocab):
    tokenizer = Tokenizer(make_vocab("a", "##b"))
    assert tokenizer.encode_lines(["ab a", "a"]).ids.tolist() == [0, 1, 0, 0]
    for line in ("c", "aa", "!", "中", "Σ"):
        for encode in (tokenizer.encode_lines, tokenizer.tokenize_lines_to_ids):
            with pytest.raises(KeyError, match="UNK"):
                list(encode([line]))
    assert tokenizer.tokenize("c a") == ["[UNK]", "a"]
    empty = Tokenizer(make_vocab())
    assert empty.tokenize("a b") == ["[UNK]", "[UNK]"]
    assert len(empty.encode_lines([" "]).ids) == 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    "vocabulary", ["uncased", "cased", "multi_cased", "chinese"]
)
def test_wikipedia_has_the_tokens_of_the_reference(
    shared_data, tmp_path, vocab_files, vocabulary
):
    unpack(shared_data / "corpora.tar.xz", tmp_path)
    text = (tmp_path / "corpora" / "wikipedia.txt").read_text("utf-8")
    do_lower_case = vocabulary in ("uncased", "chinese")
    settings = vocab_files[vocabulary], do_lower_case
    for never_split in ((), ("[MASK]", "the", "##ing")):
        assert_equals_reference((*settings, never_split), text.split("\n"))
