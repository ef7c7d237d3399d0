"""Where in the original text the characters of a normalised one come from.

```
original    Ç  a  ZWJ  !       four characters; ZWJ is invisible
normalised  c  a  _  !  _      and the spaces that set "!" apart
spans       01 12    34        "c" is original[0:1], "!" is original[3:4]
```

These rules hold:

* A character that becomes several, such as a Hangul syllable, is the span of
  each of them.
* An accent that is dropped belongs to the character before it in the same
  word, and is in that character's span.
* Decomposing puts the marks that follow a character in order. Where that makes
  them change places, they all share the span of that character and themselves.
* A removed character, such as ZWJ, belongs to none. Between the characters of
  a piece it is inside the piece's span, otherwise it is outside of all spans.

Spans therefore never run backwards: neither starts nor ends decrease.
"""

import unicodedata
from collections.abc import Callable, Iterable

from official_bert.tokenization import characters
from official_bert.tokenization.normalize import (
    CLEAN,
    ISOLATE_CASED,
    ISOLATE_UNCASED,
    CharacterTable,
)

Span = tuple[int, int]
Aligned = tuple[str, list[Span]]


def align(text: str, do_lower_case: bool) -> Aligned:
    """Does what `normalize.normalize` does, and keeps track of characters.

    Args:
        text: Any string.
        do_lower_case: Whether to lower-case it and to drop its accents.

    Returns:
        A string with the words of `normalize`, and for each character in it the
        span (start, end) of `text` that it comes from. The spans of whitespace
        have no meaning.
    """
    spans = [(index, index + 1) for index in range(len(text))]
    if text.isascii() and text.isalnum():  # Most words: only case may change.
        return text.lower() if do_lower_case else text, spans
    text, spans = _translate(text, spans, CLEAN)
    if not do_lower_case:
        return _translate(text, spans, ISOLATE_CASED)
    if text.isascii():  # Nothing changes its length, and nothing is dropped.
        return _translate(text.lower(), spans, ISOLATE_CASED)
    # A sigma looks around to see whether it ends a word, so that the text has
    # to be lower-cased as a whole; the lengths are those of single characters.
    spans = _spread(spans, map(str.lower, text))
    text = text.lower()
    parts = [unicodedata.normalize("NFD", char) for char in text]
    spans = _spread(spans, parts)
    text = unicodedata.normalize("NFD", text)
    is_in_order = text == "".join(parts)
    is_mark = characters.is_nonspacing_mark if is_in_order else _is_any_mark
    spans = _join_marks(text, spans, is_mark)
    return _translate(text, spans, ISOLATE_UNCASED)


def _translate(text: str, spans: list[Span], table: CharacterTable) -> Aligned:
    replacements = (table[ord(char)] for char in text)
    return text.translate(table), _spread(spans, replacements)


def _spread(spans: list[Span], replacements: Iterable[str]) -> list[Span]:
    """Gives the span of a character to all characters that replace it."""
    pairs = zip(replacements, spans, strict=True)
    return [span for replacement, span in pairs for _ in replacement]


def _join_marks(
    text: str, spans: list[Span], is_mark: Callable[[str], bool]
) -> list[Span]:
    """Gives a character and the marks that follow it their common span."""
    joined: list[Span] = []
    start = 0
    for end in range(1, len(text) + 1):
        is_continued = (
            end < len(text)
            and is_mark(text[end])
            and not text[end - 1].isspace()
        )
        if not is_continued:
            span = spans[start][0], spans[end - 1][1]
            joined += [span] * (end - start)
            start = end
    return joined


def _is_any_mark(char: str) -> bool:
    # What has a combining class may move, also if it is not dropped.
    is_moved = unicodedata.combining(char) > 0
    return is_moved or characters.is_nonspacing_mark(char)
