"""Logits -> the answer to one question, as TensorFlow operations.

Spans are scored, combined and ranked as by `tasks.squad`. The text of a span is
cut from the passage where its first token begins and its last token ends.
`predict.py` searches for the span's tokens in the words around it, as the
original implementation does, and returns those words if the search fails.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export.serving.signatures import Tensors
from official_bert.tasks.squad.squad_decoding import (
    NO_CANDIDATE_ODDS,
    DecodingOptions,
)
from official_bert.tasks.squad.squad_examples import SPACES


class Passage(NamedTuple):
    """The passage of a question."""

    text: Any  # string [], in UTF-8
    starts: Any  # int64 [tokens], the byte at which each begins
    limits: Any  # int64 [tokens], the byte before which each ends


class Windows(NamedTuple):
    """Parts of a passage that the model reads in turn; each int64 [R]."""

    start: Any  # The first token, counted in the passage.
    length: Any  # In tokens.
    offset: Any  # The position of the first token in its row.


class _Candidates(NamedTuple):
    """Spans of the passage; N of them."""

    texts: Any  # string
    begins: Any  # int64, the byte of the passage, -1 for none
    ends: Any  # int64
    start_logits: Any  # float64
    end_logits: Any  # float64

    def take(self, indices: Any) -> "_Candidates":
        return _Candidates(*(tf.gather(column, indices) for column in self))

    @property
    def scores(self) -> Any:
        return self.start_logits + self.end_logits


def output_signature(options: DecodingOptions) -> dict[str, tf.TensorSpec]:
    """Returns shapes and dtypes of what `choose_answer` returns."""
    number = options.n_best_size + options.version_2_with_negative
    signature = {
        "answer": tf.TensorSpec([], tf.string),
        "start": tf.TensorSpec([], tf.int32),
        "end": tf.TensorSpec([], tf.int32),
        "probability": tf.TensorSpec([], tf.float32),
        "score": tf.TensorSpec([], tf.float32),
        "n_best_answers": tf.TensorSpec([number], tf.string),
        "n_best_probabilities": tf.TensorSpec([number], tf.float32),
    }
    if options.version_2_with_negative:
        signature["null_odds"] = tf.TensorSpec([], tf.float32)
    return signature


def choose_answer(
    passage: Passage, windows: Windows, logits: Any, options: DecodingOptions
) -> Tensors:
    """Chooses the answer to one question.

    Args:
        passage: The text that the question is about.
        windows: R parts of it, at least one.
        logits: float32 [R, S, 2].
        options: How to choose.

    Returns:
        See `output_signature`; the outputs of `SquadSignatures`.
    """
    candidates = _best_spans(passage, windows, logits, options)
    if not options.version_2_with_negative:
        number = tf.maximum(tf.size(candidates.texts), 1)
        zero = tf.constant(0.0, tf.float64)  # "empty" if there are no others.
        candidates = _append(candidates, "empty", zero, zero)
        best = _best_texts(candidates.take(tf.range(number)))
        best = best.take(tf.range(tf.size(best.texts))[: options.n_best_size])
        return _describe(passage, best, tf.constant(0), options)
    null = _null_logits(windows, logits)
    best = _best_texts(_append(candidates, "", null[0], null[1]))
    is_text = best.texts != ""
    rank = tf.range(tf.size(best.texts))
    kept = tf.where((rank < options.n_best_size) | ~is_text)[:, 0]
    best, is_text = best.take(kept), tf.gather(is_text, kept)
    first = tf.argmax(is_text, output_type=tf.int32)
    none = tf.argmax(~is_text, output_type=tf.int32)
    odds = tf.where(
        tf.reduce_any(is_text),
        null[0] + null[1] - best.start_logits[first] - best.end_logits[first],
        NO_CANDIDATE_ODDS,
    )
    is_answered = odds <= options.null_score_diff_threshold
    chosen = tf.where(is_answered & is_text[first], first, none)
    answer = _describe(passage, best, chosen, options)
    return {**answer, "null_odds": tf.cast(odds, tf.float32)}


def cut(text: Any, begins: Any, ends: Any) -> Any:
    """Cuts spans [N] of bytes from a text; words have one space between."""
    spans = tf.strings.substr(text, begins, ends - begins)
    return tf.strings.regex_replace(spans, f"[{SPACES}]+", " ")


def _best_spans(
    passage: Passage, windows: Windows, logits: Any, options: DecodingOptions
) -> _Candidates:
    """Returns the spans of `squad_decoding._best_spans`, in no order."""
    number = tf.minimum(options.n_best_size, tf.shape(logits)[1])
    # Of equal logits, those at the lower positions.
    values, positions = tf.math.top_k(tf.transpose(logits, [2, 0, 1]), number)
    start = windows.start[:, tf.newaxis]
    shift = start - windows.offset[:, tf.newaxis]
    tokens = tf.cast(positions, tf.int64) + shift
    limit = start + windows.length[:, tf.newaxis]
    is_first, is_last = tf.unstack((tokens >= start) & (tokens < limit))
    first, last = tf.unstack(tokens)
    is_first &= _has_most_context(windows, first)
    length = last[:, tf.newaxis, :] - first[:, :, tf.newaxis] + 1
    is_span = (length > 0) & (length <= options.max_answer_length)
    is_span &= is_first[:, :, tf.newaxis] & is_last[:, tf.newaxis, :]
    row, i, j = tf.unstack(tf.where(is_span), axis=1)
    starts, ends = tf.stack([row, i], axis=1), tf.stack([row, j], axis=1)
    start_values, end_values = tf.unstack(tf.cast(values, tf.float64))
    begin = tf.gather(passage.starts, tf.gather_nd(first, starts))
    end = tf.gather(passage.limits, tf.gather_nd(last, ends))
    return _Candidates(
        cut(passage.text, begin, end),
        begin,
        end,
        tf.gather_nd(start_values, starts),
        tf.gather_nd(end_values, ends),
    )


def _has_most_context(windows: Windows, tokens: Any) -> Any:
    """Whether tokens [R, N] have most context in their own window.

    See `tasks.squad.squad_features.find_owners`.
    """
    left = tokens[:, :, tf.newaxis] - windows.start
    right = windows.start + windows.length - 1 - tokens[:, :, tf.newaxis]
    context = tf.cast(tf.minimum(left, right), tf.float64)
    # In float64 and in this order, for ties to be ties.
    scores = context + 0.01 * tf.cast(windows.length, tf.float64)
    owner = tf.argmax(tf.where(context >= 0, scores, -1.0), axis=2)
    number = tf.range(tf.size(windows.start, tf.int64))
    return owner == number[:, tf.newaxis]


def _null_logits(windows: Windows, logits: Any) -> Any:
    """Returns the logits [2] of [CLS] in the window that scores it lowest."""
    first = tf.cast(logits[:, 0], tf.float64)
    lowest = first[tf.argmin(tf.reduce_sum(first, axis=1))]
    # 0 for a passage without tokens, whose only window `predict.py` skips.
    return tf.where(windows.length[0] > 0, lowest, 0.0)


def _append(candidates: _Candidates, text: str, start: Any, end: Any) -> Any:
    nowhere = tf.constant(-1, tf.int64)
    added = (tf.constant(text), nowhere, nowhere, start, end)
    columns = zip(candidates, added, strict=True)
    return _Candidates(*(tf.concat([c, [one]], 0) for c, one in columns))


def _best_texts(candidates: _Candidates) -> _Candidates:
    """Returns the best candidate of each text, best first."""
    # Of equal scores, `top_k` takes the first.
    number = tf.size(candidates.scores)
    order = tf.math.top_k(candidates.scores, number).indices
    ranked = candidates.take(order)
    texts, text_of = tf.unique(ranked.texts)
    return ranked.take(
        tf.math.unsorted_segment_min(tf.range(number), text_of, tf.size(texts))
    )


def _describe(
    passage: Passage, best: _Candidates, chosen: Any, options: DecodingOptions
) -> Tensors:
    """Returns the outputs if `best[chosen]` is the answer."""
    probabilities = tf.cast(tf.nn.softmax(best.scores), tf.float32)
    [number] = output_signature(options)["n_best_answers"].shape
    missing = [[0, number - tf.size(best.texts)]]
    bounds = tf.stack([best.begins[chosen], best.ends[chosen]])
    zeros = tf.zeros_like(bounds)
    before = tf.strings.substr(passage.text, zeros, tf.maximum(bounds, 0))
    characters = tf.strings.length(before, "UTF8_CHAR")
    start, end = tf.unstack(tf.where(bounds < 0, -1, characters))
    return {
        "answer": best.texts[chosen],
        "start": start,
        "end": end,
        "probability": probabilities[chosen],
        "score": tf.cast(best.scores[chosen], tf.float32),
        "n_best_answers": tf.pad(best.texts, missing, constant_values=""),
        "n_best_probabilities": tf.pad(probabilities, missing),
    }
