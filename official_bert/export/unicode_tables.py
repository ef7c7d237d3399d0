"""How each Unicode character is normalized, as tables in the graph.

The tables are made from `official_bert.tokenization` and `unicodedata`.
`graph_normalizer` does everything that depends on the surrounding characters.
"""

import enum
import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.tokenization import characters
from official_bert.tokenization.settings import TokenizerSettings

NUM_CODE_POINTS = 0x110000
PAGE_BITS = 8
PAGE_SIZE = 2**PAGE_BITS

SIGMA, FINAL_SIGMA = ord("Σ"), ord("ς")


class Kind(enum.IntEnum):
    """How a character affects the words around it.

    From PUNCTUATION on, a character ends the word before it, and a new word
    starts after it.
    """

    LETTER = 0
    MARK = 1  # An accent that is dropped.
    PUNCTUATION = 2  # A word of its own.
    CHINESE = 3  # A word of its own, without the accents that follow it.
    SPACE = 4


class Casing(enum.IntEnum):
    """How a character affects whether a sigma is the last letter of a word."""

    NEITHER = 0
    CASED = 1
    IGNORED = 2  # As if the character were absent.


class PagedTable:
    """A number for every code point, 0 by default; stores equal pages once."""

    def __init__(self, values: dict[int, int]) -> None:
        table = np.zeros(NUM_CODE_POINTS, np.int32)
        table[list(values)] = list(values.values())
        # {page: its start}; `np.unique` of rows takes ten times as long.
        pages: dict[bytes, int] = {}
        starts = [
            pages.setdefault(page.tobytes(), len(pages) * PAGE_SIZE)
            for page in table.reshape(-1, PAGE_SIZE)
        ]
        self._starts = tf.constant(starts, tf.int32)
        self._pages = tf.constant(np.frombuffer(b"".join(pages), np.int32))

    def find(self, points: tf.Tensor) -> tf.Tensor:
        """Returns the numbers of code points; both int32."""
        page = tf.bitwise.right_shift(points, PAGE_BITS)
        index = tf.gather(self._starts, page) + (points & (PAGE_SIZE - 1))
        return tf.gather(self._pages, index)


class UnicodeTables(NamedTuple):
    """How characters are normalized.

    `expansions` are the code points of lower-cased and decomposed characters,
    [] for removed ones. The first, [0], stands for unchanged characters.
    """

    expansion_of: PagedTable  # Indices in `expansions`.
    expansions: tf.RaggedTensor
    kinds: PagedTable  # Values of `Kind`.
    combining: PagedTable  # Canonical combining classes, which order marks.
    casing: PagedTable  # Values of `Casing`.


@functools.cache
def make_tables(settings: TokenizerSettings) -> UnicodeTables:
    """Returns the tables of a tokenizer with these settings."""
    points = [
        point
        for point in range(NUM_CODE_POINTS)
        # The others are letters: unassigned, private use and surrogates.
        if unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs")
        or characters.is_chinese(chr(point))
    ]
    expansion_of: dict[int, int] = {}
    expansions = [[0]]
    for point in points:
        char = chr(point)
        expansion = char
        if characters.is_removed(char):
            expansion = ""
        elif not char.isspace():
            expansion = char.lower() if settings.is_uncased else char
            if settings.strips_accents:
                expansion = unicodedata.normalize("NFD", expansion)
        if expansion != char:
            expansion_of[point] = len(expansions)
            expansions.append(list(map(ord, expansion)))
    stripped = points if settings.strips_accents else []
    uncased = points if settings.is_uncased else []
    return UnicodeTables(
        PagedTable(expansion_of),
        tf.ragged.constant(expansions, tf.int32),
        PagedTable({p: _kind(chr(p), settings) for p in points}),
        PagedTable({p: unicodedata.combining(chr(p)) for p in stripped}),
        PagedTable({p: _casing(chr(p)) for p in uncased}),
    )


def _kind(char: str, settings: TokenizerSettings) -> Kind:
    if char.isspace():
        return Kind.SPACE
    if settings.strips_accents and characters.is_nonspacing_mark(char):
        return Kind.MARK
    if settings.tokenize_chinese_chars and characters.is_chinese(char):
        return Kind.CHINESE
    return Kind.PUNCTUATION if characters.is_punctuation(char) else Kind.LETTER


def _casing(char: str) -> Casing:
    if characters.is_removed(char):
        return Casing.IGNORED
    # `str.lower` shows it: the "Σ" becomes "ς" if the character is cased, or if
    # it is ignored, because an "a" comes before it.
    if not f"a{char}Σ".lower().endswith("ς"):
        return Casing.NEITHER
    is_cased = f"{char}Σ".lower().endswith("ς")
    return Casing.CASED if is_cased else Casing.IGNORED
