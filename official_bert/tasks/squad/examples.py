"""SQuAD files: questions about paragraphs, and the positions of answers.

```
{"data": [{"paragraphs": [{"context": "...", "qas": [
    {"id": "...", "question": "...", "is_impossible": false,
     "answers": [{"text": "...", "answer_start": 7}]}]}]}]}
```

`is_impossible` exists only in SQuAD 2.0.
"""

import bisect
import dataclasses
import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from absl import logging

from official_bert.errors import InputError, bullet_list, listed
from official_bert.io import json_files, tables
from official_bert.tasks.squad import question_rows
from official_bert.tokenization.alignment import CHUNK

# The only characters that separate words in the original. A word may contain
# others, such as U+00A0, at which the tokenizer splits it.
SPACES = " \t\r\n\u202f"

WORD = re.compile(f"[^{SPACES}]+")


@dataclasses.dataclass(frozen=True, eq=False)
class Paragraph:
    """The context of one or several questions."""

    text: str

    @functools.cached_property
    def words(self) -> list[str]:
        """The words between `SPACES`."""
        return WORD.findall(self.text)

    @functools.cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """The start and the end of each text between white space.

        The tokenizer splits at more characters than `SPACES`, such as U+00A0,
        so a word may consist of several chunks.
        """
        return [match.span() for match in CHUNK.finditer(self.text)]

    @functools.cached_property
    def word_starts(self) -> list[int]:
        """The position of the first character of each word."""
        return [match.start() for match in WORD.finditer(self.text)]

    def word_at(self, offset: int) -> int:
        """Returns the index of the word at a character, or of the word before.

        It is -1 for spaces before the first word. Negative offsets count from
        the end. Raises `IndexError` if the text has no such character.
        """
        offset = range(len(self.text))[offset]
        return bisect.bisect_right(self.word_starts, offset) - 1


class Answer(NamedTuple):
    """The answer to a question, with its position in the paragraph."""

    text: str
    start: int  # The index of its first word.
    end: int  # The index of its last word.
    is_impossible: bool = False


class SquadExample(NamedTuple):
    """A question about a paragraph."""

    qas_id: str  # The question's id, its key in all results.
    question_text: str
    paragraph: Paragraph
    answer: Answer | None = None  # Only in training.
    qa: Any = None  # The JSON object with all answers, for metrics.


# The answer to a question without an answer.
NO_ANSWER = Answer("", -1, -1, is_impossible=True)


class _UnusableError(Exception):
    """Says why a question cannot be used for training."""


def read_examples(
    path: str, *, is_training: bool, version_2_with_negative: bool
) -> list[SquadExample]:
    """Returns the questions of a SQuAD file or a table, in their order.

    Answers are read only for training. There, each question must have exactly
    one, or be impossible with `version_2_with_negative`. An empty answer is no
    answer. A question is skipped with a warning if it has no answer, or if the
    words at the position of its answer do not contain the answer. Raises
    `InputError` if the file is malformed, if no question remains, or, for
    predicting, if two questions have the same id.
    """
    examples: list[SquadExample] = []
    skipped: list[str] = []
    doubtful: list[str] = []
    place_of: dict[str, str] = {}
    for place, example in _questions(path, is_training):
        answers = _non_empty(example.qa.get("answers"))
        if is_training:
            try:
                answer = _answer(example, version_2_with_negative, place)
            except _UnusableError as reason:
                skipped.append(f"{place} is skipped: {reason}")
                continue
            example = example._replace(answer=answer, qa=None)
        elif example.qas_id in place_of:
            raise InputError(
                f"{place}: questions must have different ids. Received: "
                f"{example.qas_id!r}, as in {place_of[example.qas_id]}. "
                "Rename one."
            )
        elif answers is not None:
            example = example._replace(qa={**example.qa, "answers": answers})
        doubtful += [f"{place}: {p}" for p in _problems(example, answers)]
        place_of[example.qas_id] = place
        examples.append(example)
    total = len(examples) + len(skipped)
    for messages, kind in (
        (skipped, f"of {total} questions are skipped"),
        (doubtful, "questions are empty, or have an unused or shifted answer"),
    ):
        if messages:
            number, shown = len(messages), bullet_list(messages)
            logging.warning(f"{path}: {number} {kind}:{shown}")
    if not examples:
        kind = "questions with usable answers" if is_training else "questions"
        raise InputError(f"{path}: must contain {kind}. Received: none.")
    return examples


def _non_empty(answers: Any) -> Any:
    """Returns the answers without those whose text is empty or blank."""
    if not isinstance(answers, list):
        return None
    return [answer for answer in answers if not _is_empty(answer)]


def _is_empty(answer: Any) -> bool:
    return question_rows.has_text(answer) and not answer["text"].strip()


def _problems(example: SquadExample, answers: Any) -> Iterator[str]:
    """Yields what is odd about a question with these answers."""
    if example.answer and answers:
        first, last, is_impossible = example.answer[1:]
        if is_impossible:
            yield "its answer is not used, because `is_impossible` is true"
        elif (start := answers[0].get("answer_start")) is not None:
            text = answers[0]["text"]
            found = example.paragraph.text[start:][: len(text)]
            if found.split() != text.split():
                words = " ".join(example.paragraph.words[first : last + 1])
                yield (
                    f"its answer is {text!r}, but the words at `answer_start`, "
                    f"which the model learns, are {words!r}"
                )
    if not example.question_text.strip():
        yield "the question is empty"


