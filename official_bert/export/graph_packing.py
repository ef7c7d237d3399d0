"""Token ids -> the model's inputs, as TensorFlow operations.

`inputs.text_inputs` and `tasks.long_texts` do the same for lists of ids.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official_bert.tasks.long_texts import LongDocuments


def pack(
    segments: Sequence[tf.RaggedTensor],
    seq_length: int | tf.Tensor,
    special_ids: tuple[int, int],
    padding_id: int = 0,
    *,
    ends_empty: bool = True,
) -> dict[str, tf.Tensor]:
    """Adds special tokens and padding; truncates segments that are too long.

    ```
    [[5, 6, 7]], [[8]], seq_length 8  ->  101  5  6  7 102  8 102  0    ids
                                            1  1  1  1   1  1   1  0    mask
                                            0  0  0  0   0  1   1  0    types
    ```

    Pairs are truncated as in the original implementation and in
    `tensorflow_text.RoundRobinTrimmer`, at the end of the longer segment.

    Args:
        segments: One or two, int32 [B, (tokens)] or [B, (words), (tokens)].
        seq_length: S, a number or int32 [].
        special_ids: The ids of [CLS] and [SEP].
        padding_id: The id of the padding after the last [SEP].
        ends_empty: Whether an empty second segment is followed by [SEP], as in
            TensorFlow's own preprocessors, but not in the original.

    Returns:
        `input_word_ids`, `input_mask` and `input_type_ids`, each int32 [B, S].
    """
    flat = [s.merge_dims(1, -1) if s.shape.rank > 2 else s for s in segments]
    ids_a, ids_b = [*flat, flat[0][:, :0]][:2]
    a, b = ids_a.row_lengths(), ids_b.row_lengths()
    always_ends = ends_empty and len(segments) == 2
    num_ends = tf.ones_like(b) if always_ends else tf.minimum(b, 1)
    room = tf.maximum(tf.cast(seq_length, tf.int64) - 2 - num_ends, 0)
    a, b = _truncated_lengths(a, b, room)
    if not always_ends:  # Truncation may have left nothing of B.
        num_ends = tf.minimum(b, 1)
    cls, sep = (tf.fill([ids_a.nrows(), 1], id_) for id_ in special_ids)
    end = _head(tf.RaggedTensor.from_tensor(sep), num_ends)
    ids = tf.concat([cls, _head(ids_a, a), sep, _head(ids_b, b), end], axis=1)
    mask = tf.sequence_mask(ids.row_lengths(), seq_length, tf.int32)
    shape = tf.stack([ids.nrows(), tf.cast(seq_length, tf.int64)])
    dense = ids.to_tensor(padding_id, shape=shape)
    return {
        "input_word_ids": tf.ensure_shape(dense, mask.shape),
        "input_mask": mask,
        "input_type_ids": mask - tf.sequence_mask(a + 2, seq_length, tf.int32),
    }


def cut(
    ids_a: Any, ids_b: Any, max_seq_length: int, long_documents: LongDocuments
) -> tuple[Any, Any, Any]:
    """Does the same as `long_texts.cut`, for int32 RaggedTensors [N, (tokens)].

    Returns two RaggedTensors of R rows, each of which fits into one sequence,
    and int64 [R]: the index of the text or pair that each row belongs to,
    ascending.
    """
    a, b = ids_a.row_lengths(), ids_b.row_lengths()
    room = max_seq_length - 2 - tf.minimum(b, 1)
    if long_documents.mode == "windows":
        return _windows(ids_a, ids_b, room, long_documents.stride)
    a, b = _truncated_lengths(a, b, room)
    is_head_tail = long_documents.mode == "head_tail"
    keep = _head_and_tail if is_head_tail else _head
    return keep(ids_a, a), keep(ids_b, b), tf.range(ids_a.nrows())


def place_windows(lengths: Any, sizes: Any, steps: Any) -> tuple[Any, Any]:
    """Returns the index of the text of each window, and its start, both [R].

    Texts of `lengths` [N] tokens are divided into overlapping windows of at
    most `sizes` tokens, `steps` apart; every text has at least one window. All
    values are int64; windows are in the order of texts.
    """
    counts = 1 + tf.maximum(-((sizes - lengths) // steps), 0)
    text = tf.repeat(tf.range(tf.size(counts, tf.int64)), counts)
    return text, tf.ragged.range(counts).values * tf.gather(steps, text)


def take(ids: Any, rows: Any, begins: Any, lengths: Any) -> Any:
    """Returns slices of the given rows [R] of a RaggedTensor."""
    starts = tf.gather(ids.row_starts(), rows) + begins
    indices = tf.ragged.range(starts, starts + lengths)
    return indices.with_values(tf.gather(ids.values, indices.values))


def _truncated_lengths(a: Any, b: Any, room: Any) -> tuple[Any, Any]:
    # The result is the same as if tokens were removed one by one from the
    # longer segment, or from B if both are equally long.
    a = tf.minimum(a, tf.maximum(room - b, (room + 1) // 2))
    return a, tf.minimum(b, room - a)


def _head(ids: Any, lengths: Any) -> Any:
    return take(ids, tf.range(ids.nrows()), tf.zeros_like(lengths), lengths)


def _head_and_tail(ids: Any, lengths: Any) -> Any:
    head = (lengths + 3) // 4
    tail = lengths - head
    rows = tf.range(ids.nrows())
    ends = take(ids, rows, ids.row_lengths() - tail, tail)
    return tf.concat([_head(ids, head), ends], axis=1)


def _windows(
    ids_a: Any, ids_b: Any, room: Any, stride: int
) -> tuple[Any, Any, Any]:
    """Returns windows of the longer text, each with the shorter text.

    The shorter text is truncated to half of the room.
    """
    a, b = ids_a.row_lengths(), ids_b.row_lengths()
    short, long = tf.minimum(tf.minimum(a, b), room // 2), tf.maximum(a, b)
    size = room - short
    step = tf.minimum(size, stride) if stride else size // 2
    example, begin = place_windows(long, size, tf.maximum(step, 1))
    # The last window is as long as the others.
    begin = tf.minimum(begin, tf.gather(tf.maximum(long - size, 0), example))
    length = tf.gather(tf.minimum(size, long), example)
    short = tf.gather(short, example)

    def window(ids: Any, is_cut: Any) -> Any:
        begins = tf.where(is_cut, begin, 0)
        return take(ids, example, begins, tf.where(is_cut, length, short))

    is_a_cut = tf.gather(a > b, example)
    return window(ids_a, is_a_cut), window(ids_b, ~is_a_cut), example
