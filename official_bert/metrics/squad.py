"""SQuAD's exact match and F1, as its official scripts of 1.1 and 2.0 count.

Answers are compared as lists of words, cut at spaces. That is kept for every
language, so that scores can be compared: in Chinese or Thai, which write no
spaces, a whole answer is one word, and F1 comes near to exact match.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.errors import InputError

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


class _Scored(NamedTuple):
    """A question with the scores, 0 to 1, of its prediction."""

    id: str
    is_answerable: bool
    exact: float
    f1: float


def evaluate(
    dataset: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Returns the scores of predicted answers, in percent.

    Data with `is_impossible`, or with questions without an answer, is scored as
    2.0, all other as 1.1. They differ in predictions of punctuation or articles
    only. A question without a prediction counts as wrong in both; the official
    script of 2.0 leaves it out.

    Args:
        dataset: The list under "data" of a SQuAD file.
        predictions: {question's id: answer}, "" where there is none. Ids that
            are numbers in the data are strings here, as all keys in JSON.
        null_odds: {question's id: how much speaks against any answer}, in any
            unit. With it the best threshold is sought.

    Returns:
        `exact_match`, `f1`: of `predictions` as they are. (Given null odds, the
        official script first empties those above 1.0, as of probabilities.)
        `total`: the number of questions.
        `missing`: the ids of those without a prediction.
        `HasAns_exact`, `HasAns_f1`, `HasAns_total`, `NoAns_exact`, ...: of
        questions with and without an answer; 2.0 only, where there are any.
        `best_exact`, `best_exact_thresh`, `best_f1`, `best_f1_thresh`: what is
        reached if predictions whose null odds exceed the threshold are made
        empty; with `null_odds` only. Predictions that are empty stay so.

    Raises:
        InputError: `null_odds` lacks a predicted question.
    """
    questions = [
        question
        for article in dataset
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    is_version_2 = any(
        "is_impossible" in question or not question["answers"]
        for question in questions
    )
    scored = [
        _score(question, predictions, is_version_2) for question in questions
    ]
    overall = _means(scored)
    results = {
        "exact_match": overall["exact"],
        "f1": overall["f1"],
        "total": overall["total"],
        "missing": [q.id for q in scored if q.id not in predictions],
    }
    if is_version_2:
        for prefix, is_answerable in (("HasAns", True), ("NoAns", False)):
            part = [q for q in scored if q.is_answerable == is_answerable]
            if part:
                for name, value in _means(part).items():
                    results[f"{prefix}_{name}"] = value
    if null_odds is not None:
        results |= _best(scored, predictions, null_odds)
    return results


def normalize(text: str) -> str:
    """Returns `text` in lower case, without punctuation and articles.

    Only ASCII punctuation and English articles go. One space is left between
    words.
    """
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", text).split())


def _score(
    question: Mapping[str, Any],
    predictions: Mapping[str, str],
    is_version_2: bool,
) -> _Scored:
    """Compares its prediction with all answers; the best counts."""
    name, is_answerable = str(question["id"]), bool(question["answers"])
    if name not in predictions:
        return _Scored(name, is_answerable, 0.0, 0.0)
    predicted = normalize(predictions[name])
    answers = {normalize(answer["text"]) for answer in question["answers"]}
    if is_version_2:
        answers = answers - {""} or {""}  # Nothing is the answer, if it is all.
    exact = float(predicted in answers)
    f1 = max(_f1(answer.split(), predicted.split()) for answer in answers)
    if is_version_2:
        f1 = max(exact, f1)  # Nothing equals nothing; 1.1 gives it F1 0.
    return _Scored(name, is_answerable, exact, f1)


def _f1(answer: list[str], predicted: list[str]) -> float:
    """Returns the F1 of two bags of words, 0.0 where one is empty."""
    num_common = (Counter(answer) & Counter(predicted)).total()
    if not num_common:
        return 0.0
    return 2 * num_common / (len(answer) + len(predicted))


def _means(scored: Sequence[_Scored]) -> dict[str, float]:
    total = len(scored)
    return {
        "exact": _percent(sum(q.exact for q in scored), total),
        "f1": _percent(sum(q.f1 for q in scored), total),
        "total": total,
    }


def _percent(part: float, total: int) -> float:
    return 100.0 * part / total if total else 0.0


def _best(
    scored: Sequence[_Scored],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
) -> dict[str, float]:
    """Returns the best scores in percent, and the thresholds that give them."""
    predicted = [q for q in scored if q.id in predictions]
    for question in predicted:
        if question.id not in null_odds:
            raise InputError(
                "Null odds must be given for every predicted question. "
                f"Received: none for {question.id!r}. Take null odds and "
                "predictions of the same run."
            )
    # From all empty to none empty. Equal odds are gone through one by one, and
    # the threshold is 0.0 if all empty is best, as in the official script.
    predicted.sort(key=lambda question: null_odds[question.id])
    results = {}
    for name in ("exact", "f1"):
        score = best = float(sum(not q.is_answerable for q in predicted))
        threshold = 0.0
        for question in predicted:
            if question.is_answerable:
                score += getattr(question, name)
            elif predictions[question.id]:
                score -= 1.0
            if score > best:
                best, threshold = score, null_odds[question.id]
        results[f"best_{name}"] = _percent(best, len(scored))
        results[f"best_{name}_thresh"] = threshold
    return results
