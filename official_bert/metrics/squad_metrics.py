"""SQuAD's exact match and F1, as in its official scripts 1.1 and 2.0.

In all languages, answers are compared as lists of words separated by spaces, so
that scores are comparable. In Chinese or Thai, which have no spaces, an answer
is a single word, and F1 is close to exact match.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.errors import InputError

_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(a|an|the)\b")


class _Question(NamedTuple):
    """A question and the scores, 0 to 1, of its prediction."""

    id: str
    has_answer: bool
    exact: float
    f1: float


def evaluate(
    dataset: Sequence[Mapping[str, Any]],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Returns the scores of predicted answers, in percent.

    A data set with `is_impossible`, or with questions without an answer, is
    scored as version 2.0, others as 1.1. With answers to all questions, the
    versions differ only for texts that consist of punctuation and articles. A
    question without a prediction is wrong in both; the official script of 2.0
    ignores it.

    Args:
        dataset: The list under "data" of a SQuAD file.
        predictions: {question id: answer}, "" for no answer. Ids that are
            numbers in the data set are strings here.
        null_odds: {question id: score of "no answer" minus score of the
            answer}, for all predicted questions.

    Returns:
        `exact_match`, `f1`: scores of the predictions as given. (With null
        odds, the official script first empties predictions with odds above
        1.0.)
        `total`: the number of questions.
        `missing`: the ids of questions without a prediction.
        `HasAns_exact`, `HasAns_f1`, `HasAns_total`, `NoAns_exact`, ...: scores
        of questions with and without an answer, in 2.0 only.
        `best_exact`, `best_exact_thresh`, `best_f1`, `best_f1_thresh`: with
        null odds, the best scores if predictions with odds above a threshold
        are emptied, and these thresholds.
    """
    questions = [
        question
        for article in dataset
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]
    is_version_2 = any(
        "is_impossible" in q or not q["answers"] for q in questions
    )
    scored = [_score(q, predictions, is_version_2) for q in questions]
    results: dict[str, Any] = {
        **_means(scored, "exact_match", "f1", "total"),
        "missing": [q.id for q in scored if q.id not in predictions],
    }
    for name, has_answer in (("HasAns", True), ("NoAns", False)):
        part = [q for q in scored if q.has_answer == has_answer]
        if is_version_2 and part:
            results |= _means(
                part, f"{name}_exact", f"{name}_f1", f"{name}_total"
            )
    if null_odds is not None:
        results |= _best_thresholds(scored, predictions, null_odds)
    return results


def normalize(text: str) -> str:
    """Removes case, ASCII punctuation, English articles, repeated spaces."""
    text = text.lower().translate(_WITHOUT_PUNCTUATION)
    return " ".join(_ARTICLE.sub(" ", text).split())


def _score(
    question: Any, predictions: Mapping[str, str], is_version_2: bool
) -> _Question:
    """Scores a prediction against the closest of the question's answers."""
    name, has_answer = str(question["id"]), bool(question["answers"])
    if name not in predictions:
        return _Question(name, has_answer, 0.0, 0.0)
    predicted = normalize(predictions[name])
    answers = {normalize(answer["text"]) for answer in question["answers"]}
    if is_version_2:
        # An empty answer counts only if there is no other answer.
        answers = answers - {""} or {""}
    exact = float(predicted in answers)
    f1 = max(_f1(answer.split(), predicted.split()) for answer in answers)
    if is_version_2:
        f1 = max(exact, f1)  # F1 of two empty texts: 1; in 1.1, 0.
    return _Question(name, has_answer, exact, f1)


def _f1(answer: list[str], predicted: list[str]) -> float:
    """Returns the F1 of two bags of words, 0.0 if one is empty."""
    num_common = (Counter(answer) & Counter(predicted)).total()
    return 2 * num_common / max(len(answer) + len(predicted), 1)


def _means(
    scored: Sequence[_Question], exact: str, f1: str, total: str
) -> dict[str, float]:
    """Returns both means and the number of questions, under these names."""
    number = max(len(scored), 1)
    return {
        exact: 100.0 * sum(q.exact for q in scored) / number,
        f1: 100.0 * sum(q.f1 for q in scored) / number,
        total: len(scored),
    }


def _best_thresholds(
    scored: Sequence[_Question],
    predictions: Mapping[str, str],
    null_odds: Mapping[str, float],
) -> dict[str, float]:
    """Returns the best scores in percent, and their thresholds."""
    predicted = [q for q in scored if q.id in predictions]
    if missing := [q.id for q in predicted if q.id not in null_odds]:
        raise InputError(
            "Null odds must contain every predicted question. Received: none "
            f"for {missing[0]!r}. Use odds and predictions of the same run."
        )
    # As in the official script, the threshold rises from "all empty" to "none
    # empty", question by question, even among equal odds. It is 0.0 if "all
    # empty" is best.
    predicted.sort(key=lambda question: null_odds[question.id])
    results = {}
    for name in ("exact", "f1"):
        score = best = float(sum(not q.has_answer for q in predicted))
        threshold = 0.0
        for question in predicted:
            if question.has_answer:
                score += getattr(question, name)
            elif predictions[question.id]:
                score -= 1.0
            if score > best:
                best, threshold = score, null_odds[question.id]
        results[f"best_{name}"] = 100.0 * best / max(len(scored), 1)
        results[f"best_{name}_thresh"] = threshold
    return results
