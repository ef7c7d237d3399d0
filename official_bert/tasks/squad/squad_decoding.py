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
from official_bert.tasks.squad.squad_examples import SquadExample
from official_bert.tasks.squad.squad_features import SquadFeatures, find_owners

_Logits = npt.NDArray[np.floating[Any]]

# `null_odds.json` holds this number for questions without any candidate. It is
# above every threshold, and finite for evaluation scripts.
NO_CANDIDATE_ODDS = 1_000_000.0


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


class SquadAnswer(NamedTuple):
    """The prediction for a question.

    Attributes:
        text: The answer, "" for none. In SQuAD 1.1 "empty" if no answer was
            found, as in the original.
        n_best: Texts with probabilities and logits, best first.
        null_odds: The score of "no answer" minus that of the best text; None in
            SQuAD 1.1.
    """

    text: str
    n_best: list[dict[str, Any]]
    null_odds: float | None


def decode(
    features: SquadFeatures,
    start_logits: _Logits,
    end_logits: _Logits,
    options: DecodingOptions,
    *,
    show_progress: bool = False,
) -> list[SquadAnswer]:
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
    indices = progress.bar(
        range(len(features.examples)),
        description="Decoding",
        unit="question",
        disable=not show_progress,
    )
    limits = np.searchsorted(
        features.windows.example, np.arange(len(features.examples) + 1)
    ).tolist()
    answers = []
    for index in indices:
        windows = slice(limits[index], limits[index + 1])
        logits = np.stack([start_logits[windows], end_logits[windows]])
        logits = logits.astype(np.float64)
        spans = _best_spans(features, windows, logits[0], logits[1], options)
        answers.append(
            _choose(_texts(features, index, spans), _no_answer(logits), options)
        )
    return answers


def _no_answer(logits: _Logits) -> Candidate:
    """Returns the span ([CLS], [CLS]) of the window where its score is lowest.

    A question has an answer if one of its windows has. Zeros without windows.
    """
    cls_logits = logits[:, :, 0]
    if not cls_logits.size:
        return Candidate("", 0.0, 0.0)
    lowest = int(np.argmin(cls_logits.sum(axis=0)))
    return Candidate("", *cls_logits[:, lowest].tolist())


class _Spans(NamedTuple):
    """The spans of a question, best first: tokens of the paragraph, logits."""

    first: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    start_logits: _Logits
    end_logits: _Logits


def _best_spans(
    features: SquadFeatures,
    part: slice,
    start_logits: _Logits,
    end_logits: _Logits,
    options: DecodingOptions,
) -> _Spans:
    """Combines the best starts and ends of each window of a question.

    A span starts at one of the `n_best_size` best starts of a window that owns
    this token, and ends at one of the window's best ends. Of equal spans, the
    earlier comes first.

    Args:
        features: The windows of all questions.
        part: The windows of this question.
        start_logits: [N, S], of these windows.
        end_logits: [N, S].
        options: How to choose.
    """
    _, starts, lengths = (column[part] for column in features.windows)
    offsets = features.offsets[part, np.newaxis]
    limits = offsets + lengths[:, np.newaxis]
    # From positions in the input sequence to tokens of the paragraph.
    shifts = starts[:, np.newaxis] - offsets
    start = _highest(start_logits, options.n_best_size)
    end = _highest(end_logits, options.n_best_size)
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
    starts_of_spans = start_logits[w, start[w, i]]
    ends_of_spans = end_logits[w, end[w, j]]
    order = np.argsort(-(starts_of_spans + ends_of_spans), kind="stable")
    return _Spans(
        first[w, i][order],
        last[w, j][order],
        starts_of_spans[order],
        ends_of_spans[order],
    )


def _highest(logits: _Logits, number: int) -> npt.NDArray[np.intp]:
    """Returns the positions of the highest logits; of equal ones, the first."""
    return np.argsort(-logits, axis=1, kind="stable")[:, :number]


def _texts(
    features: SquadFeatures, index: int, spans: _Spans
) -> Iterator[Candidate]:
    """Yields the texts of the spans of a question, best first.

    Results are cached: a word may be a whole passage, as in Chinese, and
    contain thousands of spans.
    """
    doc_tokens = features.examples[index].doc_tokens
    tokenizer = features.tokenizer

    @functools.cache
    def original_text(first_word: int, last_word: int) -> OriginalText:
        return OriginalText.from_text(
            " ".join(doc_tokens[first_word : last_word + 1]),
            tokenizer.basic_tokenizer.do_lower_case,
        )

    @functools.cache
    def final_text(predicted: str, first_word: int, last_word: int) -> str:
        return get_final_text(predicted, original_text(first_word, last_word))

    ids, words = features.paragraphs[index], features.words[index]
    for first, last, start_logit, end_logit in zip(
        *(column.tolist() for column in spans), strict=True
    ):
        tokens = tokenizer.convert_ids_to_tokens(ids[first : last + 1].tolist())
        text = final_text(
            join_tokens(tokens), int(words[first]), int(words[last])
        )
        yield Candidate(text, start_logit, end_logit)


def _choose(
    texts: Iterator[Candidate], no_answer: Candidate, options: DecodingOptions
) -> SquadAnswer:
    """Returns the answer to a question, given its texts, best first."""
    if options.version_2_with_negative:
        texts = _with_no_answer(texts, no_answer)
    best: dict[str, Candidate] = {}
    while len(best) < options.n_best_size and (found := next(texts, None)):
        best.setdefault(found.text, found)
    if options.version_2_with_negative:
        best.setdefault("", no_answer)
    candidates = list(best.values()) or [Candidate("empty", 0.0, 0.0)]
    probabilities = softmax([candidate.score for candidate in candidates])
    n_best = [
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
    if not options.version_2_with_negative:
        return SquadAnswer(candidates[0].text, n_best, None)
    text = next((c for c in candidates if c.text), None)
    if text is None:
        return SquadAnswer("", n_best, NO_CANDIDATE_ODDS)
    odds = no_answer.score - text.start_logit - text.end_logit
    is_answer = odds <= options.null_score_diff_threshold
    return SquadAnswer(text.text if is_answer else "", n_best, odds)


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


def write_predictions(
    output_dir: str,
    examples: Sequence[SquadExample],
    answers: Sequence[SquadAnswer],
) -> None:
    """Writes `predictions.json`, `nbest_predictions.json`, `null_odds.json`.

    Without null odds, the file of an earlier run is removed.
    """
    by_id = {e.qas_id: a for e, a in zip(examples, answers, strict=True)}
    for name, content in [
        ("predictions.json", {id: a.text for id, a in by_id.items()}),
        ("nbest_predictions.json", {id: a.n_best for id, a in by_id.items()}),
        ("null_odds.json", null_odds(examples, answers)),
    ]:
        path = os.path.join(output_dir, name)
        if content:
            files.write_text(path, json.dumps(content, indent=4) + "\n")
        elif files.exists(path):
            files.remove(path)


def null_odds(
    examples: Sequence[SquadExample], answers: Sequence[SquadAnswer]
) -> dict[str, float]:
    """Returns {question id: null odds}, empty in SQuAD 1.1."""
    return {
        example.qas_id: answer.null_odds
        for example, answer in zip(examples, answers, strict=True)
        if answer.null_odds is not None
    }
