"""Signatures for questions about passages.

Spans are scored, combined and ranked as in `tasks.squad`. The text of a span is
cut from the passage where its first token begins and its last token ends.
`predict.py` searches for the span's tokens in the text between white space, as
the original implementation does, and returns this text if the search fails.
"""

from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.export import graph_packing
from official_bert.export.serving.signatures import (
    TaskSignatures,
    Tensors,
    strings,
)
from official_bert.tasks.squad.decoding import (
    NO_CANDIDATE_ODDS,
    DecodingOptions,
)
from official_bert.tasks.squad.examples import SPACES
from official_bert.tasks.squad.features import NUM_SPECIAL


class Passage(NamedTuple):
    """The passage of a question."""

    text: Any  # string [], in UTF-8
    starts: Any  # int64 [tokens], the byte at which each begins
    limits: Any  # int64 [tokens], the byte before which each ends


class Windows(NamedTuple):
    """R windows of a passage, which the model reads in turn; each int64 [R]."""

    start: Any  # The first token, counted in the passage.
    length: Any  # In tokens.
    offset: Any  # The position of the first token in its row.


class SquadSignatures(TaskSignatures):
    """Signatures of a `tasks.squad.task.SquadTask`.

    Outputs of `serving_default` for each question:
        answer: [B], "" for no answer.
        start, end: int32 [B], in characters: the answer is
            `context[start:end]`; -1 for no answer.
        probability: [B], in SQuAD 1.1 0 for no answer.
        score: [B], the sum of the answer's logits.
        n_best_answers, n_best_probabilities: [B, N], best first, then "" and 0.
        null_odds: [B], in SQuAD 2.0.

    Outputs for ids: `start_logits` and `end_logits` [B, S].
    """

    texts = strings("question"), strings("context")

    def _outputs(self, logits: Any) -> Tensors:
        return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

    def from_text(self, question: Any, context: Any) -> Tensors:
        """`serving_default`: strings [B]."""
        # Offsets count in the text without bytes that are not UTF-8, because
        # the tokenizer drops them.
        context = tf.strings.unicode_transcode(
            context, "UTF-8", "UTF-8", errors="ignore"
        )
        tokens = self.tokenizer.tokenize_words_with_offsets(
            tf.concat([context, question], axis=0)
        )
        num_questions = tf.size(question)
        ids, starts, limits = (by_word.merge_dims(1, 2) for by_word in tokens)
        question_ids = ids[num_questions:, : self.task.max_query_length]
        ids, starts, limits = (
            values[:num_questions] for values in (ids, starts, limits)
        )
        example, windows = self._make_windows(ids, question_ids)
        inputs = self.features(
            tf.gather(question_ids, example),
            graph_packing.take(ids, example, windows.start, windows.length),
            self.max_seq_length if self.task.pad_to == "max" else None,
        )
        logits = self.logits_in_blocks(inputs, [None, None, 2])
        if self.task.pad_to == "bucket":  # No span begins or ends in padding.
            is_token = inputs[1][:, :, tf.newaxis] == 1
            logits = tf.where(is_token, logits, -float("inf"))

        def by_question(values: Any) -> tf.RaggedTensor:
            return tf.RaggedTensor.from_value_rowids(
                values, example, tf.size(question, tf.int64)
            )

        decoding = self.task.decoding

        def answer(row: tuple[Passage, Windows, Any]) -> Tensors:
            return choose_answer(*row, decoding)

        return tf.map_fn(
            answer,
            (
                Passage(context, starts, limits),
                Windows(*map(by_question, windows)),
                by_question(logits),
            ),
            fn_output_signature=output_signature(decoding),
        )

    def _make_windows(self, ids: Any, question_ids: Any) -> tuple[Any, Windows]:
        """Cuts passages into the windows of `tasks.squad.features`.

        Here a passage without tokens has an empty window, so that every
        question has one. Also returns int64 [R], the question of each window.
        """
        room = self.max_seq_length - NUM_SPECIAL - question_ids.row_lengths()
        example, start = graph_packing.place_windows(
            ids.row_lengths(), room, tf.minimum(room, self.task.doc_stride)
        )
        remaining = tf.gather(ids.row_lengths(), example) - start
        length = tf.minimum(remaining, tf.gather(room, example))
        offset = tf.gather(question_ids.row_lengths() + 2, example)
        return example, Windows(start, length, offset)


