"""Decodes logits into answers.

The score of a span is the sum of the logits of its start and its end. The best
spans of all windows of a question become texts. The answer is the text of the
best span or, in SQuAD 2.0, "no answer", whose span is ([CLS], [CLS]).
"""

import functools
import heapq
import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.io import progress
from official_bert.io.json_files import Count
from official_bert.tasks.squad.examples import WORD
from official_bert.tasks.squad.features import (
    SquadFeatures,
    find_owners,
    find_token_spans,
)
from official_bert.tokenization import BasicTokenizer
from official_bert.tokenization.alignment import Span
from official_bert.tokenization.normalize import CLEAN

_Logits = npt.NDArray[np.floating[Any]]
# First and last token in the paragraph, and their logits; best spans first.
_Spans = Iterator[tuple[int, int, float, float]]

# `null_odds.json` holds this number for questions without any candidate. It is
# above every threshold, and finite for evaluation scripts.
NO_CANDIDATE_ODDS = 1_000_000.0


class DecodingOptions(NamedTuple):
    """How answers are chosen. The fields are the flags of the same names.

    `n_best_size` is also the number of starts and of ends that are combined in
    each window. "No answer" is chosen if its score exceeds that of the best
    text by more than `null_score_diff_threshold`.
    """

    n_best_size: Count = 20
    max_answer_length: Count = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0


# The characters of no answer; `context[-1:-1]` is "".
NO_SPAN: Span = (-1, -1)


class Candidate(NamedTuple):
    """A possible answer, "" for none, with its logits and its span."""

    text: str
    start_logit: float
    end_logit: float
    span: Span = NO_SPAN

    @property
    def score(self) -> float:
        return self.start_logit + self.end_logit


class SquadAnswer(NamedTuple):
    """The prediction for a question.

    Attributes:
        text: The answer, "" for none. In SQuAD 1.1 "empty" if no answer was
            found, as in the original.
        n_best: Texts with probabilities and logits, best first.
        null_odds: The score of "no answer" minus that of the best text; None in
            SQuAD 1.1.
        spans: The spans of `n_best` in the context. In `text` and `n_best`,
            one space separates words; in the context, others may.
    """

    text: str
    n_best: list[dict[str, Any]]
    null_odds: float | None
    spans: Sequence[Span] = ()


def decode(
    features: SquadFeatures,
    logits: _Logits,
    options: DecodingOptions,
    *,
    show_progress: bool = False,
) -> list[SquadAnswer]:
    """Chooses the answers to all questions.

    `logits` are the start and end logits of all windows, float [W, S, 2].
    """
    num_questions = len(features.examples)
    indices = progress.bar(
        range(num_questions),
        description="Decoding",
        unit=" questions",
        disable=not show_progress,
    )
    limits = features.windows.example.searchsorted(range(num_questions + 1))
    answers = []
    for index in indices:
        windows = slice(limits[index], limits[index + 1])
        own_logits = logits[windows].astype(np.float64)
        spans = _best_spans(features, windows, own_logits, options)
        texts = _texts(features, index, spans)
        answers.append(_choose(texts, _no_answer(own_logits), options))
    return answers


def _no_answer(logits: _Logits) -> Candidate:
    """Returns the span ([CLS], [CLS]) of the window where its score is lowest.

    A question has an answer if one of its windows has one. Without windows, the
    logits are zero.
    """
    cls_logits = logits[:, 0]
    if not len(cls_logits):
        return Candidate("", 0.0, 0.0)
    lowest = np.argmin(cls_logits.sum(axis=1))
    return Candidate("", *cls_logits[lowest].tolist())


def _best_spans(
    features: SquadFeatures,
    part: slice,
    logits: _Logits,
    options: DecodingOptions,
) -> _Spans:
    """Combines the best starts and ends in each window of a question.

    A span starts at one of the window's `n_best_size` best starts, if the
    window owns this token, and ends at one of its best ends. Of spans with
    equal scores, the earlier comes first. `part` selects the windows of the
    question.
    """
    _, starts, lengths = (column[part] for column in features.windows)
    offsets = features.offsets[part, np.newaxis]
    limits = offsets + lengths[:, np.newaxis]
    # Converts positions in the input sequence to tokens of the paragraph.
    shifts = starts[:, np.newaxis] - offsets
    # Of equal logits, the first is better.
    best = np.argsort(-logits, axis=1, kind="stable")[:, : options.n_best_size]
    start, end = best[..., 0], best[..., 1]
    first, last = start + shifts, end + shifts
    is_start = (start >= offsets) & (start < limits)
    is_end = (end >= offsets) & (end < limits)
    owners = find_owners(starts, lengths)
    window = np.arange(len(first))[:, np.newaxis]
    is_start &= owners[np.where(is_start, first, 0)] == window

    span_lengths = last[:, np.newaxis, :] - first[:, :, np.newaxis] + 1
    is_span = (span_lengths > 0) & (span_lengths <= options.max_answer_length)
    is_span &= is_start[:, :, np.newaxis] & is_end[:, np.newaxis, :]
    w, i, j = np.nonzero(is_span)
    start_logits = logits[w, start[w, i], 0]
    end_logits = logits[w, end[w, j], 1]
    order = np.argsort(-(start_logits + end_logits), kind="stable")
    spans = (first[w, i], last[w, j], start_logits, end_logits)
    return zip(*(column[order].tolist() for column in spans), strict=True)


