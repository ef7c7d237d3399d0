"""From logits to answers: `predictions.json` and its kin.

A span is scored by the logit of its start plus that of its end. The best spans
of all windows of a question become texts, the best text of each kind stays, and
the first is the answer. In SQuAD 2.0 the span ([CLS], [CLS]) stands for "no
answer"; it is believed if it beats the best text by more than a threshold.
"""

import functools
import json
import math
import operator
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert import files, progress
from official_bert.tasks.squad.examples import SquadExample
from official_bert.tasks.squad.features import SquadFeatures
from official_bert.tasks.squad.final_text import (
    OriginalText,
    get_final_text,
    join_pieces,
)
from official_bert.tasks.squad.spans import Null, Spans, best_spans
from official_bert.tokenization import BatchTokenizer

Floats = npt.NDArray[np.floating[Any]]

# What `null_odds.json` says of questions for which no answer could be found:
# above every threshold, and still a number to evaluation scripts.
NO_CANDIDATE_ODDS = 1_000_000.0


class DecodingOptions(NamedTuple):
    """How answers are chosen; the fields are the flags of that name.

    Attributes:
        n_best_size: How many starts and ends of each window are combined, and
            how many texts of a question are kept.
        max_answer_length: In pieces.
        version_2_with_negative: Whether a question may have no answer.
        null_score_diff_threshold: By how much "no answer" must be better.
    """

    n_best_size: int = 20
    max_answer_length: int = 30
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0


DEFAULT = DecodingOptions()


class Candidate(NamedTuple):
    """A text that may be the answer, with its logits."""

    text: str
    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        """The sum of both logits."""
        return self.start_logit + self.end_logit


class Predictions(NamedTuple):
    """What is written: each by question, in their order.

    Attributes:
        answers: {question: text}, "" for "no answer"; "empty", as in 2018,
            where every question has one and none was found.
        n_best: {question: texts with logits and probabilities, best first}.
        null_odds: {question: score of "no answer" less that of the best text};
            empty unless `version_2_with_negative`.
    """

    answers: dict[str, str]
    n_best: dict[str, list[dict[str, Any]]]
    null_odds: dict[str, float]


def predict(
    examples: Sequence[SquadExample],
    features: SquadFeatures,
    tokenizer: BatchTokenizer,
    start_logits: Floats,
    end_logits: Floats,
    options: DecodingOptions,
    *,
    show_progress: bool = False,
) -> Predictions:
    """Chooses the answers to all questions.

    Args:
        examples: The questions.
        features: Made of these examples.
        tokenizer: That made them.
        start_logits: [W, S], a row for each window, in order.
        end_logits: Likewise.
        options: How to choose.
        show_progress: Whether to show on standard error how far it is.

    Raises:
        ValueError: There is not one row of logits for each window.
    """
    shape = (features.num_rows, features.max_seq_length)
    if not start_logits.shape == end_logits.shape == shape:
        raise ValueError(
            f"Logits must be of shape [W, S] = {shape}. Received: "
            f"{start_logits.shape} and {end_logits.shape}."
        )
    predictions = Predictions({}, {}, {})
    all_spans = best_spans(
        features,
        start_logits,
        end_logits,
        options.n_best_size,
        options.max_answer_length,
    )
    shown = progress.bar(
        examples,
        description="Decoding",
        unit="question",
        disable=not show_progress,
    )
    for index, (example, spans) in enumerate(
        zip(shown, all_spans, strict=True)
    ):
        texts = _texts(example, index, features, tokenizer, spans)
        _add_prediction(predictions, example.qas_id, texts, spans.null, options)
    return predictions


def predict_without_windows(
    examples: Sequence[SquadExample], options: DecodingOptions
) -> Predictions:
    """Answers questions none of whose passages has a word."""
    predictions = Predictions({}, {}, {})
    for example in examples:
        _add_prediction(
            predictions, example.qas_id, iter(()), Null(0.0, 0.0), options
        )
    return predictions