class _Candidates(NamedTuple):
    """N spans of the passage."""

    texts: Any  # string, with single spaces; equal ones are one answer
    begins: Any  # int64, the byte of the passage, -1 for none
    ends: Any  # int64
    start_logits: Any  # float64
    end_logits: Any  # float64

    def take(self, indices: Any) -> "_Candidates":
        return _Candidates(*(tf.gather(column, indices) for column in self))

    def append(self, text: str, start: Any, end: Any) -> "_Candidates":
        columns = zip(self, (text, -1, -1, start, end), strict=True)
        return _Candidates(
            *(tf.concat([c, [tf.cast(v, c.dtype)]], 0) for c, v in columns)
        )

    @property
    def scores(self) -> Any:
        return self.start_logits + self.end_logits


def output_signature(options: DecodingOptions) -> dict[str, tf.TensorSpec]:
    """Returns the shapes and dtypes of the outputs of `choose_answer`."""
    num_answers = options.n_best_size + options.version_2_with_negative
    scalars = {
        "answer": tf.string,
        "start": tf.int32,
        "end": tf.int32,
        "probability": tf.float32,
        "score": tf.float32,
    }
    if options.version_2_with_negative:
        scalars["null_odds"] = tf.float32
    return {
        **{name: tf.TensorSpec([], dtype) for name, dtype in scalars.items()},
        "n_best_answers": tf.TensorSpec([num_answers], tf.string),
        "n_best_probabilities": tf.TensorSpec([num_answers], tf.float32),
    }


def choose_answer(
    passage: Passage, windows: Windows, logits: Any, options: DecodingOptions
) -> Tensors:
    """Returns the outputs of `SquadSignatures` for one question.

    `logits` are float32 [R, S, 2], of R windows, at least one.
    """
    candidates = _best_spans(passage, windows, logits, options)
    if not options.version_2_with_negative:
        best = _best_texts(candidates)
        num_answers = tf.clip_by_value(
            tf.size(best.texts), 1, options.n_best_size
        )
        # No answer is chosen only if there are no other candidates.
        best = best.append("", 0.0, 0.0).take(tf.range(num_answers))
        return _describe(passage, best, tf.constant(0), options)
    null = _null_logits(windows, logits)
    best = _best_texts(candidates.append("", null[0], null[1]))
    is_text = best.texts != ""
    rank = tf.range(tf.size(best.texts))
    kept = tf.where((rank < options.n_best_size) | ~is_text)[:, 0]
    best, is_text = best.take(kept), tf.gather(is_text, kept)
    top = tf.argmax(is_text, output_type=tf.int32)
    no_answer = tf.argmax(~is_text, output_type=tf.int32)
    odds = tf.where(
        tf.reduce_any(is_text),
        null[0] + null[1] - best.start_logits[top] - best.end_logits[top],
        NO_CANDIDATE_ODDS,
    )
    is_answered = odds <= options.null_score_diff_threshold
    chosen = tf.where(is_answered & is_text[top], top, no_answer)
    answer = _describe(passage, best, chosen, options)
    return {**answer, "null_odds": tf.cast(odds, tf.float32)}


