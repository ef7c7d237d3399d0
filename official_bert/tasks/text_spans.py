"""Texts with spans: their words, and the tags of the words in spans."""

from typing import Any

from official_bert.io.rows import Row
from official_bert.tasks.conll import Sentence
from official_bert.tokenization import BasicTokenizer, alignment

# The keys of a span that is an object: its start, its end and its type.
_SPAN_KEYS = (
    ("start", "start_offset"),
    ("end", "end_offset"),
    ("label", "labels", "type"),
)


def split_text(text: str, splitter: BasicTokenizer) -> Sentence:
    """Splits a text into words, but keeps its spelling."""
    aligned = alignment.align(text, splitter)
    offsets = [(spans[0][0], spans[-1][1]) for _, spans, _ in aligned]
    words = [text[start:end] for start, end in offsets]
    return Sentence(words, None, words, text=text, offsets=offsets)


def tags_of_spans(
    row: Row, column: str, sentence: Sentence, problems: list[str]
) -> list[str]:
    """Returns the tags of the words in spans.

    A span is extended to whole words. It is omitted if it has no words, or a
    word that already has a tag.
    """
    cell, text, offsets = row.get(column), sentence.text, sentence.offsets
    values = cell if isinstance(cell, list) else [cell]
    spans = [_span(row, column, value, text) for value in values]
    tags = ["O"] * len(offsets)
    for start, end, name in sorted(spans, key=lambda s: (s[0], -s[1])):
        shown = f"{row.where}: {text[start:end]!r} ({name})"
        inside = [
            i for i, (a, b) in enumerate(offsets) if a < end and start < b
        ]
        if not inside or any(tags[i] != "O" for i in inside):
            problems.append(f"{shown} is omitted")
            continue
        first, last = inside[0], inside[-1]
        found = text[offsets[first][0] : offsets[last][1]]
        if found != text[start:end].strip():
            problems.append(f"{shown} becomes {found!r}")
        tags[first : last + 1] = [f"B-{name}"] + [f"I-{name}"] * (last - first)
    return tags


def _span(row: Row, column: str, value: Any, text: str) -> tuple[int, int, str]:
    """Returns start, end (exclusive) and type of a list or an object."""
    parts = value
    if isinstance(value, dict):
        parts = [
            next((value[key] for key in keys if key in value), None)
            for keys in _SPAN_KEYS
        ]
    match parts:
        case [int(start), int(end), str(name) | [str(name)]] if name:
            shown = text[start:end]
            is_same = parts is value or value.get("text", shown) == shown
            if 0 <= start < end <= len(text) and is_same:
                return start, end, name
    must = (
        'have spans such as [0, 3, "PER"]: start, end (exclusive) and type. '
        f"Positions count the {len(text)} characters of the text"
    )
    if max(text, default="") > "\uffff":
        must += " (in JavaScript, an emoji counts as two)"
    raise row.error(column, must, value)