def _texts(
    example: SquadExample,
    index: int,
    features: SquadFeatures,
    tokenizer: BatchTokenizer,
    spans: Spans,
) -> Iterator[Candidate]:
    """Yields the texts of spans, best first."""
    final_text = _remembering(
        example.doc_tokens, tokenizer.basic_tokenizer.do_lower_case
    )
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
        pred_text = join_pieces(tokenizer.convert_ids_to_tokens(ids))
        text = final_text(pred_text, first_word, last_word)
        yield Candidate(text, start_logit, end_logit)


def _remembering(
    words: Sequence[str], do_lower_case: bool
) -> Callable[[str, int, int], str]:
    """Returns `get_final_text` for one question, which does nothing twice.

    A word may be a whole passage, as in Chinese, and hold thousands of spans:
    if each had the word tokenized again, that would be quadratic.

    Args:
        words: Of the paragraph.
        do_lower_case: Whether the pieces are lower case without accents.

    Returns:
        A function of the predicted text and of its first and last word.
    """

    @functools.cache
    def original(first_word: int, last_word: int) -> OriginalText:
        text = " ".join(words[first_word : last_word + 1])
        return OriginalText.from_text(text, do_lower_case)

    @functools.cache
    def final_text(pred_text: str, first_word: int, last_word: int) -> str:
        return get_final_text(pred_text, original(first_word, last_word))

    return final_text


def _best(texts: Iterator[Candidate], number: int) -> list[Candidate]:
    """Returns the first of each text, and at least one."""
    best: dict[str, Candidate] = {}
    while len(best) < number and (candidate := next(texts, None)):
        best.setdefault(candidate.text, candidate)
    return list(best.values()) or [Candidate("empty", 0.0, 0.0)]


def _best_with_null(
    texts: Iterator[Candidate], null: Null, number: int
) -> list[Candidate]:
    """Does the same with "no answer" as one of the texts, or behind them."""
    no_answer = Candidate("", *null)
    best: dict[str, Candidate] = {}
    for candidate in _inserted(texts, no_answer):
        if len(best) == number:
            break
        best.setdefault(candidate.text, candidate)
    best.setdefault("", no_answer)
    return list(best.values())


def _inserted(
    candidates: Iterator[Candidate], other: Candidate
) -> Iterator[Candidate]:
    """Yields candidates and another, which comes last among equals."""
    for candidate in candidates:
        if candidate.score < other.score:
            yield other
            yield candidate
            break
        yield candidate
    else:
        yield other
    yield from candidates


def _add_prediction(
    predictions: Predictions,
    name: str,
    texts: Iterator[Candidate],
    null: Null,
    options: DecodingOptions,
) -> None:
    """Adds what is written about one question."""
    if options.version_2_with_negative:
        candidates = _best_with_null(texts, null, options.n_best_size)
    else:
        candidates = _best(texts, options.n_best_size)
    probabilities = softmax([c.score for c in candidates])
    predictions.n_best[name] = [
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
        best = next((c for c in candidates if c.text), None)
        odds, answer = NO_CANDIDATE_ODDS, ""
        if best is not None:
            odds = null.score - best.start_logit - best.end_logit
            if odds <= options.null_score_diff_threshold:
                answer = best.text
        predictions.null_odds[name] = odds
    predictions.answers[name] = answer


def softmax(scores: Sequence[float]) -> list[float]:
    """Returns the probabilities of scores."""
    highest = max(scores)
    powers = [math.exp(score - highest) for score in scores]
    # One by one: `sum` rounds otherwise since Python 3.12.
    total = functools.reduce(operator.add, powers, 0.0)
    return [power / total for power in powers]


def write_predictions(output_dir: str, predictions: Predictions) -> None:
    """Writes `predictions.json`, `nbest_predictions.json`, `null_odds.json`.

    The last one is left out if there are none; none of an earlier run stays.
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
