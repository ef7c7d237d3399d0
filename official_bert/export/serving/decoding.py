"""`tasks.squad.squad_decoding` in a graph: from logits to an answer."""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export.serving import final_text
from official_bert.export.serving.passages import Passage
from official_bert.export.serving.signatures import Tensors
from official_bert.export.serving.span_decoding import (
    Spans,
    Windows,
    best_spans,
    null_logits,
)
from official_bert.tasks.squad.squad_decoding import (
    NO_CANDIDATE_ODDS,
    DecodingOptions,
)


def output_signature(options: DecodingOptions) -> dict[str, tf.TensorSpec]:
    """Returns what `answer` returns."""
    has_null = options.version_2_with_negative
    number = options.n_best_size + has_null
    signature = {
        "answer": tf.TensorSpec([], tf.string),
        "start": tf.TensorSpec([], tf.int32),
        "end": tf.TensorSpec([], tf.int32),
        "probability": tf.TensorSpec([], tf.float32),
        "score": tf.TensorSpec([], tf.float32),
        "n_best_answers": tf.TensorSpec([number], tf.string),
        "n_best_probabilities": tf.TensorSpec([number], tf.float32),
    }
    if has_null:
        signature["null_odds"] = tf.TensorSpec([], tf.float32)
    return signature


class _Candidates(NamedTuple):
    """Texts that may be the answer, best first, none twice; [N].

    Attributes:
        texts: string.
        places: int32 [N, 2], between which characters of the passage.
        start_logits: float64.
        end_logits: float64.
    """

    texts: Any
    places: Any
    start_logits: Any
    end_logits: Any

    def and_(self, text: Any, places: Any, start: Any, end: Any) -> Any:
        """Returns these and one more."""
        return _Candidates(
            tf.concat([self.texts, [text]], 0),
            tf.concat([self.places, [places]], 0),
            tf.concat([self.start_logits, [start]], 0),
            tf.concat([self.end_logits, [end]], 0),
        )


def answer(
    passage: Passage,
    windows: Windows,
    logits: Any,
    options: DecodingOptions,
    pieces: Any,
) -> Tensors:
    """Chooses the answer to one question, as `predict.py` does.

    Args:
        passage: What it is about.
        windows: R parts of it.
        logits: float32 [R, S, 2].
        options: How to choose.
        pieces: string [V], the vocabulary.

    Returns:
        What `output_signature` says.
    """
    if tf.equal(tf.shape(logits)[0], 0):  # No word, and so no answer.
        found = _nothing(options)
    else:
        spans = best_spans(windows, logits, options)
        found = _choose(passage, spans, null_logits(logits), options, pieces)
    return found


def _choose(
    passage: Passage,
    spans: Spans,
    null: Any,
    options: DecodingOptions,
    pieces: Any,
) -> Tensors:
    """Makes texts of spans, and an answer of the best ones."""
    texts = _best_texts(passage, spans, null, options, pieces)
    if not options.version_2_with_negative:
        if tf.equal(tf.size(texts.texts), 0):
            found = _nothing(options)
        else:
            found = _described(texts, tf.constant(0), options)
        return found
    is_text = texts.texts != ""
    best = tf.argmax(is_text, output_type=tf.int32)  # The first one.
    odds = tf.reduce_sum(null) - texts.start_logits[best]
    odds -= texts.end_logits[best]
    export_text = tf.reduce_any(is_text)
    odds = tf.where(export_text, odds, NO_CANDIDATE_ODDS)
    is_believed = export_text & (odds <= options.null_score_diff_threshold)
    none = tf.argmax(~is_text, output_type=tf.int32)
    found = _described(texts, tf.where(is_believed, best, none), options)
    return {**found, "null_odds": tf.cast(odds, tf.float32)}


def _best_texts(
    passage: Passage,
    spans: Spans,
    null: Any,
    options: DecodingOptions,
    pieces: Any,
) -> _Candidates:
    """Returns the first of each text; in SQuAD 2.0 with "" among them."""
    has_null = options.version_2_with_negative
    number = tf.size(spans.first)
    place = number  # Where among the spans "no answer" stands.
    if has_null:
        scores = spans.start_logits + spans.end_logits
        is_better = tf.cast(scores >= tf.reduce_sum(null), tf.int32)
        place = tf.reduce_sum(is_better)
    nowhere = tf.constant([-1, -1])
    found = _Candidates(
        tf.zeros([0], tf.string),
        tf.zeros([0, 2], tf.int32),
        tf.zeros([0], tf.float64),
        tf.zeros([0], tf.float64),
    )
    index = tf.constant(0)
    while (index < number + int(has_null)) & (
        tf.size(found.texts) < options.n_best_size
    ):
        tf.autograph.experimental.set_loop_options(
            shape_invariants=[(found, _SHAPES)]
        )
        span = index - tf.cast(index > place, tf.int32)
        if has_null & (index == place):
            text, places = tf.constant(""), nowhere
            start_logit, end_logit = null[0], null[1]
        else:
            text, places = final_text.of_span(
                passage, spans.first[span], spans.last[span], pieces
            )
            start_logit = spans.start_logits[span]
            end_logit = spans.end_logits[span]
        if not tf.reduce_any(found.texts == text):
            found = found.and_(text, places, start_logit, end_logit)
        index += 1
    if has_null and not tf.reduce_any(found.texts == ""):
        found = found.and_("", nowhere, null[0], null[1])
    return found


_SHAPES = _Candidates(
    tf.TensorShape([None]),
    tf.TensorShape([None, 2]),
    tf.TensorShape([None]),
    tf.TensorShape([None]),
)


def _described(
    texts: _Candidates, chosen: Any, options: DecodingOptions
) -> Tensors:
    """Returns what is said if one of the texts is the answer."""
    scores = texts.start_logits + texts.end_logits
    probabilities = tf.cast(tf.nn.softmax(scores), tf.float32)
    [number] = output_signature(options)["n_best_answers"].shape
    missing = [[0, number - tf.size(texts.texts)]]
    return {
        "answer": texts.texts[chosen],
        "start": texts.places[chosen, 0],
        "end": texts.places[chosen, 1],
        "probability": probabilities[chosen],
        "score": tf.cast(scores[chosen], tf.float32),
        "n_best_answers": tf.pad(texts.texts, missing, constant_values=""),
        "n_best_probabilities": tf.pad(probabilities, missing),
    }


def _nothing(options: DecodingOptions) -> Tensors:
    """Returns what is said where no span can be the answer."""
    [number] = output_signature(options)["n_best_answers"].shape
    # "empty" as in 2018, where every question has an answer.
    answer = "" if options.version_2_with_negative else "empty"
    found = {
        "answer": tf.constant(answer),
        "start": tf.constant(-1),
        "end": tf.constant(-1),
        "probability": tf.constant(1.0),
        "score": tf.constant(0.0),
        "n_best_answers": tf.constant([answer] + [""] * (number - 1)),
        "n_best_probabilities": tf.constant([1.0] + [0.0] * (number - 1)),
    }
    if options.version_2_with_negative:
        found["null_odds"] = tf.constant(NO_CANDIDATE_ODDS)
    return found
