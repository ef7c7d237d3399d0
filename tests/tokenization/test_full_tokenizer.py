"""The reference tokenizer, step by step, on examples that can be read."""

import pytest

from official_bert.errors import InputError
from official_bert.tokenization import (
    BasicTokenizer,
    BatchTokenizer,
    FullTokenizer,
    WordpieceTokenizer,
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \u200b \u0301 ", []),
        ("Ça coûte 5$, 北京!", ["ca", "coute", "5", "$", ",", "北", "京", "!"]),
        ("a\u200b\x0b\u00adb", ["ab"]),
        ("a\u2028b\u3000c", ["a", "b", "c"]),
        ("ΟΔΟΣ ΣΑΣ.", ["οδος", "σας", "."]),
        ("İ \u2260 \u212a", ["i", "=", "k"]),
        ("한국", ["\u1112\u1161\u11ab\u1100\u116e\u11a8"]),
        ("[MASK]", ["[", "mask", "]"]),
        (b"caf\xc3\xa9\xff", ["cafe"]),
    ],
)
def test_lower_cased_words(text, words):
    assert BasicTokenizer().tokenize(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ça coûte", ["Ça", "coûte"]),
        ("한국", ["한국"]),
        ("e\u0301—X", ["e\u0301", "—", "X"]),
        ("漢A字", ["漢", "A", "字"]),
    ],
)
def test_cased_words(text, words):
    assert BasicTokenizer(do_lower_case=False).tokenize(text) == words


def test_the_longest_piece_is_taken_first():
    vocab = ["[UNK]", "type", "ty", "##writer", "##writ", "##s", "##pe"]
    tokenize = WordpieceTokenizer(vocab).tokenize
    assert tokenize("typewriters type") == ["type", "##writer", "##s", "type"]
    # "##writ" would leave "ing", and there is no going back to "ty ##pe".
    assert tokenize("typewriting") == ["[UNK]"]
    assert tokenize("") == []


def test_long_words_are_unknown():
    vocab = {"a": 0, "##a": 1}

    def tokenize(limit):
        tokenizer = WordpieceTokenizer(
            vocab, unk_token="<unk>", max_input_chars_per_word=limit
        )
        return tokenizer.tokenize("aaaa a b aaaaa")

    four, five = ["a"] + ["##a"] * 3, ["a"] + ["##a"] * 4
    assert tokenize(3) == ["<unk>", "a", "<unk>", "<unk>"]
    assert tokenize(4) == [*four, "a", "<unk>", "<unk>"]
    assert tokenize(200) == [*four, "a", "<unk>", *five]


def test_defaults(make_vocab):
    tokenizer = FullTokenizer(make_vocab("[UNK]", "a", "##a"))
    assert tokenizer.basic_tokenizer.do_lower_case
    assert tokenizer.wordpiece_tokenizer.unk_token == "[UNK]"
    assert tokenizer.tokenize("A" * 200) == ["a"] + ["##a"] * 199
    assert tokenizer.tokenize("A" * 201) == ["[UNK]"]


@pytest.mark.parametrize("engine", [FullTokenizer, BatchTokenizer])
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a [MASK].", ["a", "[MASK]", "."]),
        ("A[MASK]a", ["a", "[MASK]", "a"]),
        ("[MASK][MASK]", ["[MASK]", "[MASK]"]),
        ("[MASK]S", ["[MASK]S"]),
        ("[mask]", ["[UNK]", "[UNK]", "[UNK]"]),
    ],
)
def test_never_split(make_vocab, engine, text, pieces):
    vocab_file = make_vocab("[UNK]", "[MASK]", "[MASK]S", "a", ".")
    kept = ("[MASK]", "[MASK]S")
    tokenizer = engine(vocab_file, never_split=kept)
    assert tokenizer.tokenize(text) == pieces
    assert "[MASK]" not in engine(vocab_file).tokenize("a [MASK].")


@pytest.mark.parametrize("tokens", ["[MASK]", ("",), ("a b",), (" a",)])
def test_never_split_must_be_tokens(tokens):
    with pytest.raises(InputError, match="sequence of tokens"):
        BasicTokenizer(never_split=tokens)


def test_never_split_must_be_in_the_vocabulary(make_vocab):
    with pytest.raises(InputError, match=r"Received: \[MASK\], which"):
        FullTokenizer(make_vocab("a", "b"), never_split=("[MASK]", "a"))
