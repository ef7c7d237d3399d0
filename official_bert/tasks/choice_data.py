"""Examples of multiple choice, and where they come from."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from official_bert.errors import InputError
from official_bert.tasks.tables import Row


class ChoiceExample(NamedTuple):
    """A context and what may follow.

    Attributes:
        guid: Names it, such as "dev-12".
        context: Text A of every pair.
        choices: Their texts B.
        label: The number of the right one, from 0; None in test data.
    """

    guid: str
    context: str
    choices: Sequence[str]
    label: int | None = None


class ChoiceColumns(NamedTuple):
    """What the parts of an example are called in a JSON object.

    Attributes:
        context: Text A.
        choices: A list of texts B.
        question: What stands before every choice; it may be missing.
    """

    context: str = "context"
    choices: str = "choices"
    question: str = "question"


COLUMNS = ChoiceColumns()


class ChoiceData(Protocol):
    """Where the examples of a `ChoiceTask` come from."""

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads train, dev or test.

        Raises:
            InputError: The file is missing or wrong, with its name and line.
        """


def make_example(
    given: dict[str, Any],
    guid: str,
    where: str,
    num_choices: int,
    columns: ChoiceColumns = COLUMNS,
) -> ChoiceExample:
    """Makes an example, still without label, of a JSON object.

    Args:
        given: The object.
        guid: Of the example.
        where: What to begin an error with.
        num_choices: How many there must be.
        columns: Where the object has what.
    """
    context, choices = given.get(columns.context), given.get(columns.choices)
    question = given.get(columns.question) or ""
    if not isinstance(choices, list) or len(choices) != num_choices:
        raise InputError(
            f"{where}: {columns.choices!r} must be a list of {num_choices} "
            f"texts, as many as all examples have. Received: {choices!r}."
        )
    for text in (context, question, *choices):
        if not isinstance(text, str):
            raise InputError(
                f"{where}: {columns.context!r}, {columns.question!r} and "
                f"{columns.choices!r} must be texts. Received: {text!r}."
            )
    texts = [f"{question} {choice}".strip() for choice in choices]
    return ChoiceExample(guid, str(context), texts)


def read_label(row: Row, column: str, num_choices: int) -> int:
    """Returns the number of the right choice, from 0.

    Raises:
        InputError: The cell holds something else.
    """
    number = row.number(column)
    if number not in range(num_choices):
        raise row.fault(
            column, f"be a choice's number, 0 to {num_choices - 1}", number
        )
    return int(number)
