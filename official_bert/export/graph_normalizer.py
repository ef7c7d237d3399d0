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

from official_bert.export.unicode_tables import (
    ENTRY,
    FINAL_SIGMA,
    KIND_BITS,
    NEEDS_CARE,
    SIGMA,
    Casing,
    Kind,
    UnicodeTables,
)


class Decoded(NamedTuple):
    """Texts as code points; N of them."""

    points: tf.Tensor  # int32 [N], with a space after each text
    lines: tf.Tensor  # int64 [N], the index of the text
    starts: tf.Tensor  # int64 [N], the byte of the text at which each begins
    limits: tf.Tensor  # int64 [N], the byte before which each ends


class Normalized(NamedTuple):
    """The characters of words and the spaces between them; M of them."""

    points: tf.Tensor  # int32 [M], code points
    kinds: tf.Tensor  # int32 [M], `Kind`s other than MARK and REMOVED
    first: tf.Tensor  # int64 [M], the first index in `Decoded` of each
    last: tf.Tensor  # int64 [M], the last one


class _Marked(NamedTuple):
    """Like `Normalized`; `is_joined`: whether each belongs to the previous."""

    points: tf.Tensor
    kinds: tf.Tensor
    first: tf.Tensor
    is_joined: tf.Tensor


def decode(texts: tf.Tensor) -> Decoded:
    """Returns the characters of texts, string [B], in UTF-8.

    Bytes that are not valid are dropped, as by `FullTokenizer`.
    """
    points, starts = tf.strings.unicode_decode_with_offsets(
        tf.strings.join([texts, " "]), "UTF-8", errors="ignore"
    )
    limits = starts.values + num_bytes(points.values)
    return Decoded(points.values, points.value_rowids(), starts.values, limits)


def num_bytes(points: tf.Tensor) -> tf.Tensor:
    """Returns the number of bytes of each character in UTF-8, int64."""
    longer = (tf.cast(points >= p, tf.int64) for p in (0x80, 0x800, 0x10000))
    return 1 + tf.add_n(list(longer))


def normalize(points: tf.Tensor, tables: UnicodeTables) -> Normalized:
    """Returns the normalized characters of `Decoded.points`.

    Most characters become a single one, whatever stands around them. Only a
    batch with others takes the slower branches.
    """
    entries = tables.entries.find(points)
    first = tf.where(entries & KIND_BITS != Kind.REMOVED)[:, 0]
    points, entries = tf.gather(points, first), tf.gather(entries, first)
    if not tables.do_lower_case:
        return Normalized(points, entries, first, first)
    points, entries = tf.cond(
        tf.reduce_any(points == SIGMA),
        lambda: _replace_final_sigmas(points, tables),
        lambda: (points, entries),
    )
    marked = tf.cond(
        tf.reduce_any(entries & NEEDS_CARE > 0),
        lambda: _decompose(points, entries, first, tables),
        lambda: _replace(points, entries, first),
    )
    return _drop_marks(marked)


def _replace_final_sigmas(
    points: tf.Tensor, tables: UnicodeTables
) -> tuple[tf.Tensor, tf.Tensor]:
    """Puts "ς" for each "Σ" that is the last letter of its word.

    That is one after a cased letter and not before one; ignored characters
    between them do not count. Returns points and entries.
    """
    casing = tables.casing.find(points)
    counted = tf.where(casing != Casing.IGNORED)[:, 0]
    is_cased = tf.gather(casing, counted) == Casing.CASED
    follows = tf.concat([[False], is_cased[:-1]], axis=0)
    precedes = tf.concat([is_cased[1:], [False]], axis=0)
    is_sigma = tf.gather(points, counted) == SIGMA
    final = tf.boolean_mask(counted, is_sigma & follows & ~precedes)
    points = tf.tensor_scatter_nd_update(
        points, final[:, None], tf.fill(tf.shape(final), FINAL_SIGMA)
    )
    return points, tables.entries.find(points)


def _decompose(
    points: tf.Tensor,
    entries: tf.Tensor,
    first: tf.Tensor,
    tables: UnicodeTables,
) -> _Marked:
    """Replaces characters by their expansions, in canonical order."""
    expansion = tables.expansion_of.find(points)
    items = tf.gather(tables.expansions, expansion)
    source = items.value_rowids()
    is_same = tf.gather(expansion, source) == 0
    kinds = tf.gather(entries & KIND_BITS, source)
    kinds = tf.where(is_same, kinds, items.values % ENTRY)
    points = tf.gather(points, source)
    points = tf.where(is_same, points, items.values // ENTRY)
    combining = tables.combining.find(points)
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


def _replace(
    points: tf.Tensor, entries: tf.Tensor, first: tf.Tensor
) -> _Marked:
    """Replaces each character by the one of its entry."""
    kinds = entries & KIND_BITS
    return _Marked(points + entries // ENTRY, kinds, first, kinds == Kind.MARK)


def _drop_marks(marked: _Marked) -> Normalized:
    """Drops accents; the characters they belong to get their places."""
    points, kinds, first, is_joined = marked
    # `alignment` puts spaces around Chinese characters.
    is_apart = (kinds == Kind.SPACE) | (kinds == Kind.CHINESE)
    starts = ~is_joined | tf.concat([[True], is_apart[:-1]], axis=0)
    group = tf.cumsum(tf.cast(starts, tf.int32)) - 1
    ends = tf.roll(starts, -1, axis=0)
    kept = tf.where(kinds != Kind.MARK)[:, 0]
    group = tf.gather(group, kept)
    return Normalized(
        tf.gather(points, kept),
        tf.gather(kinds, kept),
        tf.gather(tf.boolean_mask(first, starts), group),
        tf.gather(tf.boolean_mask(first, ends), group),
    )
