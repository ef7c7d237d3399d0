"""Maps the characters of a normalized text to the original text.

```
original    Ç  a  ZWJ  !       four characters; ZWJ is invisible
normalized  c  a  _  !  _      _ is a space that isolates "!"
spans       01 12    34        "c" is original[0:1], "!" is original[3:4]
```

* If a character becomes several, such as a Hangul syllable, each of them has
  its span.
* A stripped accent is in the span of the character before it in the same word.
* Decomposition sorts the marks that follow a character. If that reorders them,
  the character and its marks all share one span.
* A removed character, such as ZWJ, has no span. If it is between two characters
  of a token, the span of the token includes it.

So from one span to the next, neither the start nor the end decreases.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from official_bert.tokenization import characters
from official_bert.tokenization.normalize import (
    CLEAN,
    ISOLATE_CASED,
    ISOLATE_UNCASED,
    CharacterTable,
)

Span = tuple[int, int]
Aligned = tuple[str, list[Span]]

# Text between whitespace. VT, FF, U+001C to U+001F and U+0085, which Python
# treats as whitespace, are removed before the text is split.
CHUNK = re.compile(r"(?:\S|[\v\f\x1c-\x1f\x85])+")


def align(text: str, offset: int, do_lower_case: bool) -> Iterator[Aligned]:
    """Yields the words of `normalize`, with the spans of their characters.

    `offset` is the position of the first character.
    """
    for chunk in CHUNK.finditer(text):
        start, end = offset + chunk.start(), offset + chunk.end()
        spans = [(place, place + 1) for place in range(start, end)]
        normalized, spans = _normalize(chunk.group(), spans, do_lower_case)
        for word in re.finditer(r"\S+", normalized):
            yield word.group(), spans[word.start() : word.end()]


def _normalize(text: str, spans: list[Span], do_lower_case: bool) -> Aligned:
    if text.isascii() and text.isalnum():  # Most words: only case may change.
        return text.lower() if do_lower_case else text, spans
    text, spans = _translate(text, spans, CLEAN)
    if not do_lower_case:
        return _translate(text, spans, ISOLATE_CASED)
    # The lower case of a sigma depends on whether it ends a word, so the text
    # is lower-cased as a whole. Lengths do not depend on the context.
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
    """Repeats the span of a character for all characters that replace it."""
    pairs = zip(replacements, spans, strict=True)
    return [span for replacement, span in pairs for _ in replacement]


def _join_marks(
    text: str, spans: list[Span], is_mark: Callable[[str], bool]
) -> list[Span]:
    """Merges the spans of a character and the marks that follow it."""
    joined: list[Span] = []
    start = 0
    for end in range(1, len(text) + 1):
        following = text[end : end + 1] or " "
        if text[end - 1].isspace() or not is_mark(following):
            span = spans[start][0], spans[end - 1][1]
            joined += [span] * (end - start)
            start = end
    return joined


def _is_any_mark(char: str) -> bool:
    # A character with a combining class may move even if it is not stripped.
    is_moved = unicodedata.combining(char) > 0
    return is_moved or characters.is_nonspacing_mark(char)