def _texts(
    features: SquadFeatures, index: int, spans: _Spans
) -> Iterator[Candidate]:
    """Yields the texts of the spans of a question, best first.

    Of spans with the same tokens in the same chunks, only the best is used.
    """
    paragraph = features.examples[index].paragraph
    tokenizer = features.tokenizer
    ids, _, chunk_of = features.paragraphs[index]
    seen = set()
    for first, last, start_logit, end_logit in spans:
        # Spans in a long word that repeats one token have the same text.
        key = (ids[first : last + 1].tobytes(), chunk_of[first], chunk_of[last])
        if key in seen:
            continue
        seen.add(key)
        tokens = tokenizer.convert_ids_to_tokens(ids[first : last + 1].tolist())
        begin, _ = paragraph.chunks[chunk_of[first]]
        _, end = paragraph.chunks[chunk_of[last]]
        chunks = paragraph.text[begin:end]
        start, stop = find_tokens(
            join_tokens(tokens), chunks, tokenizer.basic_tokenizer
        )
        text, span = chunks[start:stop], (begin + start, begin + stop)
        if text in chunks[start + 1 :]:  # Often so in Chinese.
            spans_of_tokens = find_token_spans(tokenizer, paragraph)
            own_span = spans_of_tokens[first][0], spans_of_tokens[last][1]
            if paragraph.text[slice(*own_span)] == text:
                span = own_span
        text = " ".join(WORD.findall(text))
        yield Candidate(text, start_logit, end_logit, span)


def _choose(
    texts: Iterator[Candidate], no_answer: Candidate, options: DecodingOptions
) -> SquadAnswer:
    """Returns the answer to a question, given its texts, best first."""
    if options.version_2_with_negative:
        # Sorted by score; among equal scores, "no answer" is last.
        texts = heapq.merge(texts, [no_answer], key=lambda c: -c.score)
    best: dict[str, Candidate] = {}
    while len(best) < options.n_best_size and (candidate := next(texts, None)):
        best.setdefault(candidate.text, candidate)
    if options.version_2_with_negative:
        best.setdefault("", no_answer)
    candidates = list(best.values()) or [Candidate("empty", 0.0, 0.0)]
    highest = max(candidate.score for candidate in candidates)
    powers = [math.exp(candidate.score - highest) for candidate in candidates]
    # `sum` would round differently since Python 3.12.
    total = functools.reduce(operator.add, powers)
    probabilities = [power / total for power in powers]
    n_best = [
        {"text": text, "probability": p, "start_logit": start, "end_logit": end}
        for (text, start, end, _), p in zip(
            candidates, probabilities, strict=True
        )
    ]
    spans = [candidate.span for candidate in candidates]
    if not options.version_2_with_negative:
        return SquadAnswer(candidates[0].text, n_best, None, spans)
    answer = next((c for c in candidates if c.text), None)
    if answer is None:
        return SquadAnswer("", n_best, NO_CANDIDATE_ODDS, spans)
    odds = no_answer.score - answer.start_logit - answer.end_logit
    has_answer = odds <= options.null_score_diff_threshold
    return SquadAnswer(answer.text if has_answer else "", n_best, odds, spans)


def join_tokens(tokens: list[str]) -> str:
    """Returns the words of WordPiece tokens, separated by one space."""
    text = " ".join(tokens).replace(" ##", "").replace("##", "")
    return " ".join(text.split())


def find_tokens(pred_text: str, text: str, tokenizer: BasicTokenizer) -> Span:
    """Returns the part of a text that a prediction stands for.

    This is `get_final_text` of the original. In the prediction, text is
    normalized and spaces separate punctuation. The part is the whole text if it
    does not contain the prediction, or if normalizing adds characters or
    removes accents, as in Hangul::

        pred_text   steve smith
        text        Steve Smith's
        result      Steve Smith
    """
    tokenized, offsets = _normalize(text, tokenizer)
    start = tokenized.find(pred_text)
    is_text = pred_text and pred_text == pred_text.strip(" ")
    if not offsets or not is_text or start < 0:
        return 0, len(text)
    last = start + len(pred_text) - 1
    return offsets[start], offsets[last] + 1


def is_skipped(char: str) -> bool:
    """Whether the tokenizer removes a character or splits a text at it."""
    return not CLEAN[ord(char)].strip()


# Cached, because many spans may be in one word: in Chinese, a whole passage.
@functools.lru_cache(1024)
def _normalize(text: str, tokenizer: BasicTokenizer) -> tuple[str, list[int]]:
    """Returns a text as the tokenizer sees it, and the offsets in `text`.

    Tokens are separated by spaces. There is an offset for each character, -1
    for spaces. There are no offsets if normalizing changed the number of
    characters, apart from those that the tokenizer always removes.
    """
    tokenized = " ".join(tokenizer.tokenize(text))
    offsets = [i for i, char in enumerate(text) if not is_skipped(char)]
    if len(offsets) != len(tokenized.replace(" ", "")):
        return tokenized, []
    remaining = iter(offsets)
    return tokenized, [-1 if c == " " else next(remaining) for c in tokenized]
