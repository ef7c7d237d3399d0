"""Tables of questions, in JSON Lines, CSV or TSV.

```
id,question,context,answer_text,answer_start
1,Where does Bob live?,Bob lives in Lima.,Lima,13
2,How old is Bob?,Bob lives in Lima.,,
```

`id` and `answer_start` are optional. Instead of the last two columns, there may
be `answers`, as in the data sets of Hugging Face::

    {"text": ["Lima"], "answer_start": [13]}
"""

import ast
import contextlib
import re
from collections.abc import Iterator
from typing import Any

from official_bert.io import tables
from official_bert.io.rows import Row, to_bit

_MUST_BE_ANSWERS = (
    'be an object such as {"text": ["Lima"], "answer_start": [13]}, or be '
    "replaced by the columns answer_text and answer_start"
)


# How NumPy shows an array in an object, such as array([7], dtype=int32).
_ARRAY = re.compile(r"\barray\((\[.*?\])(?:,\s*dtype=[^)]*)?\)", re.DOTALL)


def read(
    path: str, is_training: bool
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yields the position of each row, its context, and its `qa` as in SQuAD.

    The list of answers has an empty answer if there is no answer. For
    predicting, it may be missing. Raises `InputError` if a row is malformed.
    """
    for row in tables.read(path, tables.format_of(path)):
        name = row.name("id") if "id" in row.cells else str(row.line)
        qa: dict[str, Any] = {"id": name, "question": row.text("question")}
        answers = _answers(row, is_training)
        if answers is not None:
            qa["answers"] = answers or [{"text": ""}]
            is_impossible = not any(a["text"].strip() for a in answers)
            given = row.cells.get("is_impossible")
            if to_bit(given) and not is_impossible:
                must = "be false, or the answer empty"
                raise row.error("is_impossible", must, given)
            # With this key, the metrics of SQuAD 2.0 are computed.
            if is_training or is_impossible:
                qa["is_impossible"] = is_impossible
        yield f"{row.where} (question {name!r})", row.text("context"), qa


def _answers(row: Row, is_training: bool) -> list[dict[str, Any]] | None:
    """Returns a row's answers; None if it may lack them, and does."""
    if "answers" in row.cells:
        answers = _decode(row, row.cells["answers"])
        context = row.text("context")
        return [_in_context(answer, context) for answer in answers]
    if "answer_text" not in row.cells and not is_training:
        return None
    text = "" if row.get("answer_text") is None else row.text("answer_text")
    start = row.cells.get("answer_start")
    if not text.strip() or start in (None, ""):
        return [{"text": text}]
    number = row.number("answer_start")
    if number < 0 or number % 1:
        raise row.error("answer_start", "be 0 or a larger integer", start)
    answer = {"text": text, "answer_start": int(number)}
    return [_in_context(answer, row.text("context"))]


def _in_context(answer: dict[str, Any], context: str) -> dict[str, Any]:
    r"""Returns an answer whose offset does not count carriage returns.

    The table's reader drops them, but offsets may count line ends as `\r\n`.
    """
    text, offset = answer["text"], answer.get("answer_start")
    if type(offset) is int and not context.startswith(text, offset):
        text = text.replace("\r\n", "\n")
        original = context.replace("\n", "\r\n")
        if original.startswith(text.replace("\n", "\r\n"), offset):
            offset -= original.count("\r", 0, offset)
            return {"text": text, "answer_start": offset}
    return answer


def _decode(row: Row, value: Any) -> list[dict[str, Any]]:
    """Returns the answers in the column `answers`."""
    answers = value
    if isinstance(value, str):  # In CSV, as pandas and json write objects.
        for text in (value, _ARRAY.sub(r"\1", value)):
            with contextlib.suppress(ValueError, SyntaxError, RecursionError):
                answers = ast.literal_eval(text)
                break
    if isinstance(answers, dict):
        texts, starts = answers.get("text"), answers.get("answer_start")
        if (
            isinstance(texts, list)
            and isinstance(starts, list)
            and len(texts) == len(starts)
        ):
            pairs = zip(texts, starts, strict=True)
            answers = [{"text": t, "answer_start": s} for t, s in pairs]
    if not are_answers(answers):
        raise row.error("answers", _MUST_BE_ANSWERS, value)
    return answers


def are_answers(value: Any) -> bool:
    """Whether a value is a list of answers as in SQuAD; texts may be empty."""
    return isinstance(value, list) and all(map(has_text, value))


def has_text(answer: Any) -> bool:
    """Whether an answer is an object with a text."""
    return isinstance(answer, dict) and isinstance(answer.get("text"), str)
