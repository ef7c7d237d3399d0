"""From text to normalised characters, in TensorFlow operations.

All texts of a batch are one long row of code points, with a space after each:

```
texts       "Ça!"  "한"
points      Ç  a  !  _  한     _
normalised  c  a  !  _  ᄒ ᅡ ᆫ _
first       0  1  2  3  4  4  4  5       the point that each comes from
last        0  1  2  3  4  4  4  5       and the last one, if it is accented
```

Nothing here knows where a text ends, because nothing reaches beyond a space.
Places follow the rules of `official_bert.tokenization.alignment`.
"""

from typing import NamedTuple

import tensorflow as tf

from official_bert.export import unicode_tables as tables
from official_bert.export.unicode_tables import Casing, Kind


class Decoded(NamedTuple):
    """Texts as code points; N is the number of all.

    Attributes:
        points: int32 [N]. After each text follows a space.
        lines: int64 [N], which text each is of.
        starts: int64 [N], where in its text each starts, in bytes.
    """

    points: tf.Tensor
    lines: tf.Tensor
    starts: tf.Tensor

    @property
    def limits(self) -> tf.Tensor:
        """int64 [N], where each ends."""
        return self.starts + num_bytes(self.points)


class Normalized(NamedTuple):
    """What words are made of; M is the number of characters.

    Attributes:
        points: int32 [M], code points.
        kinds: int32 [M], their `Kind`; MARK and REMOVED are dropped.
        first: int64 [M], the index in `Decoded` of what each comes from.
        last: int64 [M], the index of the last one that belongs to it.
    """

    points: tf.Tensor
    kinds: tf.Tensor
    first: tf.Tensor
    last: tf.Tensor


class _Chars(NamedTuple):
    """Characters on their way; `entries` are theirs, as in `tables.ENTRY`."""

    points: tf.Tensor
    entries: tf.Tensor
    first: tf.Tensor


class _Marked(NamedTuple):
    """The same normalised, with marks; `is_joined` to what is before them."""

    points: tf.Tensor
    kinds: tf.Tensor
    first: tf.Tensor
    is_joined: tf.Tensor


def decode(texts: tf.Tensor) -> Decoded:
    """Returns the characters of texts.

    Args:
        texts: string [B], in UTF-8. As with `FullTokenizer`, bytes that are not
            valid are left out.
    """
    points, starts = tf.strings.unicode_decode_with_offsets(
        tf.strings.join([texts, " "]), "UTF-8", errors="ignore"
    )
    return Decoded(points.values, points.value_rowids(), starts.values)


def num_bytes(points: tf.Tensor) -> tf.Tensor:
    """Returns how many bytes characters take in UTF-8, int64."""
    longer = (tf.cast(points >= p, tf.int64) for p in (0x80, 0x800, 0x10000))
    return 1 + tf.add_n(list(longer))


