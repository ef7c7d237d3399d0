"""What becomes of each character of Unicode, as arrays.

They are filled by `official_bert.tokenization` itself, one character after the
other, and so hold what Python's own Unicode tables say. What one character
cannot know, because it depends on those around it, is marked and left to
`characters.py`: expansions, marks that change places, the last sigma of a word.
"""

import enum
import functools
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.tokenization import characters
from official_bert.tokenization.normalize import CLEAN, ISOLATE_UNCASED

Ints = npt.NDArray[np.int32]

NUM_CODE_POINTS = 0x110000
PAGE_SIZE = 256

SIGMA, FINAL_SIGMA = ord("Σ"), ord("ς")

# An entry is (what it becomes - the code point) * ENTRY + flags. Differences
# make pages alike, so that few need to be kept.
ENTRY = 16
KIND_BITS = 7
NEEDS_CARE = 8


class Kind(enum.IntEnum):
    """What a character is to the words around it.

    From PUNCTUATION on, they end the word before them and start a new one.
    """

    LETTER = 0
    MARK = 1  # An accent, which is dropped.
    REMOVED = 2  # As if it had never been there.
    PUNCTUATION = 3  # A word of its own.
    CHINESE = 4  # As well, and accents after it are not its own.
    SPACE = 5


class Casing(enum.IntEnum):
    """What a character is to a sigma that asks whether it ends its word."""

    NEITHER = 0
    CASED = 1
    IGNORED = 2  # It looks beyond this one.


class PagedTable(NamedTuple):
    """A number for every code point, in pages of which equal ones are shared.

    Attributes:
        page_of: int32 [NUM_CODE_POINTS / PAGE_SIZE], by `point // PAGE_SIZE`.
        pages: int32 [pages * PAGE_SIZE], one page after the other.
    """

    page_of: Ints
    pages: Ints


class Expansions(NamedTuple):
    """What characters become that do not stay what they are.

    Row 0 is for all others, and stands for one character.

    Attributes:
        rows: The row of each code point.
        starts: int32 [rows], where in `items` a row starts.
        lengths: int32 [rows], how many characters it has.
        items: int32, each a code point * ENTRY + its kind.
    """

    rows: PagedTable
    starts: Ints
    lengths: Ints
    items: Ints


class UncasedTables(NamedTuple):
    """What is needed to lower-case words and to drop their accents.

    Attributes:
        entries: See `ENTRY`; with NEEDS_CARE where that does not say it all.
        expansions: Characters in lower case and decomposed, accents and all.
        combining: Canonical combining classes, which put marks in order.
        casing: `Casing`.
    """

    entries: PagedTable
    expansions: Expansions
    combining: PagedTable
    casing: PagedTable


@functools.cache
def cased_entries() -> PagedTable:
    """Returns entries where every character stays what it is."""
    return _paged({point: int(_kind(chr(point))) for point in _special()})


@functools.cache
def uncased_tables() -> UncasedTables:
    """Returns the tables for uncased models."""
    entries: dict[int, int] = {}
    expanded: dict[int, list[int]] = {}
    for point in _special():
        char = chr(point)
        kind = _kind(char)
        if kind in (Kind.REMOVED, Kind.SPACE):
            entries[point] = kind
            continue
        parts = unicodedata.normalize("NFD", char.lower())
        kinds = [
            kind if kind == Kind.CHINESE else _kind_of_part(part)
            for part in parts
        ]
        entries[point] = (ord(parts[0]) - point) * ENTRY + kinds[0]
        if not _first_says_it_all(parts):
            entries[point] |= NEEDS_CARE
        if parts != char:
            expanded[point] = [
                ord(part) * ENTRY + part_kind
                for part, part_kind in zip(parts, kinds, strict=True)
            ]
    return UncasedTables(
        _paged(entries),
        _expansions(expanded),
        _paged({p: unicodedata.combining(chr(p)) for p in _special()}),
        _paged({p: _casing(chr(p)) for p in _special()}),
    )


@functools.cache
def _special() -> list[int]:
    """Returns the code points that can be something else than a letter."""
    return [
        point
        for point in range(NUM_CODE_POINTS)
        # Unassigned, private, and halves of pairs, which UTF-8 does not have.
        if unicodedata.category(chr(point)) not in ("Cn", "Co", "Cs")
        or characters.is_chinese(chr(point))
    ]


def _kind(char: str) -> Kind:
    """Returns the kind of a character of the text."""
    cleaned = CLEAN[ord(char)]
    if not cleaned:
        return Kind.REMOVED
    if char.isspace():
        return Kind.SPACE
    if cleaned != char:
        return Kind.CHINESE
    return Kind.PUNCTUATION if characters.is_punctuation(char) else Kind.LETTER


def _kind_of_part(char: str) -> Kind:
    """Returns the kind of a character that has been decomposed."""
    isolated = ISOLATE_UNCASED[ord(char)]
    if not isolated:
        return Kind.MARK
    return Kind.LETTER if isolated == char else Kind.PUNCTUATION


def _first_says_it_all(parts: str) -> bool:
    """Whether what follows the first part is dropped, and nothing moves."""
    kept = [p for p in parts if not characters.is_nonspacing_mark(p)]
    if not kept:
        return len(parts) == 1
    return kept == [parts[0]] and not unicodedata.combining(kept[0])


def _casing(char: str) -> Casing:
    # `str.lower` itself says it. It looks beyond a character that is ignored,
    # at the "a".
    if not f"a{char}Σ".lower().endswith("ς"):
        return Casing.NEITHER
    is_cased = f"{char}Σ".lower().endswith("ς")
    return Casing.CASED if is_cased else Casing.IGNORED


def _expansions(expanded: dict[int, list[int]]) -> Expansions:
    rows = [[0], *expanded.values()]
    lengths = np.array([len(row) for row in rows], np.int32)
    return Expansions(
        _paged({point: row for row, point in enumerate(expanded, start=1)}),
        np.cumsum(lengths, dtype=np.int32) - lengths,
        lengths,
        np.array([item for row in rows for item in row], np.int32),
    )


def _paged(values: dict[int, int]) -> PagedTable:
    """Packs values by code point; those that are not there are 0."""
    table = np.zeros(NUM_CODE_POINTS, np.int32)
    table[list(values)] = list(values.values())
    pages, page_of = np.unique(
        table.reshape(-1, PAGE_SIZE), axis=0, return_inverse=True
    )
    return PagedTable(page_of.reshape(-1).astype(np.int32), pages.reshape(-1))
