"""The original's tokenizers and the vocabulary, on readable examples."""

import base64
import json
import re

import pytest
from support.recorded import EXTRACT

from official_bert import tokenization
from official_bert.errors import InputError
from official_bert.tokenization import FullTokenizer, characters, load_vocab

EXTRACTS = json.loads((EXTRACT / "tokenization.json").read_text())
VOCAB_FILES = EXTRACTS["vocab_edge"]


@pytest.mark.parametrize(
    ("limit", "text", "tokens"),
    [
        (200, "typewriters type", "type ##writer ##s type"),
        # "##writ" leaves "ing", and there is no backtracking to "ty ##pe".
        (200, "typewriting", "?"),
        (3, "aaaa a b aaaaa", "? a ? ?"),
        (4, "aaaa a b aaaaa", "a ##a ##a ##a a ? ?"),
        (5, "aaaa a b aaaaa", "a ##a ##a ##a a ? a ##a ##a ##a ##a"),
        (200, "", ""),
    ],
)
def test_words_are_split_into_the_longest_tokens(limit, text, tokens):
    vocab = ["type", "ty", "##writer", "##writ", "##s", "##pe", "a", "##a"]
    tokenizer = tokenization.WordpieceTokenizer(vocab, "?", limit)
    assert tokenizer.tokenize(text) == tokens.split()


def test_defaults_are_those_of_the_original(make_vocab):
    tokenizer = FullTokenizer(make_vocab("[UNK]", "a", "##a"))
    assert tokenizer.tokenize("A" * 200) == ["a"] + ["##a"] * 199
    assert tokenizer.tokenize("A" * 201) == ["[UNK]"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a [MASK].", ["a", "[MASK]", "."]),
        ("A[MASK]a", ["a", "[MASK]", "a"]),
        ("[MASK][MASK]", ["[MASK]", "[MASK]"]),
        ("[MASK]S", ["[MASK]S"]),
        ("[mask]", ["[UNK]", "[UNK]", "[UNK]"]),
    ],
)
def test_never_split_tokens_are_kept_whole(make_vocab, text, tokens):
    vocab_file = make_vocab("[UNK]", "[MASK]", "[MASK]S", "a", ".")
    tokenizer = FullTokenizer(vocab_file, never_split=("[MASK]", "[MASK]S"))
    assert tokenizer.tokenize(text) == tokens
    assert "[MASK]" not in FullTokenizer(vocab_file).tokenize("a [MASK].")


@pytest.mark.parametrize(
    ("tokens", "received"),
    [
        ("[MASK]", "'[MASK]'. Pass a tuple"),
        (("",), "('',)"),
        (("a b",), "('a b',)"),
        ((" a",), "(' a',)"),
        (("[MASK]", "a"), "[MASK], which"),
    ],
)
def test_never_split_must_be_known_tokens(make_vocab, tokens, received):
    message = f"`never_split`.*Received: {re.escape(received)}"
    with pytest.raises(InputError, match=message):
        FullTokenizer(make_vocab("a", "b"), never_split=tokens)


UNSUPPORTED = r"^Unsupported string type: <class 'int'>$"


@pytest.mark.parametrize(
    "convert", [tokenization.convert_to_unicode, tokenization.printable_text]
)
def test_invalid_bytes_are_dropped(convert):
    assert convert("abé") == "abé"
    assert convert(b"a\xffb\xc3\xa9\xc3") == "abé"
    with pytest.raises(ValueError, match=UNSUPPORTED):
        convert(3)


def test_whitespace_is_that_of_str_split():
    text = "\n a\tb\u3000c\x1cd\u200be "
    assert tokenization.whitespace_tokenize(text) == ["a", "b", "c", "d\u200be"]
    assert tokenization.whitespace_tokenize(" ") == []


@pytest.mark.parametrize(
    ("is_in_class", "members", "others"),
    [
        (
            characters.is_removed,
            "\0\x0b\x85\xad\ufffd\u200b\u200d\ufeff",
            " \t\n\r\xa0\u2028\u3000A-\ufffc\ud800\ue000\U000e0fff",
        ),
        (characters.is_punctuation, "!/:@[`{~$^—。¿", "a0 €≤\x7f"),
        (characters.is_chinese, "一㐀豈\U00020000\U0002ceaf", "가ハ\U0002ceb0"),
        (characters.is_nonspacing_mark, "\u0301\u0e31", "é`^\u0903"),
    ],
)
def test_characters_have_the_original_classes(is_in_class, members, others):
    assert [char for char in members if not is_in_class(char)] == []
    assert [char for char in others if is_in_class(char)] == []


@pytest.mark.parametrize("name", ["bert_tiny_demo", "{folder}"])
def test_model_in_place_of_a_vocabulary_is_an_error(tmp_path, name):
    with pytest.raises(InputError, match=r"`from_pretrained\(name\)`"):
        FullTokenizer(name.format(folder=tmp_path))


@pytest.mark.parametrize("name", VOCAB_FILES)
def test_unusual_vocabulary_files_are_read_as_in_the_original(tmp_path, name):
    path = tmp_path / "vocab.txt"
    path.write_bytes(base64.b64decode(VOCAB_FILES[name]["b64"]))
    expected = VOCAB_FILES[name]["load_vocab"]
    if expected is None:
        with pytest.raises(InputError, match=r"vocab\.txt:2: .* UTF-8"):
            load_vocab(str(path))
        return
    assert list(map(list, load_vocab(str(path)).items())) == expected
    inverse = FullTokenizer(str(path)).inv_vocab
    assert [[token, i] for i, token in inverse.items()] == expected


def test_tokens_and_ids_are_converted_to_each_other(make_vocab):
    vocab, tokens = {"[UNK]": 0, "a": 1}, {0: "[UNK]", 1: "a"}
    ids = tokenization.convert_tokens_to_ids(vocab, ["a", "[UNK]", "a"])
    assert ids == [1, 0, 1]
    assert tokenization.convert_ids_to_tokens(tokens, [1, 0]) == ["a", "[UNK]"]
    assert tokenization.convert_by_vocab(vocab, []) == []
    tokenizer = FullTokenizer(make_vocab(*vocab))
    assert tokenizer.vocab == vocab
    assert tokenizer.convert_tokens_to_ids(["a"]) == [1]
    assert tokenizer.convert_ids_to_tokens([0]) == ["[UNK]"]
    with pytest.raises(KeyError, match="'b'"):
        tokenization.convert_tokens_to_ids(vocab, ["a", "b"])
    with pytest.raises(TypeError, match=r"`tokens` must be a list, .*'a'"):
        tokenization.convert_tokens_to_ids(vocab, "a")
    with pytest.raises(KeyError, match="7"):
        tokenization.convert_ids_to_tokens(tokens, [7])
