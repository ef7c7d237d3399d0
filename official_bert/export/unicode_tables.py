"""The treatment of every Unicode character, as tables in the graph.

They are filled from `official_bert.tokenization` and Python's Unicode tables.
What depends on the surrounding characters is done by `graph_normalizer`.
"""

import enum
import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.tokenization import characters

NUM_CODE_POINTS = 0x110000
PAGE_SIZE = 256

SIGMA, FINAL_SIGMA = ord("Σ"), ord("ς")

# An entry is (replacement - code point) * ENTRY + flags + kind. Differences
# make many pages equal, so that few have to be stored.
ENTRY = 16
KIND_BITS = 7
NEEDS_CARE = 8  # The replacement is several characters, or may change places.


class Kind(enum.IntEnum):
    """How a character affects the words around it.

    From PUNCTUATION on, a character ends the word before it, and a new word
    starts after it.
    """

    LETTER = 0
    MARK = 1  # An accent that is dropped.
    REMOVED = 2  # Treated as if it were not in the text.
    PUNCTUATION = 3  # A word of its own.
    CHINESE = 4  # A word of its own, to which following accents do not belong.
    SPACE = 5


class Casing(enum.IntEnum):
    """How a character affects whether a sigma is the last letter of a word."""

    NEITHER = 0
    CASED = 1
    IGNORED = 2  # The next character decides.


class PagedTable:
    """A number for every code point, 0 by default; equal pages are one."""

    def __init__(self, values: dict[int, int]) -> None:
        table = np.zeros(NUM_CODE_POINTS, np.int32)
        table[list(values)] = list(values.values())
        pages, page_of = np.unique(
            table.reshape(-1, PAGE_SIZE), axis=0, return_inverse=True
        )
        self._page_of = tf.constant(page_of.reshape(-1), tf.int32)
        self._pages = tf.constant(pages.reshape(-1))

    def find(self, points: tf.Tensor) -> tf.Tensor:
        """Returns the numbers of code points; both int32."""
        pages = tf.gather(self._page_of, points // PAGE_SIZE)
        return tf.gather(self._pages, pages * PAGE_SIZE + points % PAGE_SIZE)


class UnicodeTables(NamedTuple):
    """How characters are normalized.

    `expansions` are the lower-cased and decomposed characters of those that
    change, as code point * ENTRY + kind; the first stands for all others.
    """

    do_lower_case: bool  # If False, only `entries` is used, and has kinds.
    entries: PagedTable  # See `ENTRY`.
    expansion_of: PagedTable  # Indices in `expansions`.
    expansions: tf.RaggedTensor
    combining: PagedTable  # Canonical combining classes, which order marks.
    casing: PagedTable  # Of `Casing`.


@functools.cache
def make_tables(do_lower_case: bool) -> UnicodeTables:
    """Returns the tables of uncased or cased models."""
    points = [
        point
        for point in range(NUM_CODE_POINTS)
        # All others are letters: unassigned, private use and surrogates.
        if unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs")
        or characters.is_chinese(chr(point))
    ]
    entries: dict[int, int] = {}
    expansion_of: dict[int, int] = {}
    expansions = [[0]]
    for point in points:
        char = chr(point)
        kind = _kind(char)
        if not do_lower_case or kind in (Kind.REMOVED, Kind.SPACE):
            entries[point] = kind
            continue
        parts = unicodedata.normalize("NFD", char.lower())
        kinds = [
            Kind.MARK if characters.is_nonspacing_mark(part) else _kind(part)
            for part in parts
        ]
        entries[point] = (ord(parts[0]) - point) * ENTRY + kinds[0]
        if not _is_first_enough(parts):
            entries[point] |= NEEDS_CARE
        if parts != char:
            expansion_of[point] = len(expansions)
            pairs = zip(parts, kinds, strict=True)
            expansions.append([ord(part) * ENTRY + k for part, k in pairs])
    changing = points if do_lower_case else []
    return UnicodeTables(
        do_lower_case,
        PagedTable(entries),
        PagedTable(expansion_of),
        tf.ragged.constant(expansions, tf.int32),
        PagedTable({p: unicodedata.combining(chr(p)) for p in changing}),
        PagedTable({p: _casing(chr(p)) for p in changing}),
    )


def _kind(char: str) -> Kind:
    if characters.is_removed(char):
        return Kind.REMOVED
    if char.isspace():
        return Kind.SPACE
    if characters.is_chinese(char):
        return Kind.CHINESE
    return Kind.PUNCTUATION if characters.is_punctuation(char) else Kind.LETTER


def _is_first_enough(parts: str) -> bool:
    """Whether all parts but the first are dropped, and none can move."""
    kept = [p for p in parts if not characters.is_nonspacing_mark(p)]
    if not kept:
        return len(parts) == 1
    return kept == [parts[0]] and not unicodedata.combining(kept[0])


def _casing(char: str) -> Casing:
    # `str.lower` decides. If it ignores the character, it looks at the "a".
    if not f"a{char}Σ".lower().endswith("ς"):
        return Casing.NEITHER
    is_cased = f"{char}Σ".lower().endswith("ς")
    return Casing.CASED if is_cased else Casing.IGNORED
