"""Splits a text into words and punctuation with a few calls that run in C.

The original implementation splits first and then normalizes each word. No step
depends on characters beyond the next whitespace, so here the whole text is
lower-cased and decomposed first and split into words last:

```
text        "Ça coûte 5$, 北京!"
CLEAN       "Ça coûte 5$,  北  京 !"        removes, and isolates Chinese
lower, NFD  "c̦a cou^te 5$,  北  京 !"        (accents drawn as characters)
STRIP       "ca coute 5$,  北  京 !"        removes accents
ISOLATE     "ca coute 5 $  ,   北  京  ! "  isolates punctuation
split       ["ca", "coute", "5", "$", ",", "北", "京", "!"]
```

Lower-casing and removing accents (NFD and STRIP) are optional.
"""

import re
import string
import unicodedata
from collections.abc import Callable

from absl import logging

from official_bert.tokenization import characters
from official_bert.tokenization.settings import TokenizerSettings


class CharacterTable(dict[int, str]):
    """A table for `str.translate` that removes and isolates characters.

    Its entries are computed when they are first used.
    """

    def __init__(
        self, is_removed: Callable[[str], bool], is_word: Callable[[str], bool]
    ):
        super().__init__()
        self.is_removed, self.is_word = is_removed, is_word

    def __missing__(self, codepoint: int) -> str:
        char = chr(codepoint)
        replacement = f" {char} " if self.is_word(char) else char
        self[codepoint] = "" if self.is_removed(char) else replacement
        return self[codepoint]


CLEAN = CharacterTable(characters.is_removed, characters.is_chinese)
CLEAN_ONLY = CharacterTable(characters.is_removed, lambda _: False)
STRIP = CharacterTable(characters.is_nonspacing_mark, lambda _: False)
ISOLATE = CharacterTable(lambda _: False, characters.is_punctuation)
STRIP_AND_ISOLATE = CharacterTable(
    characters.is_nonspacing_mark, characters.is_punctuation
)
_WITHOUT_SIGNS = CharacterTable(characters.has_sign, lambda _: False)

# Texts may quote words in other scripts.
_MAX_SHARE_SIGNS = 0.005

_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ASCII_PUNCTUATION = tuple((char, f" {char} ") for char in string.punctuation)


def normalize(text: str, settings: TokenizerSettings) -> str:
    """Separates the words of a text by whitespace, for `str.split`.

    Chinese has no spaces between words, so every Chinese character becomes a
    word, in models for all languages.
    """
    if text.isascii():
        return _normalize_ascii(text, settings.is_uncased)
    text = _decompose(text, settings)
    is_stripped = settings.strips_accents
    return text.translate(STRIP_AND_ISOLATE if is_stripped else ISOLATE)


def fold(text: str, settings: TokenizerSettings) -> str:
    """Normalizes a text, without separating punctuation.

    Added tokens that are `normalized` are found in this text.
    """
    text = _decompose(text, settings)
    text = text.translate(STRIP) if settings.strips_accents else text
    return re.sub(r"\s", " ", text)


def cleaning_table(settings: TokenizerSettings) -> CharacterTable:
    """Returns the table of the first step."""
    return CLEAN if settings.tokenize_chinese_chars else CLEAN_ONLY


def _decompose(text: str, settings: TokenizerSettings) -> str:
    text = text.translate(cleaning_table(settings))
    if settings.is_uncased:
        text = text.lower()
    if settings.strips_accents:
        text = unicodedata.normalize("NFD", text)
    return text


def warn_of_removed_signs(text: str, settings: TokenizerSettings) -> None:
    """Warns if lower-casing removes signs from many characters of a text.

    For signs see `characters.has_sign`.
    """
    num_signs = len(text) - len(text.translate(_WITHOUT_SIGNS))
    if settings.strips_accents and num_signs > _MAX_SHARE_SIGNS * len(text):
        logging.warning(
            f"Lower-casing also removes vowel signs and similar marks, here "
            f"from {num_signs / len(text):.1%} of all characters, so different "
            "words become equal. Use a cased model, or add --nodo_lower_case "
            "to build_vocab.py and create_pretraining_data.py"
        )


def _normalize_ascii(text: str, do_lower_case: bool) -> str:
    """Does the same as `normalize` for ASCII text, many times faster."""
    if not text.isprintable():
        text = _ASCII_CONTROL.sub("", text)
    if do_lower_case:
        text = text.lower()
    for char, isolated in _ASCII_PUNCTUATION:
        if char in text:
            text = text.replace(char, isolated)
    return text
