"""Text -> normalized characters, as TensorFlow operations.

All texts of a batch are one row of code points, with a space after each:

```
texts       "Ça!"  "한"
points      Ç  a  !  _  한     _
normalized  c  a  !  _  ᄒ ᅡ ᆫ _
first       0  1  2  3  4  4  4  5      the point that each comes from
last        0  1  2  3  4  4  4  5      the last one, if accents follow it
```

Texts are not kept apart, because nothing here reaches beyond a space. Spans
follow the rules of `official_bert.tokenization.alignment`.
"""

from typing import NamedTuple

import tensorflow as tf

from official_bert.export import unicode_tables
from official_bert.export.unicode_tables import ENTRY, Casing, Kind


class Decoded(NamedTuple):
    """Texts as code points; N of them."""

    points: tf.Tensor  # int32 [N], with a space after each text
    lines: tf.Tensor  # int64 [N], the index of the text
    starts: tf.Tensor  # int64 [N], the byte of the text at which each begins

    @property
    def limits(self) -> tf.Tensor:
        """int64 [N], the byte before which each ends."""
        return self.starts + num_bytes(self.points)


class Normalized(NamedTuple):
    """The characters of words and the spaces between them; M of them."""

    points: tf.Tensor  # int32 [M], code points
    kinds: tf.Tensor  # int32 [M], `Kind`s other than MARK and REMOVED
    first: tf.Tensor  # int64 [M], the first index in `Decoded` of each
    last: tf.Tensor  # int64 [M], the last one


class _Marked(NamedTuple):
    """Normalized characters and marks; see `Normalized`."""

    points: tf.Tensor
    kinds: tf.Tensor
    first: tf.Tensor
    is_joined: tf.Tensor  # bool, whether it belongs to the one before it


def decode(texts: tf.Tensor) -> Decoded:
    """Returns the characters of texts.

    Args:
        texts: string [B], in UTF-8. Bytes that are not valid are dropped, as by
            `FullTokenizer`.
    """
    points, starts = tf.strings.unicode_decode_with_offsets(
        tf.strings.join([texts, " "]), "UTF-8", errors="ignore"
    )
    return Decoded(points.values, points.value_rowids(), starts.values)


def num_bytes(points: tf.Tensor) -> tf.Tensor:
    """Returns the number of bytes of each character in UTF-8, int64."""
    longer = (tf.cast(points >= p, tf.int64) for p in (0x80, 0x800, 0x10000))
    return 1 + tf.add_n(list(longer))