class Table:
    """A `tables.PagedTable` in the graph."""

    def __init__(self, table: tables.PagedTable):
        self._page_of = tf.constant(table.page_of)
        self._pages = tf.constant(table.pages)

    def find(self, points: tf.Tensor) -> tf.Tensor:
        """Returns the numbers of code points."""
        size = tables.PAGE_SIZE
        pages = tf.gather(self._page_of, points // size)
        return tf.gather(self._pages, pages * size + points % size)


class CasedNormalizer:
    """Removes what is invisible, and tells kinds apart."""

    def __init__(self) -> None:
        self._entries = Table(tables.cased_entries())

    def normalize(self, points: tf.Tensor) -> Normalized:
        """Returns the characters to make words of.

        Args:
            points: int32 [N], those of `Decoded`.
        """
        chars = _visible(points, self._entries.find(points))
        kinds = _kinds(chars.entries)
        return Normalized(chars.points, kinds, chars.first, chars.first)


class UncasedNormalizer:
    """Lower-cases, decomposes and drops accents as well.

    Most characters become a single one whatever stands around them. Only where
    a batch has others, all of it takes the long way.
    """

    def __init__(self) -> None:
        uncased = tables.uncased_tables()
        self._entries = Table(uncased.entries)
        self._rows = Table(uncased.expansions.rows)
        self._starts = tf.constant(uncased.expansions.starts)
        self._lengths = tf.constant(uncased.expansions.lengths)
        self._items = tf.constant(uncased.expansions.items)
        self._combining = Table(uncased.combining)
        self._casing = Table(uncased.casing)

    def normalize(self, points: tf.Tensor) -> Normalized:
        """Returns the characters to make words of.

        Args:
            points: int32 [N], those of `Decoded`.
        """
        chars = _visible(points, self._entries.find(points))
        chars = tf.cond(
            tf.reduce_any(chars.points == tables.SIGMA),
            lambda: self._mark_final_sigmas(chars),
            lambda: chars,
        )
        marked = tf.cond(
            tf.reduce_any(chars.entries & tables.NEEDS_CARE > 0),
            lambda: self._decompose(chars),
            lambda: _replace(chars),
        )
        return _drop_marks(marked)

    def _mark_final_sigmas(self, chars: _Chars) -> _Chars:
        """Puts "ς" for each "Σ" that is the last letter of its word.

        That is one after a letter that has case and not before one, whatever
        ignored characters stand between.
        """
        casing = self._casing.find(chars.points)
        heard = tf.where(casing != Casing.IGNORED)[:, 0]
        is_cased = tf.gather(casing, heard) == Casing.CASED
        follows = tf.concat([[False], is_cased[:-1]], axis=0)
        precedes = tf.concat([is_cased[1:], [False]], axis=0)
        is_sigma = tf.gather(chars.points, heard) == tables.SIGMA
        final = tf.boolean_mask(heard, is_sigma & follows & ~precedes)
        points = tf.tensor_scatter_nd_update(
            chars.points,
            final[:, None],
            tf.fill(tf.shape(final), tables.FINAL_SIGMA),
        )
        return chars._replace(points=points, entries=self._entries.find(points))

    def _decompose(self, chars: _Chars) -> _Marked:
        """Gives characters all that they become, in canonical order."""
        points, kinds, first = self._expand(chars)
        combining = self._combining.find(points)
        # Marks are put in order as far as the next character that is none.
        keys = tf.cumsum(tf.cast(combining == 0, tf.int64)) * 256
        keys += tf.cast(combining, tf.int64)
        is_early = tf.concat([[False], keys[1:] < keys[:-1]], axis=0)
        order = tf.cond(
            tf.reduce_any(is_early),
            lambda: tf.argsort(keys, stable=True),
            lambda: tf.range(tf.size(keys)),
        )
        points, kinds = tf.gather(points, order), tf.gather(kinds, order)
        # Between two spaces, all marks share their places if some changed them.
        chunks = tf.cumsum(tf.cast(kinds == Kind.SPACE, tf.int32))
        is_mixed = tf.math.unsorted_segment_max(
            tf.cast(is_early, tf.int32), chunks, tf.reduce_max(chunks) + 1
        )
        may_move = (tf.gather(is_mixed, chunks) > 0) & (combining > 0)
        return _Marked(points, kinds, first, (kinds == Kind.MARK) | may_move)

    def _expand(self, chars: _Chars) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns code points, kinds and sources of all parts."""
        rows = self._rows.find(chars.points)
        lengths = tf.gather(self._lengths, rows)
        source = tf.repeat(tf.range(tf.size(rows)), lengths)
        shifts = tf.gather(self._starts, rows)
        shifts -= tf.cumsum(lengths, exclusive=True)
        items = tf.gather(
            self._items, tf.range(tf.size(source)) + tf.gather(shifts, source)
        )
        is_same = tf.gather(rows, source) == 0
        points = tf.gather(chars.points, source)
        kinds = tf.gather(_kinds(chars.entries), source)
        return (
            tf.where(is_same, points, items // tables.ENTRY),
            tf.where(is_same, kinds, items % tables.ENTRY),
            tf.gather(chars.first, source),
        )


def _kinds(entries: tf.Tensor) -> tf.Tensor:
    return entries & tables.KIND_BITS


def _visible(points: tf.Tensor, entries: tf.Tensor) -> _Chars:
    """Returns the characters that are not removed."""
    kept = tf.where(_kinds(entries) != Kind.REMOVED)[:, 0]
    return _Chars(tf.gather(points, kept), tf.gather(entries, kept), kept)


def _replace(chars: _Chars) -> _Marked:
    """Puts in place of each character the one that its entry says."""
    kinds = _kinds(chars.entries)
    points = chars.points + chars.entries // tables.ENTRY
    return _Marked(points, kinds, chars.first, kinds == Kind.MARK)


def _drop_marks(chars: _Marked) -> Normalized:
    """Drops accents, whose places go to what they stand on."""
    # In `alignment`, Chinese characters have spaces around them.
    is_apart = (chars.kinds == Kind.SPACE) | (chars.kinds == Kind.CHINESE)
    starts = ~chars.is_joined | tf.concat([[True], is_apart[:-1]], axis=0)
    group = tf.cumsum(tf.cast(starts, tf.int32)) - 1
    group_starts = tf.where(starts)[:, 0]
    group_ends = tf.concat(
        [group_starts[1:], [tf.size(starts, tf.int64)]], axis=0
    )
    kept = tf.where(chars.kinds != Kind.MARK)[:, 0]
    group = tf.gather(group, kept)
    return Normalized(
        tf.gather(chars.points, kept),
        tf.gather(chars.kinds, kept),
        tf.gather(chars.first, tf.gather(group_starts, group)),
        tf.gather(chars.first, tf.gather(group_ends, group) - 1),
    )
