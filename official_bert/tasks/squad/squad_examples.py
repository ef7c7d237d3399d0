"""Questions about paragraphs, and where in these their answers stand."""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from official_bert import json_files
from official_bert.errors import InputError
from official_bert.tokenization.alphabet import code_points

# The 2018 release takes these characters for spaces and no others: words may
# hold U+00A0, which the tokenizer will split at.
SPACES = " \t\r\n\u202f"

_WORD = re.compile(f"[^{SPACES}]+")
_SPACE_POINTS = code_points(SPACES)

_MAX_WARNINGS = 10


@dataclasses.dataclass(frozen=True, eq=False)
class Paragraph:
    """A text that is shared by the questions about it.

    Attributes:
        text: The text, as it stands in the file.
        doc_tokens: Its words, cut at spaces only.
        starts: int32 [number of words], where in `text` they start.
    """

    text: str
    doc_tokens: list[str] = dataclasses.field(repr=False)
    starts: npt.NDArray[np.int32] = dataclasses.field(repr=False)

    @classmethod
    def from_text(cls, text: str) -> "Paragraph":
        """Cuts a text into words."""
        is_word = ~np.isin(code_points(text), _SPACE_POINTS)
        is_start = is_word & ~np.append(False, is_word[:-1])[: len(text)]
        starts = np.flatnonzero(is_start).astype(np.int32)
        return cls(text, _WORD.findall(text), starts)

    def word_at(self, offset: int) -> int:
        """Returns the index of the word at a character, or of the last before.

        Args:
            offset: Of the character; negative ones count from the end.

        Returns:
            An index into `doc_tokens`; -1 for spaces before the first word.

        Raises:
            IndexError: There is no such character.
        """
        offset = range(len(self.text))[offset]
        return int(self.starts.searchsorted(offset, side="right")) - 1


class SquadExample(NamedTuple):
    """A question, with its answer where that is known.

    Attributes:
        qas_id: What the question is called in all results.
        question_text: The question.
        paragraph: What it is about.
        orig_answer_text: The answer; None if not training, "" if impossible.
        start_position: The answer's first word; None if not training, -1 if
            impossible.
        end_position: The answer's last word, likewise.
        is_impossible: Whether it has no answer (in training, SQuAD 2.0).
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
        """The answer's first and last word.

        Raises:
            ValueError: It was not read for training.
        """
        if self.start_position is None or self.end_position is None:
            raise ValueError("Only examples read for training have answers.")
        return self.start_position, self.end_position


def read_examples(
    path: str, *, is_training: bool, version_2_with_negative: bool
) -> list[SquadExample]:
    """Returns the questions of a file in their order.

    In training, a question is left out, with a warning, if the words at its
    answer's place do not hold the answer. The whole file is in memory at once.

    Args:
        path: A JSON file in SQuAD's format; ``.gz`` is unpacked on the way.
        is_training: Whether to read answers, of which each question must have
            exactly one.
        version_2_with_negative: Whether questions may be impossible.

    Raises:
        InputError: The file is no JSON or lacks something, with the line or
            the place in it; or no question is left; or two that are to be
            answered have one id.
    """
    examples: list[SquadExample] = []
    left_out: list[tuple[str, SquadExample]] = []
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
                if not _is_at_its_place(example):
                    left_out.append((place, example))
                    continue
            elif example.qas_id in places:
                raise InputError(
                    f"{place}: questions must differ in `id`, by which answers "
                    f"are told apart. Received: {example.qas_id!r}, as in "
                    f"{places[example.qas_id]}. Rename one."
                )
            places[example.qas_id] = place
            examples.append(example)
    _warn(path, left_out)
    if not examples:
        wanted = "questions with usable answers" if is_training else "questions"
        raise InputError(f"{path}: must hold {wanted}. Received: none.")
    return examples


def find_unanswered(path: str) -> str | None:
    """Returns the place of the first question without `answers`, if any.

    An empty list is an answer: that there is none.

    Args:
        path: A file that `read_examples` has read.
    """
    for where, node in _paragraphs(path):
        for i, qa in enumerate(node["qas"]):
            if not _is_answered(qa):
                place = f"{where}.qas[{i}]"
                return f"{place} (question {_question_id(qa, place)!r})"
    return None


def _is_answered(qa: Any) -> bool:
    """Whether a question's answers can be compared with a predicted one."""
    answers = qa.get("answers")
    return isinstance(answers, list) and all(
        isinstance(answer, dict) and isinstance(answer.get("text"), str)
        for answer in answers
    )


def _question_id(qa: Any, where: str) -> str:
    # Some data sets number their questions, which are keys in the results.
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
        # An empty answer at 0 so ends at the last character, as it always did.
        end = paragraph.word_at(offset + len(text) - 1)
    except IndexError:
        raise InputError(
            f"{where}: the answer must lie within the context's "
            f"{len(paragraph.text)} characters. Received: {text[:80]!r} at "
            f"answer_start={offset}. It counts characters, not bytes."
        ) from None
    return example._replace(
        orig_answer_text=text, start_position=start, end_position=end
    )


def _words_of_answer(example: SquadExample) -> str:
    start, end = example.answer_span
    return " ".join(example.doc_tokens[start : end + 1])


def _is_at_its_place(example: SquadExample) -> bool:
    """Whether the words at the answer's place hold the answer."""
    if example.is_impossible:
        return True
    answer = " ".join((example.orig_answer_text or "").split())
    return answer in _words_of_answer(example)


def _warn(path: str, left_out: list[tuple[str, SquadExample]]) -> None:
    """Logs which questions are left out; of many, the first."""
    for place, example in left_out[:_MAX_WARNINGS]:
        logging.warning(
            "%s is left out: its answer %r is not at its place, where %r is",
            place,
            example.orig_answer_text,
            _words_of_answer(example),
        )
    if len(left_out) > _MAX_WARNINGS:
        logging.warning(
            "%s: %d questions are left out in all", path, len(left_out)
        )


def _paragraphs(path: str) -> Iterator[tuple[str, Any]]:
    """Yields the position and the content of each paragraph of a file."""
    root = json_files.read(path)
    for i, entry in enumerate(_field(root, "data", list, f"{path}: (root)")):
        where = f"{path}: data[{i}]"
        for j, node in enumerate(_field(entry, "paragraphs", list, where)):
            yield f"{where}.paragraphs[{j}]", node


def _field(node: Any, key: str, kind: type, where: str) -> Any:
    """Returns `node[key]`, which must be of type `kind`."""
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
