"""`BasicTokenizer` for a whole string at once, in a few calls that run in C.

Nothing that `BasicTokenizer` does to a word depends on what stands beyond the
next whitespace. So a text need not be cut into words before it is lower-cased
and decomposed, and the cuts may wait until the end:

```
text        "Ça coûte 5$, 北京!"
CLEAN       "Ça coûte 5$,  北  京 !"        removes, and isolates Chinese
lower, NFD  "c̦a cou^te 5$,  北  京 !"        (the accents drawn as characters)
ISOLATE     "ca coute 5 $  ,   北  京  ! "  drops accents, isolates punctuation
split       ["ca", "coute", "5", "$", ",", "北", "京", "!"]
```
"""

import re
import string
import unicodedata
from collections.abc import Callable

from official_bert.tokenization import characters


class CharacterTable(dict[int, str]):
    """What `str.translate` puts in place of each character.

    It fills itself with the characters that turn up; there are few enough in
    Unicode to keep them all.

    Args:
        replace: Returns the string that takes a character's place.
    """

    def __init__(self, replace: Callable[[str], str]):
        super().__init__()
        self.replace = replace

    def __missing__(self, codepoint: int) -> str:
        replacement = self[codepoint] = self.replace(chr(codepoint))
        return replacement


def _clean(char: str) -> str:
    # Whitespace may stay as it is, because all of it is split at later.
    if characters.is_removed(char):
        return ""
    return f" {char} " if characters.is_chinese(char) else char


def _isolate(char: str) -> str:
    return f" {char} " if characters.is_punctuation(char) else char


def _strip_or_isolate(char: str) -> str:
    return "" if characters.is_nonspacing_mark(char) else _isolate(char)


CLEAN = CharacterTable(_clean)
ISOLATE_CASED = CharacterTable(_isolate)
ISOLATE_UNCASED = CharacterTable(_strip_or_isolate)

_ASCII_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ASCII_PUNCTUATION = tuple((char, f" {char} ") for char in string.punctuation)


def normalize(text: str, do_lower_case: bool) -> str:
    """Returns the words of `BasicTokenizer`, with whitespace between them.

    Args:
        text: Any string.
        do_lower_case: Whether to lower-case it and to drop its accents.

    Returns:
        A string whose `split()` is `BasicTokenizer(do_lower_case).tokenize`.
    """
    if text.isascii():
        return _normalize_ascii(text, do_lower_case)
    text = text.translate(CLEAN)
    if not do_lower_case:
        return text.translate(ISOLATE_CASED)
    text = unicodedata.normalize("NFD", text.lower())
    return text.translate(ISOLATE_UNCASED)


def _normalize_ascii(text: str, do_lower_case: bool) -> str:
    """The same for text without accents, many times faster."""
    if not text.isprintable():
        text = _ASCII_CONTROL.sub("", text)
    if do_lower_case:
        text = text.lower()
    for char, isolated in _ASCII_PUNCTUATION:
        if char in text:
            text = text.replace(char, isolated)
    return text
