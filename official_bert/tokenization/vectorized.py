"""Tokenization of many lines at once, with NumPy.

```
text     D  u  r  e  r  '  s     a  r  t  ⏎
codes    d  u  r  e  r  1  s  0  a  r  t  0      see alphabet.py
words    0------------> 5  6     8------>        starts 0 5 6 8, ends 5 6 7 11
ids         -1        1005 1055   2396           see word_table.py
pieces   du    ##rer    '  s      art
```

All words are looked up together. The few that are no tokens are cut together,
first all their first pieces, then all their second ones. What cannot be treated
character by character is left to `BatchTokenizer.tokenize_with_offsets`, with
all that stands around it between two spaces.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.tokenization.alphabet import (
    ISOLATED,
    ODD,
    SPACE,
    Alphabet,
    Codes,
    code_points,
)
from official_bert.tokenization.text import convert_to_unicode
from official_bert.tokenization.word_table import (
    MAX_LENGTH,
    Indices,
    Ints,
    keys_at,
    table_of_tokens,
)

if TYPE_CHECKING:
    from official_bert.tokenization.batch import BatchTokenizer

# The characters of a block, give or take some lines, which take some 20 MB.
# With fewer, calling NumPy takes too much time; with more, fresh memory does.
BLOCK_LENGTH = 2**18
_LINES_READ_AT_ONCE = 64


class Encoded(NamedTuple):
    """The pieces of lines.

    Attributes:
        ids: int32 [N], the ids of the pieces of all lines.
        row_splits: int64 [number of lines + 1]. The pieces of line i are those
            from `row_splits[i]` up to `row_splits[i + 1]`.
        starts: int32 [N], where in its line each piece starts, in characters.
        ends: int32 [N], where it ends.
    """

    ids: Ints
    row_splits: npt.NDArray[np.int64]
    starts: Ints
    ends: Ints


def concatenate(blocks: Iterable[Encoded]) -> Encoded:
    """Joins blocks of lines."""
    ids, row_splits, starts, ends = zip(*blocks, strict=True)
    shifts = np.cumsum([0, *map(len, ids)])
    shifted = zip(row_splits, shifts, strict=False)
    return Encoded(
        np.concatenate(ids),
        np.concatenate([[0], *(s[1:] + shift for s, shift in shifted)]),
        np.concatenate(starts),
        np.concatenate(ends),
    )


class _Pieces(NamedTuple):
    """Pieces of a block, and where in its text they stand."""

    ids: Ints
    starts: Indices
    ends: Indices

    def take(self, which: Indices) -> _Pieces:
        return _Pieces(
            np.take(self.ids, which),
            np.take(self.starts, which),
            np.take(self.ends, which),
        )


class LineEncoder:
    """The vectorised part of a `BatchTokenizer`.

    Args:
        tokenizer: Gives the settings, and treats what is odd.
    """

    def __init__(self, tokenizer: BatchTokenizer):
        self._tokenizer = tokenizer
        self._never_split = tokenizer.basic_tokenizer.never_split
        unk_token = tokenizer.wordpiece_tokenizer.unk_token
        self._unknown_id = tokenizer.vocab.get(unk_token, -1)
        self._alphabet = Alphabet(
            tokenizer.vocab,
            self._unknown_id,
            tokenizer.basic_tokenizer.do_lower_case,
        )
        self._table = table_of_tokens(tokenizer.vocab, self._alphabet)

    def encode(self, lines: Iterable[str | bytes]) -> Iterator[Encoded]:
        """Yields the pieces of lines, some thousands of lines at a time."""
        texts = map(convert_to_unicode, lines)
        block: list[str] = []
        room = BLOCK_LENGTH
        while some := list(itertools.islice(texts, _LINES_READ_AT_ONCE)):
            block += some
            room -= sum(map(len, some))
            if room <= 0:
                yield self._encode_block(block)
                block, room = [], BLOCK_LENGTH
        yield self._encode_block(block)

    def _encode_block(self, lines: list[str]) -> Encoded:
        text = "\n".join([*lines, ""])
        lengths = np.fromiter(map(len, lines), np.intp, len(lines))
        limits = np.append(0, np.cumsum(lengths + 1))
        pieces = self._tokenize(text)
        if (pieces.ids < 0).any():
            raise KeyError(self._tokenizer.wordpiece_tokenizer.unk_token)
        row_splits = np.searchsorted(pieces.starts, limits)
        shifts = np.repeat(limits[:-1], np.diff(row_splits))
        return Encoded(
            pieces.ids,
            row_splits.astype(np.int64),
            (pieces.starts - shifts).astype(np.int32),
            (pieces.ends - shifts).astype(np.int32),
        )

    def _tokenize(self, text: str) -> _Pieces:
        """Returns the pieces of a text in order."""
        points = code_points(text)
        codes = self._alphabet.encode(points)
        self._mark_odd_chunks(codes, text)
        starts, ends = _find_words(codes)
        ids = self._table.find(keys_at(codes, starts, ends - starts))
        pieces = _Pieces(ids, starts, ends)

        missed = np.flatnonzero(ids < 0)
        kinds = codes[starts[missed]]
        isolated = missed[kinds == ISOLATED]
        ids[isolated] = self._alphabet.ids_of_isolated[points[starts[isolated]]]
        missed = missed[kinds != ISOLATED]
        found = np.delete(np.arange(len(ids)), missed)
        is_hard = codes[starts[missed]] == ODD
        is_hard |= ends[missed] - starts[missed] > MAX_LENGTH

        parts = [
            pieces.take(found),
            *self._cut(codes, pieces.take(missed[~is_hard])),
            self._treat_hard(text, pieces.take(missed[is_hard])),
        ]
        pieces = _Pieces(*map(np.concatenate, zip(*parts, strict=True)))
        # Pieces of one character start together, and are in order already.
        return pieces.take(np.argsort(pieces.starts, kind="stable"))

    def _mark_odd_chunks(self, codes: Codes, text: str) -> None:
        """Makes each chunk between spaces with something odd in it one word."""
        odd = np.flatnonzero(codes == ODD).tolist()
        if self._never_split.tokens:
            odd = sorted([*odd, *self._never_split.find(text)])
        kinds = codes.tobytes() if odd else b""
        space = bytes([SPACE])
        end = 0
        for place in odd:
            if place >= end:
                start = kinds.rfind(space, end, place) + 1 or end
                end = kinds.index(space, place)
                codes[start:end] = ODD

    def _cut(self, codes: Codes, words: _Pieces) -> Iterator[_Pieces]:
        """Yields all first pieces of words, all second ones, and so on.

        Words that cannot be cut come last.
        """
        is_unknown = np.zeros(len(words.ids), np.bool_)
        parts: list[tuple[Indices, _Pieces]] = []
        active: Indices = np.arange(len(words.ids))
        starts = words.starts
        while len(active):
            ids, ends = self._longest_pieces(
                codes, starts, words.ends[active], is_later=bool(parts)
            )
            is_unknown[active[ids < 0]] = True
            parts.append((active, _Pieces(ids, starts, ends)))
            is_left = (ids >= 0) & (ends < words.ends[active])
            active, starts = active[is_left], ends[is_left]
        for active, pieces in parts:
            yield pieces.take(np.flatnonzero(~is_unknown[active]))
        words.ids[is_unknown] = self._unknown_id
        yield words.take(np.flatnonzero(is_unknown))

    def _longest_pieces(
        self, codes: Codes, starts: Indices, limits: Indices, is_later: bool
    ) -> tuple[Ints, Indices]:
        """Finds the longest token that stands at each of `starts`.

        Returns:
            The ids, -1 where there is none, and the ends of the tokens.
        """
        # Each word at its length, at one less, and so on down to 1. The length
        # of a whole word can be left out, which is known to be no token.
        counts = limits - starts - (0 if is_later else 1)
        owners = np.repeat(np.arange(len(starts)), counts)
        lengths = np.cumsum(counts)[owners] - np.arange(len(owners))
        keys = keys_at(codes, starts[owners], lengths, is_later)
        found = self._table.find(keys)
        hits = np.flatnonzero(found >= 0)
        hits = hits[np.diff(owners[hits], prepend=-1) > 0]
        ids = np.full(len(starts), -1, np.int32)
        ids[owners[hits]] = found[hits]
        ends = starts.copy()
        ends[owners[hits]] += lengths[hits]
        return ids, ends

    def _treat_hard(self, text: str, chunks: _Pieces) -> _Pieces:
        """Returns the pieces of odd chunks and of long words, one by one."""
        rows: list[tuple[int, int, int]] = []
        places = zip(chunks.starts.tolist(), chunks.ends.tolist(), strict=True)
        for start, end in places:
            tokens, spans = self._tokenizer.tokenize_with_offsets(
                text[start:end]
            )
            ids = self._tokenizer.convert_tokens_to_ids(tokens)
            for token_id, (first, last) in zip(ids, spans, strict=True):
                rows.append((token_id, start + first, start + last))
        columns = np.array(rows, np.intp).reshape(-1, 3).T
        return _Pieces(columns[0].astype(np.int32), columns[1], columns[2])


def _find_words(codes: Codes) -> tuple[Indices, Indices]:
    """Returns where words and isolated characters start and end."""
    is_start = codes == ISOLATED
    is_end = is_start.copy()
    is_word = codes > ISOLATED
    is_start[0] |= is_word[0]
    is_start[1:] |= is_word[1:] > is_word[:-1]
    is_end[:-1] |= is_word[:-1] > is_word[1:]
    return np.flatnonzero(is_start), np.flatnonzero(is_end) + 1