def find_unanswered(examples: Iterable[SquadExample]) -> SquadExample | None:
    """Returns the first question without a list of `answers`, if any.

    An empty list means that the question has no answer, as in SQuAD 2.0.
    """
    for example in examples:
        answers = (example.qa or {}).get("answers")
        if not question_rows.are_answers(answers):
            return example
    return None


def _questions(
    path: str, is_training: bool
) -> Iterator[tuple[str, SquadExample]]:
    """Yields the position of each question, and its example with `qa`."""
    if tables.format_of(path):
        paragraphs: dict[str, Paragraph] = {}
        for place, context, qa in question_rows.read(path, is_training):
            paragraph = paragraphs.setdefault(context, Paragraph(context))
            example = SquadExample(qa["id"], qa["question"], paragraph, qa=qa)
            yield place, example
        return
    try:
        articles = _field(
            json_files.read(path), "data", f"{path}: (root)", list
        )
    except InputError as error:
        raise InputError(
            f"{error} The name of a table of questions must end in .jsonl, "
            ".csv or .tsv."
        ) from error
    for i, article in enumerate(articles):
        in_file = f"{path}: data[{i}]"
        for j, node in enumerate(_field(article, "paragraphs", in_file, list)):
            in_article = f"{in_file}.paragraphs[{j}]"
            paragraph = Paragraph(_field(node, "context", in_article, str))
            for k, qa in enumerate(_field(node, "qas", in_article, list)):
                place = f"{in_article}.qas[{k}]"
                # Some data sets have numbers as ids; keys of results are
                # strings.
                qas_id = str(_field(qa, "id", place, str, int))
                place += f" (question {qas_id!r})"
                question = _field(qa, "question", place, str)
                yield place, SquadExample(qas_id, question, paragraph, qa=qa)


def _answer(
    example: SquadExample, version_2_with_negative: bool, where: str
) -> Answer:
    paragraph, qa = example.paragraph, example.qa
    if version_2_with_negative:
        if "is_impossible" not in qa:
            raise InputError(
                f"{where}: must have `is_impossible`: false, or true for "
                "questions without an answer. If all questions have one, omit "
                "--version_2_with_negative."
            )
        if _field(qa, "is_impossible", where, bool, int):
            return NO_ANSWER
    answers = _non_empty(_field(qa, "answers", where, list))
    if qa["answers"] and not answers:
        if version_2_with_negative:
            return NO_ANSWER
        raise _UnusableError(
            "it has no answer. To train on such questions, use "
            "--version_2_with_negative"
        )
    if len(answers) != 1:
        remedy = "Remove all but one."
        if not answers:
            remedy = "Questions without an answer need `is_impossible`: true"
            if not version_2_with_negative:
                remedy += " and --version_2_with_negative"
            remedy += "."
        raise InputError(
            f"{where}: must have exactly one answer for training. Received: "
            f"{len(answers)}. {remedy}"
        )
    where_answer = f"{where}.answers[{qa['answers'].index(answers[0])}]"
    text = _field(answers[0], "text", where_answer, str)
    if answers[0].get("answer_start") is None:
        text = text.strip()
        offset = _find(text, paragraph.text)
    else:
        offset = _field(answers[0], "answer_start", where_answer, int)
    try:
        start = paragraph.word_at(offset)
        end = paragraph.word_at(offset + len(text) - 1)
    except IndexError:
        raise InputError(
            f"{where}: the answer must lie within the context's "
            f"{len(paragraph.text)} characters. Received: {text[:80]!r} at "
            f"answer_start={offset}. Offsets count characters, not bytes."
        ) from None
    words = " ".join(paragraph.words[start : end + 1])
    if " ".join(text.split()) not in words:
        raise _UnusableError(
            f"its answer {text!r} is not part of the words at its position, "
            f"{words!r}{_advice(text, words)}"
        )
    return Answer(text, start, end)


def _advice(answer: str, text: str) -> str:
    """Returns advice if an answer only seems to be in a text."""
    answer, text = (
        " ".join(unicodedata.normalize("NFC", s).split())
        for s in (answer, text)
    )
    if answer not in text:
        return ""
    return (
        ". In answers and contexts, replace white space such as U+00A0 by "
        "spaces, and use one Unicode normalization, such as NFC"
    )


def _find(text: str, context: str) -> int:
    """Returns the position of an answer without `answer_start`."""
    offset = context.find(text)
    if offset < 0:
        raise _UnusableError(
            f"its answer {text!r} is not in the context{_advice(text, context)}"
        )
    if context.find(text, offset + 1) >= 0:
        raise _UnusableError(
            f"its answer {text!r} is in the context several times. Add "
            "`answer_start`"
        )
    return offset


def _field(node: Any, key: str, where: str, *kinds: type) -> Any:
    """Returns `node[key]`; raises `InputError` unless its type is allowed."""
    received = node
    if isinstance(node, dict):
        received = node.get(key, f"only {listed(node)}")
        if key in node and isinstance(received, kinds):
            return received
    names = " or ".join(kind.__name__ for kind in kinds)
    raise InputError(
        f"{where}: must have a field `{key}` of type {names}. Received: "
        f"{str(received)[:80]!r}. Is the file in SQuAD's format?"
    )
