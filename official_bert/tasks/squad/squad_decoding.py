"""From logits to answers: `predictions.json` and the original's other files.

A span is scored by the sum of the logits of its start and its end. The best
spans of all windows of a question are turned into texts; the best span of each
text is kept, and the first text is the answer. In SQuAD 2.0 the span ([CLS],
[CLS]) stands for "no answer", which is chosen if it beats the best text by more
than a threshold.
"""

import functools
import json
import math
import operator
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert import files, progress
from official_bert.tasks.squad.answer_text import (
    OriginalText,
    get_final_text,
    join_tokens,
)
from official_bert.tasks.squad.squad_features import (
    SquadFeatures,
    Windows,
    find_owners,
)

_Logits = npt.NDArray[np.floating[Any]]

# `null_odds.json` holds this number for questions without any candidate. It is
# above every threshold, and finite for evaluation scripts.
NO_CANDIDATE_ODDS = 1_000_000.0

_WINDOWS_PER_BLOCK = 1024


class DecodingOptions(NamedTuple):
    """How answers are chosen. The fields are the flags of the same names.

    Attributes:
        n_best_size: The number of starts and of ends that are combined in each
            window, and the number of texts kept for each question.
        max_answer_length: The maximum number of tokens in an answer.
        version_2_with_negative: Whether questions may have no answer.
        null_score_diff_threshold: "No answer" is chosen if its score exceeds
            that of the best text by more than this.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0


DEFAULT = DecodingOptions()


class Candidate(NamedTuple):
    """A possible answer, "" for none, with its logits."""

    text: str
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        """The sum of both logits."""
        return self.start_logit + self.end_logit


class Spans(NamedTuple):
    """The spans of one question, best first.

    Attributes:
        first: int [N], the first token, counted in the paragraph.
        last: int [N], the last token.
        start_logits: float64 [N].
        end_logits: float64 [N].
        no_answer: The candidate for "no answer": the span ([CLS], [CLS]) of the
            window where its score is lowest. Zeros if there are no windows.
    """

    first: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    start_logits: npt.NDArray[np.float64]
    end_logits: npt.NDArray[np.float64]
    no_answer: Candidate


class Predictions(NamedTuple):
    """The content of the prediction files, by question id.

    Attributes:
        answers: {question: text}, "" for "no answer". In SQuAD 1.1 "empty" if
            no answer was found, as in the original.
        n_best: {question: texts with logits and probabilities, best first}.
        null_odds: {question: score of "no answer" minus that of the best text};
            empty unless `version_2_with_negative`.
    """

    answers: dict[str, str]
    n_best: dict[str, list[dict[str, Any]]]
    null_odds: dict[str, float]


def predict(
    features: SquadFeatures,
    start_logits: _Logits,
    end_logits: _Logits,
    options: DecodingOptions,
    *,
    show_progress: bool = False,
) -> Predictions:
    """Chooses the answers to all questions.

    Args:
        features: The questions and their W windows.
        start_logits: [W, S].
        end_logits: [W, S].
        options: How to choose.
        show_progress: Whether to show a progress bar.

    Raises:
        ValueError: The logits have other shapes.
    """
    shape = (len(features.offsets), features.max_seq_length)
    if not start_logits.shape == end_logits.shape == shape:
        raise ValueError(
            f"Logits must have shape [W, S] = {shape}. Received: "
            f"{start_logits.shape} and {end_logits.shape}."
        )
    predictions = Predictions({}, {}, {})
    shown = progress.bar(
        features.examples,
        description="Decoding",
        unit="question",
        disable=not show_progress,
    )
    all_spans = best_spans(features, start_logits, end_logits, options)
    for index, (example, spans) in enumerate(
        zip(shown, all_spans, strict=True)
    ):
        texts = _texts(features, index, spans)
        _add_prediction(
            predictions, example.qas_id, texts, spans.no_answer, options
        )
    return predictions


def best_spans(
    features: SquadFeatures,
    start_logits: _Logits,
    end_logits: _Logits,
    options: DecodingOptions,
) -> Iterator[Spans]:
    """Yields the spans of each question.

    A span starts at one of the `n_best_size` best starts of a window that owns
    this token, and ends at one of the window's best ends. Of equal spans, the
    earlier comes first. For arguments, see `predict`.
    """
    windows = features.windows
    starts = _highest(start_logits, options.n_best_size)
    ends = _highest(end_logits, options.n_best_size)
    cls_logits = np.stack([start_logits[:, 0], end_logits[:, 0]])
    cls_logits = cls_logits.astype(np.float64)
    limits = np.searchsorted(
        windows.example, np.arange(len(features.examples) + 1)
    )
    for begin, end in zip(
        limits[:-1].tolist(), limits[1:].tolist(), strict=True
    ):
        part = slice(begin, end)
        no_answer = Candidate("", 0.0, 0.0)
        if end > begin:
            logits = cls_logits[:, part]
            # A question has an answer if one of its windows has.
            lowest = int(np.argmin(logits.sum(axis=0)))
            no_answer = Candidate("", *logits[:, lowest].tolist())
        yield _spans_of_question(
            Windows(*(column[part] for column in windows)),
            features.offsets[part, np.newaxis],
            _Highest(*(array[part] for array in starts)),
            _Highest(*(array[part] for array in ends)),
            options.max_answer_length,
            no_answer,
        )


class _Highest(NamedTuple):
    """The n highest logits of windows and their positions; both [W, n]."""

    positions: npt.NDArray[np.intp]
    logits: npt.NDArray[np.float64]


def _highest(logits: _Logits, number: int) -> _Highest:
    """Returns the highest logits of each window; of equal ones, the first."""
    positions = np.zeros((len(logits), min(number, logits.shape[1])), np.intp)
    for start in range(0, len(logits), _WINDOWS_PER_BLOCK):
        block = slice(start, start + _WINDOWS_PER_BLOCK)
        order = np.argsort(-logits[block], axis=1, kind="stable")
        positions[block] = order[:, :number]
    found = np.take_along_axis(logits, positions, 1)
    return _Highest(positions, found.astype(np.float64))


def _spans_of_question(
    windows: Windows,
    offsets: npt.NDArray[np.int32],
    starts: _Highest,
    ends: _Highest,
    max_answer_length: int,
    no_answer: Candidate,
) -> Spans:
    """Combines the best starts and ends of each window of one question."""
    # From positions in the input sequence to tokens of the paragraph.
    shifts = windows.start[:, np.newaxis] - offsets
    limits = offsets + windows.length[:, np.newaxis]
    first, last = starts.positions + shifts, ends.positions + shifts
    is_start = (starts.positions >= offsets) & (starts.positions < limits)
    is_end = (ends.positions >= offsets) & (ends.positions < limits)
    owners = find_owners(windows.start, windows.length)
    window = np.arange(len(first))[:, np.newaxis]
    is_start &= owners[np.where(is_start, first, 0)] == window

    lengths = last[:, np.newaxis, :] - first[:, :, np.newaxis] + 1
    is_span = (lengths > 0) & (lengths <= max_answer_length)
    is_span &= is_start[:, :, np.newaxis] & is_end[:, np.newaxis, :]
    w, i, j = np.nonzero(is_span)
    start_logits, end_logits = starts.logits[w, i], ends.logits[w, j]
    order = np.argsort(-(start_logits + end_logits), kind="stable")
    columns = (first[w, i], last[w, j], start_logits, end_logits)
    return Spans(*(column[order] for column in columns), no_answer)


def _texts(
    features: SquadFeatures, index: int, spans: Spans
) -> Iterator[Candidate]:
    """Yields the texts of the spans of a question, best first.

    Results are cached: a word may be a whole passage, as in Chinese, and
    contain thousands of spans.
    """
    words = features.examples[index].doc_tokens
    tokenizer = features.tokenizer

    @functools.cache
    def original_text(first_word: int, last_word: int) -> OriginalText:
        return OriginalText.from_text(
            " ".join(words[first_word : last_word + 1]),
            tokenizer.basic_tokenizer.do_lower_case,
        )

    @functools.cache
    def final_text(predicted: str, first_word: int, last_word: int) -> str:
        return get_final_text(predicted, original_text(first_word, last_word))

    offset = features.paragraphs.splits[features.paragraph[index]]
    begins, ends = offset + spans.first, offset + spans.last
    columns = (
        begins,
        ends,
        features.words[begins],
        features.words[ends],
        spans.start_logits,
        spans.end_logits,
    )
    for begin, end, first_word, last_word, start_logit, end_logit in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        ids = features.paragraphs.ids[begin : end + 1].tolist()
        predicted = join_tokens(tokenizer.convert_ids_to_tokens(ids))
        text = final_text(predicted, first_word, last_word)
        yield Candidate(text, start_logit, end_logit)


def _add_prediction(
    predictions: Predictions,
    question: str,
    texts: Iterator[Candidate],
    no_answer: Candidate,
    options: DecodingOptions,
) -> None:
    """Adds the entries of one question to all files."""
    if options.version_2_with_negative:
        texts = _with_no_answer(texts, no_answer)
    best: dict[str, Candidate] = {}
    while len(best) < options.n_best_size and (found := next(texts, None)):
        best.setdefault(found.text, found)
    if options.version_2_with_negative:
        best.setdefault("", no_answer)
    candidates = list(best.values()) or [Candidate("empty", 0.0, 0.0)]
    probabilities = softmax([candidate.score for candidate in candidates])
    predictions.n_best[question] = [
        {
            "text": candidate.text,
            "probability": probability,
            "start_logit": candidate.start_logit,
            "end_logit": candidate.end_logit,
        }
        for candidate, probability in zip(
            candidates, probabilities, strict=True
        )
    ]
    answer = candidates[0].text
    if options.version_2_with_negative:
        odds, answer = NO_CANDIDATE_ODDS, ""
        if text := next((c for c in candidates if c.text), None):
            odds = no_answer.score - text.start_logit - text.end_logit
            if odds <= options.null_score_diff_threshold:
                answer = text.text
        predictions.null_odds[question] = odds
    predictions.answers[question] = answer


def _with_no_answer(
    candidates: Iterator[Candidate], no_answer: Candidate
) -> Iterator[Candidate]:
    """Yields all candidates by score, "no answer" last among equals."""
    for candidate in candidates:
        if candidate.score < no_answer.score:
            yield no_answer
            yield candidate
            break
        yield candidate
    else:
        yield no_answer
    yield from candidates


def softmax(scores: Sequence[float]) -> list[float]:
    """Returns the probabilities of scores."""
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    # One by one, because `sum` rounds differently since Python 3.12.
    total = functools.reduce(operator.add, powers, 0.0)
    return [power / total for power in powers]


def write_predictions(output_dir: str, predictions: Predictions) -> None:
    """Writes `predictions.json`, `nbest_predictions.json`, `null_odds.json`.

    Without null odds, the file of an earlier run is removed.
    """
    for name, content in [
        ("predictions.json", predictions.answers),
        ("nbest_predictions.json", predictions.n_best),
        ("null_odds.json", predictions.null_odds),
    ]:
        path = os.path.join(output_dir, name)
        if content:
            files.write_text(path, json.dumps(content, indent=4) + "\n")
        elif files.exists(path):
            files.remove(path)