def _best_spans(
    passage: Passage, windows: Windows, logits: Any, options: DecodingOptions
) -> _Candidates:
    """Returns the spans of `decoding._best_spans`, in any order."""
    num_best = tf.minimum(options.n_best_size, tf.shape(logits)[1])
    # `top_k` sorts equal logits by position.
    values, positions = tf.math.top_k(tf.transpose(logits, [2, 0, 1]), num_best)
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
    # The window of each span, and the ranks of its start and its end.
    row, i, j = tf.unstack(tf.where(is_span), axis=1)
    starts, ends = tf.stack([row, i], axis=1), tf.stack([row, j], axis=1)
    start_values, end_values = tf.unstack(tf.cast(values, tf.float64))
    begin = tf.gather(passage.starts, tf.gather_nd(first, starts))
    end = tf.gather(passage.limits, tf.gather_nd(last, ends))
    texts = tf.strings.substr(passage.text, begin, end - begin)
    return _Candidates(
        tf.strings.regex_replace(texts, f"[{SPACES}]+", " "),
        begin,
        end,
        tf.gather_nd(start_values, starts),
        tf.gather_nd(end_values, ends),
    )


def _has_most_context(windows: Windows, tokens: Any) -> Any:
    """Whether windows own tokens [R, N], as in `features.find_owners`."""
    left = tokens[:, :, tf.newaxis] - windows.start
    right = windows.start + windows.length - 1 - tokens[:, :, tf.newaxis]
    context = tf.cast(tf.minimum(left, right), tf.float64)
    # float64 and the order of operations of `find_owners`, for equal ties.
    scores = context + 0.01 * tf.cast(windows.length, tf.float64)
    owner = tf.argmax(tf.where(context >= 0, scores, -1.0), axis=2)
    numbers = tf.range(tf.size(windows.start, tf.int64))
    return owner == numbers[:, tf.newaxis]


def _null_logits(windows: Windows, logits: Any) -> Any:
    """Returns the logits [2] of [CLS] in the window that scores it lowest."""
    first = tf.cast(logits[:, 0], tf.float64)
    lowest = first[tf.argmin(tf.reduce_sum(first, axis=1))]
    # 0 for a passage without tokens, whose only window `predict.py` skips.
    return tf.where(windows.length[0] > 0, lowest, 0.0)


def _best_texts(candidates: _Candidates) -> _Candidates:
    """Returns the best candidate of each text, best first."""
    num_candidates = tf.size(candidates.scores)
    # `top_k` keeps the order of equal scores.
    order = tf.math.top_k(candidates.scores, num_candidates).indices
    ranked = candidates.take(order)
    texts, text_of = tf.unique(ranked.texts)
    return ranked.take(
        tf.math.unsorted_segment_min(
            tf.range(num_candidates), text_of, tf.size(texts)
        )
    )


def _describe(
    passage: Passage, best: _Candidates, chosen: Any, options: DecodingOptions
) -> Tensors:
    """Returns the outputs if `best[chosen]` is the answer."""
    probabilities = tf.cast(tf.nn.softmax(best.scores), tf.float32)
    if not options.version_2_with_negative:
        probabilities = tf.where(best.begins < 0, 0.0, probabilities)
    begins = tf.maximum(best.begins, 0)
    texts = tf.strings.substr(passage.text, begins, best.ends - best.begins)
    [num_answers] = output_signature(options)["n_best_answers"].shape
    missing = [[0, num_answers - tf.size(best.texts)]]
    bounds = tf.stack([best.begins[chosen], best.ends[chosen]])
    zeros = tf.zeros_like(bounds)
    before = tf.strings.substr(passage.text, zeros, tf.maximum(bounds, 0))
    characters = tf.strings.length(before, "UTF8_CHAR")
    start, end = tf.unstack(tf.where(bounds < 0, -1, characters))
    return {
        "answer": texts[chosen],
        "start": start,
        "end": end,
        "probability": probabilities[chosen],
        "score": tf.cast(best.scores[chosen], tf.float32),
        "n_best_answers": tf.pad(texts, missing, constant_values=""),
        "n_best_probabilities": tf.pad(probabilities, missing),
    }
