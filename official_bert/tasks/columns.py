"""Which column of a benchmark's file holds what.

Columns are counted from 0 and separated by tabs; quotes are ordinary
characters.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from official_bert.errors import InputError
from official_bert.tasks import tables
from official_bert.tasks.text_data import TextExample


class Columns(NamedTuple):
    """Where things stand in a file.

    Attributes:
        text_a: The text's column.
        text_b: The second text's, for pairs.
        label: The label's; -1 is the last. None in test data.
        guid: The example's name; None for its line.
        has_header: Whether the first line names the columns.
    """

    text_a: int
    text_b: int | None = None
    label: int | None = None
    guid: int | None = None
    has_header: bool = True

    @property
    def least(self) -> int:
        """How many columns a line must have."""
        found = (self.text_a, self.text_b, self.label, self.guid)
        return max(number for number in found if number is not None) + 1

    def require(self, cells: Sequence[str], where: str) -> None:
        """Raises `InputError` unless a line has all columns."""
        if len(cells) < self.least:
            raise InputError(
                f"{where}: a line must have at least {self.least} columns, "
                f"separated by tabs. Received: {len(cells)}. Is this file of "
                "the task that --task_name says?"
            )

    def example(
        self, cells: Sequence[str], labels: Sequence[str], where: str, guid: str
    ) -> TextExample:
        """Makes an example of a line that has all columns."""
        return TextExample(
            guid,
            cells[self.text_a],
            None if self.text_b is None else cells[self.text_b],
            None
            if self.label is None
            else parse_label(cells[self.label], labels, where),
        )


def predictions_table(ids: Iterable[Any], predictions: Sequence[Any]) -> str:
    """Returns a line for each prediction, below a header."""
    rows = zip(ids, predictions, strict=True)
    return tables.to_tsv([("index", "prediction"), *rows])


def parse_label(text: str, labels: Sequence[str], where: str) -> Any:
    """Returns a label, or where there are none a number.

    Raises:
        InputError: It is neither.
    """
    if labels:
        if text not in labels:
            raise InputError(
                f"{where}: the label must be one of {', '.join(labels)}. "
                f"Received: {text!r}."
            )
        return text
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(
            f"{where}: the label must be a number. Received: {text!r}."
        )
    return number
