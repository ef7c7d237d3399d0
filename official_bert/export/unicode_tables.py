"""The treatment of every character of Unicode, as arrays.

The arrays are filled from `official_bert.tokenization` and Python's Unicode
tables, one character at a time. What depends on the characters around one
(sigmas that may end a word, characters that become several, marks that change
places) is only flagged here and done by `graph_normalizer`.
"""

import enum
import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.tokenization import characters

NUM_CODE_POINTS = 0x110000
PAGE_SIZE = 256

SIGMA, FINAL_SIGMA = ord("Σ"), ord("ς")

# An entry is (replacement - code point) * ENTRY + flags + kind. Differences
# make many pages equal, so that few have to be stored.
ENTRY = 16
KIND_BITS = 7
NEEDS_CARE = 8  # The entry does not describe all that becomes of it.


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


class PagedTable(NamedTuple):
    """A number for every code point, in pages; equal pages are stored once."""

    page_of: npt.NDArray[np.int32]  # [NUM_CODE_POINTS / PAGE_SIZE]
    pages: npt.NDArray[np.int32]  # [number of pages * PAGE_SIZE]


class UncasedTables(NamedTuple):
    """Lower-casing and removal of accents.

    `expansions` are, for characters that change, their lower-cased and
    decomposed characters, as code point * ENTRY + kind. The first stands for
    all characters that stay the same.
    """

    entries: PagedTable  # See `ENTRY`.
    expansion_of: PagedTable  # Indices in `expansions`.
    expansions: list[list[int]]
    combining: PagedTable  # Canonical combining classes, which order marks.
    casing: PagedTable  # Of `Casing`.


@functools.cache
def cased_entries() -> PagedTable:
    """Returns the entries of cased models: characters keep their code point."""
    return _paged({point: _kind(chr(point)) for point in _special_points()})


@functools.cache
def uncased_tables() -> UncasedTables:
    """Returns the tables of uncased models."""
    entries: dict[int, int] = {}
    expansion_of: dict[int, int] = {}
    expansions = [[0]]
    for point in _special_points():
        char = chr(point)
        kind = _kind(char)
        if kind in (Kind.REMOVED, Kind.SPACE):
            entries[point] = kind
            continue
        parts = unicodedata.normalize("NFD", char.lower())
        kinds = [
            kind if kind == Kind.CHINESE else _decomposed_kind(part)
            for part in parts
        ]
        entries[point] = (ord(parts[0]) - point) * ENTRY + kinds[0]
        if not _is_first_enough(parts):
            entries[point] |= NEEDS_CARE
        if parts != char:
            expansion_of[point] = len(expansions)
            pairs = zip(parts, kinds, strict=True)
            expansions.append([ord(part) * ENTRY + k for part, k in pairs])
    return UncasedTables(
        _paged(entries),
        _paged(expansion_of),
        expansions,
        _paged({p: unicodedata.combining(chr(p)) for p in _special_points()}),
        _paged({p: _casing(chr(p)) for p in _special_points()}),
    )


@functools.cache
def _special_points() -> list[int]:
    """Returns the code points that can be anything but a letter."""
    return [
        point
        for point in range(NUM_CODE_POINTS)
        # Unassigned, private, and surrogates, which UTF-8 does not have.
        if unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs")
        or characters.is_chinese(chr(point))
    ]


def _kind(char: str) -> Kind:
    if characters.is_removed(char):
        return Kind.REMOVED
    if char.isspace():
        return Kind.SPACE
    if characters.is_chinese(char):
        return Kind.CHINESE
    return Kind.PUNCTUATION if characters.is_punctuation(char) else Kind.LETTER


def _decomposed_kind(char: str) -> Kind:
    if characters.is_nonspacing_mark(char):
        return Kind.MARK
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


def _paged(values: dict[int, int]) -> PagedTable:
    """Returns the table of values by code point; all others are 0."""
    table = np.zeros(NUM_CODE_POINTS, np.int32)
    table[list(values)] = list(values.values())
    pages, page_of = np.unique(
        table.reshape(-1, PAGE_SIZE), axis=0, return_inverse=True
    )
    return PagedTable(page_of.reshape(-1).astype(np.int32), pages.reshape(-1))
