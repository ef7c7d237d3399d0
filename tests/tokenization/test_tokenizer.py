"""`Tokenizer` equals `FullTokenizer`.

`test_recorded_tokens.py` compares both with the original implementation.
"""

import itertools

import pytest

from official_bert.tokenization import FullTokenizer, Tokenizer
from official_bert.tokenization.tokenizer import MAX_REMEMBERED_LENGTH


def assert_equals_reference(settings, texts):
    reference, tokenizer = FullTokenizer(*settings), Tokenizer(*settings)
    tokens = map(reference.tokenize, texts)
    ids = list(map(reference.convert_tokens_to_ids, tokens))
    assert list(tokenizer.tokenize_lines_to_ids(texts)) == ids
    encoded = tokenizer.encode_lines(texts)
    assert [a.dtype.name for a in encoded] == ["int32", "int64"]
    assert encoded.ids.tolist() == [*itertools.chain(*ids)]
    row_splits = [0, *itertools.accumulate(map(len, ids))]
    assert encoded.row_splits.tolist() == row_splits


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
