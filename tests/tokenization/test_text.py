"""Strings, and the kinds of characters in them."""

import pytest

from official_bert.tokenization import (
    characters,
    convert_to_unicode,
    printable_text,
    whitespace_tokenize,
)


@pytest.mark.parametrize("convert", [convert_to_unicode, printable_text])
def test_bytes_are_decoded_and_damage_left_out(convert):
    assert convert("abé") == "abé"
    assert convert(b"a\xffb\xc3\xa9\xc3") == "abé"
    with pytest.raises(
        ValueError, match=r"^Unsupported string type: <class 'int'>$"
    ):
        convert(3)


def test_whitespace_is_what_python_thinks_it_is():
    text = "\n a\tb\u3000c\x1cd\u200be "
    assert whitespace_tokenize(text) == ["a", "b", "c", "d\u200be"]
    assert whitespace_tokenize(" ") == []


@pytest.mark.parametrize(
    ("is_kind", "yes", "no"),
    [
        (characters.is_whitespace, " \t\n\r\xa0\u3000", "a\x0b\u2028\u200b-"),
        (characters.is_control, "\0\x0b\x85\xad\u200d\ufeff", "\t\n\rA\ue000"),
        (characters.is_removed, "\0\ufffd\u200b", " \n\ufffc\ud800\U000e0fff"),
        (characters.is_punctuation, "!/:@[`{~$^—。¿", "a0 €≤\x7f"),
        (
            characters.is_chinese,
            "一㐀豈\U00020000\U0002ceaf",
            "かハ가\U0002ceb0",
        ),
        (characters.is_nonspacing_mark, "\u0301\u0e31", "é`^\u0903"),
    ],
)
def test_kinds_of_characters(is_kind, yes, no):
    assert [char for char in yes if not is_kind(char)] == []
    assert [char for char in no if is_kind(char)] == []