class _Table:
    """A `PagedTable` in the graph."""

    def __init__(self, table: unicode_tables.PagedTable):
        self._page_of = tf.constant(table.page_of)
        self._pages = tf.constant(table.pages)

    def find(self, points: tf.Tensor) -> tf.Tensor:
        size = unicode_tables.PAGE_SIZE
        pages = tf.gather(self._page_of, points // size)
        return tf.gather(self._pages, pages * size + points % size)


class CasedNormalizer:
    """Removes invisible characters and classifies the others."""

    def __init__(self) -> None:
        self._entries = _Table(unicode_tables.cased_entries())

    def normalize(self, points: tf.Tensor) -> Normalized:
        """Returns the normalized characters of `Decoded.points`."""
        points, entries, first = _visible(points, self._entries.find(points))
        return Normalized(points, _kinds(entries), first, first)


class UncasedNormalizer:
    """Also lower-cases, decomposes and drops accents.

    Most characters become a single one, whatever stands around them. A batch
    with any that do not takes the slower branches.
    """

    def __init__(self) -> None:
        tables = unicode_tables.uncased_tables()
        self._entries = _Table(tables.entries)
        self._expansion_of = _Table(tables.expansion_of)
        self._expansions = tf.ragged.constant(tables.expansions, tf.int32)
        self._combining = _Table(tables.combining)
        self._casing = _Table(tables.casing)

    def normalize(self, points: tf.Tensor) -> Normalized:
        """Returns the normalized characters of `Decoded.points`."""
        points, entries, first = _visible(points, self._entries.find(points))
        points, entries = tf.cond(
            tf.reduce_any(points == unicode_tables.SIGMA),
            lambda: self._replace_final_sigmas(points),
            lambda: (points, entries),
        )
        marked = tf.cond(
            tf.reduce_any(entries & unicode_tables.NEEDS_CARE > 0),
            lambda: self._decompose(points, entries, first),
            lambda: _replace(points, entries, first),
        )
        return _drop_marks(marked)

    def _replace_final_sigmas(
        self, points: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Puts "ς" for each "Σ" that is the last letter of its word.

        That is one after a cased letter and not before one; ignored characters
        between them do not count.
        """
        casing = self._casing.find(points)
        counted = tf.where(casing != Casing.IGNORED)[:, 0]
        is_cased = tf.gather(casing, counted) == Casing.CASED
        follows = tf.concat([[False], is_cased[:-1]], axis=0)
        precedes = tf.concat([is_cased[1:], [False]], axis=0)
        is_sigma = tf.gather(points, counted) == unicode_tables.SIGMA
        final = tf.boolean_mask(counted, is_sigma & follows & ~precedes)
        points = tf.tensor_scatter_nd_update(
            points,
            final[:, None],
            tf.fill(tf.shape(final), unicode_tables.FINAL_SIGMA),
        )
        return points, self._entries.find(points)

    def _decompose(
        self, points: tf.Tensor, entries: tf.Tensor, first: tf.Tensor
    ) -> _Marked:
        """Replaces characters by their expansions, in canonical order."""
        expansion = self._expansion_of.find(points)
        items = tf.gather(self._expansions, expansion)
        source = items.value_rowids()
        is_same = tf.gather(expansion, source) == 0
        kinds = tf.gather(_kinds(entries), source)
        kinds = tf.where(is_same, kinds, items.values % ENTRY)
        points = tf.gather(points, source)
        points = tf.where(is_same, points, items.values // ENTRY)
        combining = self._combining.find(points)
        # Marks are ordered up to the next character that is not a mark.
        keys = tf.cumsum(tf.cast(combining == 0, tf.int64)) * 256
        keys += tf.cast(combining, tf.int64)
        is_early = tf.concat([[False], keys[1:] < keys[:-1]], axis=0)
        order = tf.cond(
            tf.reduce_any(is_early),
            lambda: tf.argsort(keys, stable=True),
            lambda: tf.range(tf.size(keys)),
        )
        points, kinds = tf.gather(points, order), tf.gather(kinds, order)
        # If marks between two spaces changed places, all of them share a span.
        chunks = tf.cumsum(tf.cast(kinds == Kind.SPACE, tf.int32))
        is_mixed = tf.math.unsorted_segment_max(
            tf.cast(is_early, tf.int32), chunks, tf.reduce_max(chunks) + 1
        )
        may_move = (tf.gather(is_mixed, chunks) > 0) & (combining > 0)
        is_joined = (kinds == Kind.MARK) | may_move
        return _Marked(points, kinds, tf.gather(first, source), is_joined)


def _kinds(entries: tf.Tensor) -> tf.Tensor:
    return entries & unicode_tables.KIND_BITS


def _visible(
    points: tf.Tensor, entries: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns points and entries that are not removed, and their indices."""
    kept = tf.where(_kinds(entries) != Kind.REMOVED)[:, 0]
    return tf.gather(points, kept), tf.gather(entries, kept), kept


def _replace(
    points: tf.Tensor, entries: tf.Tensor, first: tf.Tensor
) -> _Marked:
    """Replaces each character by the one of its entry."""
    kinds = _kinds(entries)
    return _Marked(points + entries // ENTRY, kinds, first, kinds == Kind.MARK)


def _drop_marks(chars: _Marked) -> Normalized:
    """Drops accents; the characters they belong to get their places."""
    # `alignment` puts spaces around Chinese characters.
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
