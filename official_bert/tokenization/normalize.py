"""`BasicTokenizer` for whole strings at once, in a few calls that run in C.

Nothing that `BasicTokenizer` does to a character depends on what stands beyond
the next whitespace. So a text can be cleaned, lower-cased and decomposed as one
string, and a text cut at whitespace can be normalised chunk by chunk:

```
"Ça  coûte\\u200b 5$, 北京!"
 ["Ça", "coûte\\u200b", "5$,", "北京!"]             chunks
 ["ca", "coute", "5 $  , ", " 北  京  ! "]          normalize, one by one
```
"""

import re
import unicodedata
from collections.abc import Callable

from official_bert.tokenization import characters

# What stands between chunks, as a set of characters. It is `str.isspace` less
# the control characters of which `str.split` thinks that they separate words
# (VT, FF, U+001C to U+001F, U+0085): those are removed, not split at.
_SPACES = "\t\n\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
CHUNK = re.compile(f"[^{_SPACES}]+")


class _CharacterTable(dict[int, str | None]):
    """What `str.translate` puts in place of a character.

    It fills itself with the characters that turn up; there are few enough in
    Unicode to keep them all.

    Args:
        replace: Returns the replacement of a character, None to drop it.
    """

    def __init__(self, replace: Callable[[str], str | None]):
        super().__init__()
        self.replace = replace

    def __missing__(self, codepoint: int) -> str | None:
        replacement = self[codepoint] = self.replace(chr(codepoint))
        return replacement


def _clean(char: str) -> str | None:
    if characters.is_removed(char):
        return None
    if characters.is_whitespace(char):
        return " "
    return f" {char} " if characters.is_chinese(char) else char


def _isolate(char: str) -> str:
    return f" {char} " if characters.is_punctuation(char) else char


def _strip_or_isolate(char: str) -> str | None:
    return None if characters.is_nonspacing_mark(char) else _isolate(char)


_CLEAN = _CharacterTable(_clean)
_ISOLATE = _CharacterTable(_isolate)
_STRIP_OR_ISOLATE = _CharacterTable(_strip_or_isolate)


def split_chunks(text: str) -> list[str]:
    """Cuts a text at whitespace, and leaves it otherwise as it is."""
    # `str.split` is much faster than the pattern, and does the same unless one
    # of the control characters occurs, none of which is printable.
    return text.split() if text.isprintable() else CHUNK.findall(text)


def normalize(text: str, do_lower_case: bool) -> str:
    """Returns the words of `BasicTokenizer`, with spaces between them.

    Args:
        text: Any string.
        do_lower_case: Whether to lower-case it and to drop its accents.

    Returns:
        A string whose `split()` is `BasicTokenizer(do_lower_case).tokenize`.
    """
    text = text.translate(_CLEAN)
    if not do_lower_case:
        return text.translate(_ISOLATE)
    text = unicodedata.normalize("NFD", text.lower())
    return text.translate(_STRIP_OR_ISOLATE)
