"""`tasks.squad.squad_decoding.best_spans` in a graph."""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.tasks.squad.squad_decoding import DecodingOptions


class Windows(NamedTuple):
    """Parts of passages; int64 [R].

    Attributes:
        example: Which question each is of, ascending.
        start: Its first piece, counted in the passage.
        length: How many pieces it has.
        offset: Where in its row it begins.
    """

    example: Any
    start: Any
    length: Any
    offset: Any


class Spans(NamedTuple):
    """The spans of a question, best first; [N].

    Attributes:
        first: int64, the first piece, counted in the passage.
        last: int64, the last piece.
        start_logits: float64.
        end_logits: float64.
    """

    first: Any
    last: Any
    start_logits: Any
    end_logits: Any


def null_logits(logits: Any) -> Any:
    """Returns the logits [2] of [CLS] in the window that least believes it."""
    first = tf.cast(logits[:, 0], tf.float64)
    return first[tf.argmin(tf.reduce_sum(first, axis=1))]


def best_spans(
    windows: Windows, logits: Any, options: DecodingOptions
) -> Spans:
    """Returns the spans of one question, best first.

    Args:
        windows: R of them.
        logits: float32 [R, S, 2].
        options: How many starts and ends of each to combine.
    """
    number = tf.minimum(options.n_best_size, tf.shape(logits)[1])
    by_kind = tf.transpose(logits, [2, 0, 1])
    values, places = tf.math.top_k(by_kind, number)  # Stable.
    places = tf.cast(places, tf.int64)
    shift = (windows.start - windows.offset)[:, tf.newaxis]
    begin = windows.offset[:, tf.newaxis]
    is_inside = (places >= begin) & (
        places < begin + windows.length[:, tf.newaxis]
    )
    first, last = tf.unstack(places + shift)
    is_first, is_last = tf.unstack(is_inside)
    is_first &= _is_owner(windows, tf.where(is_first, first, 0))
    length = last[:, tf.newaxis, :] - first[:, :, tf.newaxis] + 1
    is_span = (length > 0) & (length <= options.max_answer_length)
    is_span &= is_first[:, :, tf.newaxis] & is_last[:, tf.newaxis, :]
    chosen = tf.where(is_span)
    starts = tf.gather(chosen, [0, 1], axis=1)
    ends = tf.gather(chosen, [0, 2], axis=1)
    values = tf.cast(values, tf.float64)
    start_logits = tf.gather_nd(values[0], starts)
    end_logits = tf.gather_nd(values[1], ends)
    scores = start_logits + end_logits
    order = tf.math.top_k(scores, tf.size(scores)).indices
    spans = Spans(
        tf.gather_nd(first, starts),
        tf.gather_nd(last, ends),
        start_logits,
        end_logits,
    )
    return Spans(*(tf.gather(column, order) for column in spans))


def _is_owner(windows: Windows, pieces: Any) -> Any:
    """Whether pieces have most context in their own window.

    See `tasks.squad.squad_features.find_owners`.

    Args:
        windows: R of them.
        pieces: int64 [R, N], counted in the passage.

    Returns:
        bool [R, N].
    """
    left = pieces[:, :, tf.newaxis] - windows.start
    right = windows.start + windows.length - 1 - pieces[:, :, tf.newaxis]
    context = tf.cast(tf.minimum(left, right), tf.float64)
    # In float64 and in this order, for ties to be ties.
    scores = context + 0.01 * tf.cast(windows.length, tf.float64)
    owner = tf.argmax(tf.where(context >= 0, scores, -1.0), axis=2)
    number = tf.range(tf.size(windows.start, tf.int64))
    return owner == number[:, tf.newaxis]
