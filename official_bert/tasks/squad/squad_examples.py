"""SQuAD files: questions about paragraphs, and the positions of answers.

```
{"data": [{"paragraphs": [{"context": "...", "qas": [
    {"id": "...", "question": "...", "is_impossible": false,
     "answers": [{"text": "...", "answer_start": 7}]}]}]}]}
```

`is_impossible` exists only in SQuAD 2.0.
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from official_bert import json_files
from official_bert.errors import InputError

# The only characters that separate words in the original. A word may contain
# others, such as U+00A0, at which the tokenizer splits it.
SPACES = " \t\r\n\u202f"

_WORD = re.compile(f"[^{SPACES}]+")

_MAX_WARNINGS = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Paragraph:
    """The context of one or several questions.

    Attributes:
        text: The text.
        doc_tokens: Its words, separated by `SPACES`.
        starts: int32 [number of words], the offset of each word in `text`.
    """

    text: str
    doc_tokens: list[str] = dataclasses.field(repr=False)
    starts: npt.NDArray[np.int32] = dataclasses.field(repr=False)

    @classmethod
    def from_text(cls, text: str) -> "Paragraph":
        """Divides a text into words."""
        starts = (match.start() for match in _WORD.finditer(text))
        return cls(text, _WORD.findall(text), np.fromiter(starts, np.int32))

    def word_at(self, offset: int) -> int:
        """Returns the index of the word at a character, or of the last before.

        Args:
            offset: The character's offset; negative ones count from the end.

        Returns:
            An index into `doc_tokens`, -1 for spaces before the first word.

        Raises:
            IndexError: The text has no such character.
        """
        offset = range(len(self.text))[offset]
        return int(self.starts.searchsorted(offset, side="right")) - 1


class SquadExample(NamedTuple):
    """A question about a paragraph.

    Attributes:
        qas_id: The question's id, its key in all results.
        question_text: The question.
        paragraph: Its context.
        orig_answer_text: The answer, for training only; "" if impossible.
        start_position: The index of the answer's first word, for training
            only; -1 if impossible.
        end_position: The index of the answer's last word, likewise.
        is_impossible: Whether there is no answer, for training only.
    """

    qas_id: str
    question_text: str
    paragraph: Paragraph
    orig_answer_text: str | None = None
    start_position: int | None = None
    end_position: int | None = None
    is_impossible: bool = False

    @property
    def doc_tokens(self) -> list[str]:
        """The words of the paragraph."""
        return self.paragraph.doc_tokens

    @property
    def answer_span(self) -> tuple[int, int]:
        """The indices of the answer's first and last word.

        Raises:
            ValueError: The example was not read for training.
        """
        if self.start_position is None or self.end_position is None:
            raise ValueError("Only examples read for training have answers.")
        return self.start_position, self.end_position

    @property
    def answer_words(self) -> str:
        """The words of the paragraph that contain the answer."""
        start, end = self.answer_span
        return " ".join(self.doc_tokens[start : end + 1])


def read_examples(
    path: str, *, is_training: bool, version_2_with_negative: bool
) -> list[SquadExample]:
    """Returns the questions of a file, in their order.

    For training, a question is skipped with a warning if the words at the
    position of its answer do not contain the answer. The whole file is read
    into memory.

    Args:
        path: A SQuAD file; ``.gz`` is decompressed.
        is_training: Whether to read answers; each question must have one.
        version_2_with_negative: Whether questions may be impossible.

    Raises:
        InputError: The file is malformed; no question is left; or, for
            predicting, two questions have the same id.
    """
    examples: list[SquadExample] = []
    skipped: list[tuple[str, SquadExample]] = []
    places: dict[str, str] = {}
    for where, node in _paragraphs(path):
        paragraph = Paragraph.from_text(_field(node, "context", str, where))
        for i, qa in enumerate(_field(node, "qas", list, where)):
            place = f"{where}.qas[{i}]"
            example = SquadExample(
                _question_id(qa, place),
                _field(qa, "question", str, place),
                paragraph,
            )
            if is_training:
                place = f"{place} (question {example.qas_id!r})"
                example = _with_answer(
                    example, qa, version_2_with_negative, place
                )
                answer = " ".join((example.orig_answer_text or "").split())
                if not (
                    example.is_impossible or answer in example.answer_words
                ):
                    skipped.append((place, example))
                    continue
            elif example.qas_id in places:
                raise InputError(
                    f"{place}: questions must have different ids. Received: "
                    f"{example.qas_id!r}, as in {places[example.qas_id]}. "
                    "Rename one."
                )
            places[example.qas_id] = place
            examples.append(example)
    for place, example in skipped[:_MAX_WARNINGS]:
        logging.warning(
            "%s is skipped: its answer %r is not part of the words at its "
            "position, %r",
            place,
            example.orig_answer_text,
            example.answer_words,
        )
    if len(skipped) > _MAX_WARNINGS:
        logging.warning("%s: %d questions are skipped", path, len(skipped))
    if not examples:
        wanted = "questions with usable answers" if is_training else "questions"
        raise InputError(f"{path}: must contain {wanted}. Received: none.")
    return examples


def find_unanswered(path: str) -> str | None:
    """Returns the position of the first question without `answers`, if any.

    An empty list means that the question has no answer, as in SQuAD 2.0.

    Args:
        path: A file that `read_examples` accepts.
    """
    for where, node in _paragraphs(path):
        for i, qa in enumerate(node["qas"]):
            answers = qa.get("answers")
            if not isinstance(answers, list) or not all(
                isinstance(answer, dict) and isinstance(answer.get("text"), str)
                for answer in answers
            ):
                place = f"{where}.qas[{i}]"
                return f"{place} (question {_question_id(qa, place)!r})"
    return None


def _question_id(qa: Any, where: str) -> str:
    # In some data sets ids are numbers, but keys in results are strings.
    if isinstance(qa, dict) and isinstance(qa.get("id"), int):
        return str(qa["id"])
    return str(_field(qa, "id", str, where))


def _with_answer(
    example: SquadExample, qa: Any, version_2_with_negative: bool, where: str
) -> SquadExample:
    """Returns the example with its answer."""
    if version_2_with_negative and _field(qa, "is_impossible", bool, where):
        return example._replace(
            orig_answer_text="",
            start_position=-1,
            end_position=-1,
            is_impossible=True,
        )
    answers = _field(qa, "answers", list, where)
    if len(answers) != 1:
        raise InputError(
            f"{where}: must have exactly one answer for training. Received: "
            f"{len(answers)}. Questions without an answer need "
            "--version_2_with_negative and `is_impossible`."
        )
    text = _field(answers[0], "text", str, f"{where}.answers[0]")
    offset = _field(answers[0], "answer_start", int, f"{where}.answers[0]")
    paragraph = example.paragraph
    try:
        start = paragraph.word_at(offset)
        # As in the original, an empty answer at 0 ends at the last character.
        end = paragraph.word_at(offset + len(text) - 1)
    except IndexError:
        raise InputError(
            f"{where}: the answer must lie within the context's "
            f"{len(paragraph.text)} characters. Received: {text[:80]!r} at "
            f"answer_start={offset}. Offsets count characters, not bytes."
        ) from None
    return example._replace(
        orig_answer_text=text, start_position=start, end_position=end
    )


def _paragraphs(path: str) -> Iterator[tuple[str, Any]]:
    """Yields the position and the content of each paragraph of a file."""
    root = json_files.read(path)
    for i, entry in enumerate(_field(root, "data", list, f"{path}: (root)")):
        where = f"{path}: data[{i}]"
        for j, node in enumerate(_field(entry, "paragraphs", list, where)):
            yield f"{where}.paragraphs[{j}]", node


def _field(node: Any, key: str, kind: type, where: str) -> Any:
    """Returns `node[key]`; raises `InputError` unless it is of type `kind`."""
    name = {str: "a string", list: "a list", int: "an integer"}.get(
        kind, "true or false"
    )
    if not isinstance(node, dict) or key not in node:
        received = f"only {', '.join(node)}" if isinstance(node, dict) else node
        raise InputError(
            f"{where}: must have a field `{key}`, {name}. Received: "
            f"{str(received)[:80] or 'nothing'}. Is the file in SQuAD's format?"
        )
    if not isinstance(node[key], kind):
        raise InputError(
            f"{where}: `{key}` must be {name}. Received: "
            f"{str(node[key])[:80]!r}."
        )
    return node[key]
