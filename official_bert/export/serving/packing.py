"""Texts as BERT reads them, made in a graph.

What `text_inputs` and `tasks.documents` do to lists, here with Tensors of
many texts at once; the rows are the same.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export import graph_packing as packing
from official_bert.inputs.text_inputs import SpecialIds
from official_bert.tasks.documents import LongDocuments

# Rows in memory at once; of a long text there may be hundreds.
_ROWS_AT_ONCE = 32


class Pairs(NamedTuple):
    """What fits into rows.

    Attributes:
        ids_a: int32 RaggedTensor [R, (pieces)].
        ids_b: Likewise; empty for single texts.
        example: int64 [R], which text each row is of, ascending.
    """

    ids_a: Any
    ids_b: Any
    example: Any


def take(ids: Any, rows: Any, begins: Any, lengths: Any) -> Any:
    """Returns parts of some rows of a RaggedTensor.

    Args:
        ids: RaggedTensor [N, (pieces)].
        rows: int64 [R], which row each part is of.
        begins: int64 [R], where in it.
        lengths: int64 [R].

    Returns:
        RaggedTensor [R, (length)].
    """
    starts = tf.gather(ids.row_starts(), rows) + begins
    places = tf.ragged.range(starts, starts + lengths)
    return places.with_values(tf.gather(ids.values, places.values))


def pack(ids_a: Any, ids_b: Any, marks: SpecialIds) -> dict[str, Any]:
    """Returns `[CLS] a [SEP]`, or `[CLS] a [SEP] b [SEP]` if there is a b.

    Args:
        ids_a: int32 RaggedTensor [R, (pieces)].
        ids_b: Likewise.
        marks: What to put between.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, int32 [R, S], where S is
        the length of the longest row.
    """
    a, b = ids_a.row_lengths(), ids_b.row_lengths()
    lengths = a + b + tf.where(b > 0, tf.constant(3, tf.int64), 2)
    longest = tf.maximum(tf.reduce_max(lengths), 2)  # There may be no row.
    packed = packing.pack([ids_a, ids_b], longest, marks, ends_empty=False)
    names = ("input_ids", "input_mask", "segment_ids")
    return dict(zip(names, packed.values(), strict=True))


def cut(
    ids_a: Any, ids_b: Any, max_seq_length: int, how: LongDocuments
) -> Pairs:
    """Does what `documents.cut` does.

    Args:
        ids_a: int32 RaggedTensor [N, (pieces)].
        ids_b: Likewise; empty for single texts.
        max_seq_length: With [CLS] and [SEP]s.
        how: What to do with texts that are too long.
    """
    a, b = ids_a.row_lengths(), ids_b.row_lengths()
    room = max_seq_length - tf.where(b > 0, 3, 2)
    room = tf.cast(room, tf.int64)
    if how.mode == "windows":
        return _windows(ids_a, ids_b, room, how.stride)
    rows = tf.range(ids_a.nrows())
    # The longer one is shortened, B if both are the same, until both fit.
    kept_a = tf.minimum(a, tf.maximum(room - b, (room + 1) // 2))
    kept_b = tf.minimum(b, room - kept_a)
    keep = _head_and_tail if how.mode == "head_tail" else _head
    return Pairs(keep(ids_a, rows, kept_a), keep(ids_b, rows, kept_b), rows)


def _head(ids: Any, rows: Any, lengths: Any) -> Any:
    return take(ids, rows, tf.zeros_like(lengths), lengths)


def _head_and_tail(ids: Any, rows: Any, lengths: Any) -> Any:
    head = (lengths + 3) // 4
    tail = lengths - head
    parts = [_head(ids, rows, head)]
    parts.append(take(ids, rows, ids.row_lengths() - tail, tail))
    return tf.concat(parts, axis=1)


def _windows(ids_a: Any, ids_b: Any, room: Any, stride: int) -> Pairs:
    """Returns overlapping windows of the longer text with the other one."""
    a, b = ids_a.row_lengths(), ids_b.row_lengths()
    is_a_longer = a > b
    short, long = tf.minimum(a, b), tf.maximum(a, b)
    short = tf.where(a + b <= room, short, tf.minimum(short, room // 2))
    size = room - short
    step = (
        tf.minimum(size, tf.constant(stride, tf.int64)) if stride else size // 2
    )
    step = tf.maximum(step, 1)
    last = tf.maximum(long - size, 0)
    counts = (last + step - 1) // step + 1
    example = tf.repeat(tf.range(ids_a.nrows()), counts)

    def of_row(values: Any) -> Any:
        return tf.gather(values, example)

    number = tf.ragged.range(counts).values
    begin = tf.minimum(number * of_row(step), of_row(last))
    part = tf.minimum(of_row(size), of_row(long) - begin)
    whole, none = of_row(short), tf.zeros_like(begin)
    is_a_cut = of_row(is_a_longer)
    return Pairs(
        take(
            ids_a,
            example,
            tf.where(is_a_cut, begin, none),
            tf.where(is_a_cut, part, whole),
        ),
        take(
            ids_b,
            example,
            tf.where(is_a_cut, none, begin),
            tf.where(is_a_cut, whole, part),
        ),
        example,
    )


def logits_in_blocks(model: Any, rows: dict[str, Any]) -> Any:
    """Runs a model on any number of rows, some at a time.

    Args:
        model: Of `modeling.finetuning_models`, other than the one for choices.
        rows: As `pack` returns them; there may be none.

    Returns:
        float32 logits of all rows, [R, ...].
    """
    begin = tf.constant(0)
    number = tf.shape(rows["input_ids"])[0]
    # What the model says of nothing: of the right shape.
    logits = _of_block(model, rows, begin, begin)
    shape = tf.TensorShape([None, *logits.shape[1:]])
    while begin < number:
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(logits, shape)]
        )
        end = tf.minimum(begin + _ROWS_AT_ONCE, number)
        block = _of_block(model, rows, begin, end)
        logits = tf.concat([logits, block], axis=0)
        begin = end
    return logits


def _of_block(model: Any, rows: dict[str, Any], begin: Any, end: Any) -> Any:
    block = {name: values[begin:end] for name, values in rows.items()}
    return model(block, training=False)
