"""Text -> normalized characters, as TensorFlow operations.

All texts of a batch are one row of code points, with a space after each:

```
texts       "Ça!"  "한"
points      Ç  a  !  _  한     _
normalized  c  a  !  _  ᄒ ᅡ ᆫ _
first       0  1  2  3  4  4  4  5      the code point that each comes from
last        0  1  2  3  4  4  4  5      the last one, with accents that follow
```

Texts need no other boundary than this space, because no rule here reaches
beyond a space. Spans follow `official_bert.tokenization.alignment`.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export.unicode_tables import (
    FINAL_SIGMA,
    SIGMA,
    Casing,
    Kind,
    UnicodeTables,
)


class Decoded(NamedTuple):
    """The N code points of a batch of texts."""

    points: tf.Tensor  # int32 [N], with a space after each text
    text_indices: tf.Tensor  # int64 [N], the text that each belongs to
    starts: tf.Tensor  # int64 [N], the byte of the text at which each begins
    limits: tf.Tensor  # int64 [N], the byte before which each ends


class Normalized(NamedTuple):
    """The M characters of words, and of the spaces between them."""

    points: tf.Tensor  # int32 [M], code points
    kinds: tf.Tensor  # int32 [M], `Kind`s other than MARK
    first: tf.Tensor  # int64 [M], index of the first code point of each
    last: tf.Tensor  # int64 [M], index of the last code point of each


def decode(texts: tf.Tensor) -> Decoded:
    """Returns the characters of texts, string [B], in UTF-8.

    Bytes that are not valid are dropped, as in `FullTokenizer`.
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
    """Returns the normalized characters of `Decoded.points`."""
    points = tf.cond(
        tf.reduce_any(points == SIGMA),
        lambda: _replace_final_sigmas(points, tables),
        lambda: points,
    )
    expanded = tf.gather(tables.expansions, tables.expansion_of.find(points))
    first = expanded.value_rowids()
    is_same = expanded.values == 0
    points = tf.where(is_same, tf.gather(points, first), expanded.values)
    return _drop_marks(points, first, tables)


def _replace_final_sigmas(
    points: tf.Tensor, tables: UnicodeTables
) -> tf.Tensor:
    """Replaces each "Σ" that is the last letter of its word by "ς".

    Such a "Σ" has a cased letter before it and none after it. Ignored
    characters between them do not count.
    """
    casing = tables.casing.find(points)
    counted = tf.where(casing != Casing.IGNORED)[:, 0]
    is_cased = tf.gather(casing, counted) == Casing.CASED
    follows = tf.concat([[False], is_cased[:-1]], axis=0)
    precedes = tf.concat([is_cased[1:], [False]], axis=0)
    is_sigma = tf.gather(points, counted) == SIGMA
    final = tf.boolean_mask(counted, is_sigma & follows & ~precedes)
    return tf.tensor_scatter_nd_update(
        points, final[:, None], tf.fill(tf.shape(final), FINAL_SIGMA)
    )


def _drop_marks(
    points: tf.Tensor, first: tf.Tensor, tables: UnicodeTables
) -> Normalized:
    """Drops accents, and adds them to the spans of the characters before them.

    `points` are decomposed characters. `first` is the index in `Decoded` of the
    code point that each comes from.
    """
    kinds = tables.kinds.find(points)
    combining = tables.combining.find(points)
    is_unsorted = (combining[1:] > 0) & (combining[1:] < combining[:-1])
    points, kinds, is_moved = tf.cond(
        tf.reduce_any(is_unsorted),
        lambda: _sort_marks(points, kinds, combining, is_unsorted),
        lambda: (points, kinds, tf.zeros_like(points, tf.bool)),
    )
    # Characters in one group have the same span.
    is_joined = (kinds == Kind.MARK) | is_moved
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


def _sort_marks(
    points: tf.Tensor, kinds: tf.Tensor, combining: tf.Tensor, is_unsorted: Any
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Sorts the marks after each character by their combining classes.

    `is_unsorted` says for each character except the first whether it is a mark
    whose class is lower than the class before it. The third result is true for
    marks in a chunk (the text between two spaces) in which sorting changes the
    order. Such a mark shares the span of the character before it.
    """
    base = tf.cumsum(tf.cast(combining == 0, tf.int64))
    order = tf.argsort(base * 256 + tf.cast(combining, tf.int64), stable=True)
    chunks = tf.cumsum(tf.cast(kinds == Kind.SPACE, tf.int32))
    is_mixed = tf.math.unsorted_segment_max(
        tf.cast(is_unsorted, tf.int32), chunks[1:], chunks[-1] + 1
    )
    is_moved = (tf.gather(is_mixed, chunks) > 0) & (combining > 0)
    return tf.gather(points, order), tf.gather(kinds, order), is_moved
