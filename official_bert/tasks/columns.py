"""What the columns of the user's own tables look like."""

import re
from collections.abc import Sequence
from typing import Any

from official_bert.io.rows import Row, to_number

# Header and columns are detected from this many examples.
SAMPLE_SIZE = 1000

ID_NAME = re.compile(r"|id|idx|index|guid|unnamed: \d+(\.\d+)*", re.IGNORECASE)
# Columns with one choice each: A, B or choice_0, option 1, endingA.
CHOICE_NAME = re.compile(
    r"[A-Z]|(choice|option|ending|answer)[ _-]?([A-Z]|\d+)", re.IGNORECASE
)
# Cells that are not texts: without letters, or like ids, such as u017.
_CODE = re.compile(r"[\W\d_]*|(?=\D*\d)[-a-z0-9_.,:+/#]*", re.IGNORECASE)


def is_text(sample: Sequence[Row], name: str) -> bool:
    """Whether more than half of a column's cells are different texts.

    Numbers, dates and ids are not texts.
    """
    cells = [row.cells.get(name) for row in sample]
    texts = {cell.strip() for cell in cells if isinstance(cell, str)}
    return sum(not _CODE.fullmatch(text) for text in texts) > len(cells) / 2


def are_ids(labels: Sequence[Any]) -> bool:
    """Whether all labels are integers, and no integer occurs twice."""
    numbers = {to_number(label) for label in labels}
    is_whole = all(number is not None and number % 1 == 0 for number in numbers)
    return is_whole and len(numbers) == len(labels)
