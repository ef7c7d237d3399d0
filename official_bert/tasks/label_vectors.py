"""Labels as vectors: a 0 or 1 for each label, in a list or in several columns.

A list may be a text, as programs write it, such as "[1. 0. 1.]"::

    {"text": "Taxes rise, rents too.", "topics": [1, 0, 1]}

    text,money,sport,home
    "Taxes rise, rents too.",1,0,1
"""

import re
from collections.abc import Collection, Iterable
from typing import Any

from official_bert.io.rows import to_bit, to_number

_PRINTED_LIST = re.compile(r"\s*(\[.*\]|\(.*,.*\))\s*", re.DOTALL)
_DIGITS = re.compile(r"\s*[01]([,;|\s]+[01])+\s*")


def default_names(size: int) -> tuple[str, ...]:
    """Returns the names of labels whose names are unknown."""
    return tuple(f"label_{number}" for number in range(size))


def size_of(cells: Iterable[Any]) -> int:
    """Returns the length of the vectors in a column of labels; 0 without any.

    The digits "0" and "1" may also be names: ["0", "1"] and "0,1" are vectors
    only if all cells are such and have the same length.
    """
    cells = list(cells)
    for numbers in filter(None, map(numbers_in, cells)):
        if len(numbers) > 1 and {*numbers} <= {0, 1}:
            return len(numbers)
    sizes = {len(_digits_in(cell)) for cell in cells}
    return sizes.pop() if len(sizes) == 1 else 0


def find(cell: Any, labels: Collection[str] | None) -> list[float] | None:
    """Returns the numbers in a cell; None if it has the names of `labels`.

    The numbers may differ from 0 and 1. `labels` is None if unknown.
    """
    numbers, digits = numbers_in(cell), _digits_in(cell)
    are_names = labels is None or {*digits} <= {*labels}
    if numbers is None and (not are_names or len({*digits}) < len(digits)):
        return [float(digit) for digit in digits]
    return numbers


def numbers_in(cell: Any) -> list[float] | None:
    """Returns the numbers in a list; None for other cells.

    True and false are 1 and 0. Texts in a JSON list are not numbers.
    """
    items = cell
    if isinstance(cell, str) and _PRINTED_LIST.fullmatch(cell):
        items = cell.strip()[1:-1].replace(",", " ").split()
    elif not isinstance(cell, list) or all(isinstance(x, str) for x in cell):
        return None
    pairs = zip(items, map(to_bit, items), strict=True)
    found = [to_number(item) if bit is None else bit for item, bit in pairs]
    numbers = [float(number) for number in found if number is not None]
    return numbers if 0 < len(numbers) == len(found) else None


def _digits_in(cell: Any) -> list[str]:
    """Returns the items of ["0", "1"] or of "0,1"; [] for other cells."""
    if isinstance(cell, str) and _DIGITS.fullmatch(cell):
        return re.findall("[01]", cell)
    are_digits = isinstance(cell, list) and all(x in ("0", "1") for x in cell)
    return cell if are_digits and len(cell) > 1 else []
