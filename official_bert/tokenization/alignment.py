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

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from official_bert.tokenization import characters
from official_bert.tokenization.normalize import (
    ISOLATE,
    STRIP,
    CharacterTable,
    cleaning_table,
)
from official_bert.tokenization.settings import TokenizerSettings

if TYPE_CHECKING:
    from official_bert.tokenization.full_tokenizer import BasicTokenizer

Span = tuple[int, int]
Aligned = tuple[str, list[Span]]

# Text between whitespace. VT, FF, U+001C to U+001F and U+0085, which Python
# treats as whitespace, are removed before the text is split.
CHUNK = re.compile(r"(?:\S|[\v\f\x1c-\x1f\x85])+")
_CHUNK_OR_SPACE = re.compile(rf"({CHUNK.pattern})|\s")


def align(
    text: str, tokenizer: BasicTokenizer
) -> Iterator[tuple[str, list[Span], bool]]:
    """Yields the words of `BasicTokenizer`, with the spans of their characters.

    The third value says whether the word is an added token, with one span.
    """
    for start, end, token in tokenizer.in_text.split(text):
        if token:
            yield token.content, [(start, end)], True
            continue
        folded, spans = _fold(text, start, end, tokenizer.settings)
        for first, last, token in tokenizer.in_normalized.split(folded):
            part, part_spans = folded[first:last], spans[first:last]
            if token:
                span = part_spans[0][0], part_spans[-1][1]
                yield token.content, [span], True
                continue
            words, spans_of = _translate(part, part_spans, ISOLATE)
            for word in re.finditer(r"\S+", words):
                yield word.group(), spans_of[word.start() : word.end()], False


def _fold(
    text: str, start: int, end: int, settings: TokenizerSettings
) -> Aligned:
    """Returns what `normalize.fold` makes of `text[start:end]`."""
    parts: list[str] = []
    spans: list[Span] = []
    for chunk in _CHUNK_OR_SPACE.finditer(text, start, end):
        part, part_spans = " ", [(n, n + 1) for n in range(*chunk.span())]
        if chunk[1]:
            part, part_spans = _fold_chunk(chunk[1], part_spans, settings)
        parts.append(part)
        spans += part_spans
    return "".join(parts), spans


def _fold_chunk(
    text: str, spans: list[Span], settings: TokenizerSettings
) -> Aligned:
    if text.isascii() and text.isalnum():  # Most words: only case may change.
        return text.lower() if settings.is_uncased else text, spans
    text, spans = _translate(text, spans, cleaning_table(settings))
    if settings.is_uncased:
        # The lower case of a sigma depends on whether it ends a word, so the
        # text is lower-cased as a whole. Lengths do not depend on the context.
        spans = _spread(spans, map(str.lower, text))
        text = text.lower()
    if not settings.strips_accents:
        return text, spans
    parts = [unicodedata.normalize("NFD", char) for char in text]
    spans = _spread(spans, parts)
    text = unicodedata.normalize("NFD", text)
    is_in_order = text == "".join(parts)
    is_mark = characters.is_nonspacing_mark if is_in_order else _is_any_mark
    return _translate(text, _join_marks(text, spans, is_mark), STRIP)


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
