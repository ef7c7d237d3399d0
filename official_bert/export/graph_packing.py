"""Pieces as the encoder reads them: [CLS] a [SEP] b [SEP], and padding."""

from collections.abc import Sequence

import tensorflow as tf

from official_bert.inputs.text_inputs import SpecialIds


def pack(
    segments: Sequence[tf.RaggedTensor],
    seq_length: int | tf.Tensor,
    marks: SpecialIds,
    padding_id: int = 0,
    *,
    ends_empty: bool = True,
) -> dict[str, tf.Tensor]:
    """Frames one segment or two with their marks.

    ```
    [[5, 6, 7]], [[8]], seq_length 8  ->  101  5  6  7 102  8 102  0    ids
                                            1  1  1  1   1  1   1  0    mask
                                            0  0  0  0   0  1   1  0    types
    ```

    Of two that are too long together, the longer one loses its end, both by
    turns once they are equally long: as in the 2018 release, which is what
    `tensorflow_text.RoundRobinTrimmer` does with two.

    Args:
        segments: One or two, int32 [B, (pieces)].
        seq_length: S; a number or int32 [].
        marks: The ids of [CLS] and [SEP].
        padding_id: What follows the last [SEP].
        ends_empty: Whether a second segment without pieces has a [SEP] all the
            same, as in TensorFlow's own preprocessors. The 2018 release has
            none, so that a pair without its second text is a single text.

    Returns:
        `input_word_ids`, `input_mask` and `input_type_ids`, each int32 [B, S].
    """
    segments = [
        s.merge_dims(1, -1) if s.shape.rank > 2 else s for s in segments
    ]
    num_ends = [_num_ends(s, n, ends_empty) for n, s in enumerate(segments)]
    room = tf.cast(seq_length, tf.int64) - 1 - tf.add_n(num_ends)
    segments = _shortened(segments, tf.maximum(room, 0))
    parts = [_marks(tf.ones_like(room), marks.cls)]
    for number, segment in enumerate(segments):
        ends = _num_ends(segment, number, ends_empty)
        parts += [segment, _marks(ends, marks.sep)]
    ids = tf.concat(parts, axis=1)
    is_a = _mask(segments[0].row_lengths() + 2, seq_length)  # With its marks.
    mask = _mask(ids.row_lengths(), seq_length)
    shape = tf.stack([ids.nrows(), tf.cast(seq_length, tf.int64)])
    dense = ids.to_tensor(padding_id, shape=shape)
    return {
        "input_word_ids": tf.ensure_shape(dense, mask.shape),
        "input_mask": mask,
        "input_type_ids": mask - is_a,
    }


def _num_ends(
    segment: tf.RaggedTensor, number: int, ends_empty: bool
) -> tf.Tensor:
    """Returns how many [SEP] there are after a segment, int64 [B]."""
    lengths = segment.row_lengths()
    if number == 0 or ends_empty:
        return tf.ones_like(lengths)
    return tf.minimum(lengths, 1)


def _shortened(
    segments: Sequence[tf.RaggedTensor], room: tf.Tensor
) -> list[tf.RaggedTensor]:
    """Cuts the ends of segments; rows keep at most `room` [B] pieces."""
    if len(segments) == 1:
        return [_first_pieces(segments[0], room)]
    segment_a, segment_b = segments
    free_a = room - segment_b.row_lengths()
    free_b = room - segment_a.row_lengths()
    return [
        _first_pieces(segment_a, tf.maximum(free_a, room - room // 2)),
        _first_pieces(segment_b, tf.maximum(free_b, room // 2)),
    ]


def _first_pieces(
    segment: tf.RaggedTensor, limits: tf.Tensor
) -> tf.RaggedTensor:
    """Returns the first pieces of each row, at most `limits` [B] of them."""
    places = tf.ragged.range(segment.row_lengths())
    is_kept = places.values < tf.gather(limits, segment.value_rowids())
    return tf.ragged.boolean_mask(segment, segment.with_values(is_kept))


def _marks(lengths: tf.Tensor, mark: int) -> tf.RaggedTensor:
    """Returns rows of `lengths` [B] marks."""
    return tf.RaggedTensor.from_row_lengths(
        tf.fill([tf.reduce_sum(lengths)], mark), lengths, validate=False
    )


def _mask(lengths: tf.Tensor, seq_length: int | tf.Tensor) -> tf.Tensor:
    """Returns ones up to `lengths` [B], int32 [B, S]."""
    return tf.sequence_mask(lengths, seq_length, tf.int32)
