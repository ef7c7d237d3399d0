"""Whether the first line of a table is a header."""

import itertools
from collections.abc import Iterator, Sequence

from absl import logging

from official_bert.errors import InputError, quoted
from official_bert.io.rows import Row, to_number
from official_bert.options import RunClassifier
from official_bert.tasks.columns import SAMPLE_SIZE


def require_no_other_header(rows: Sequence[Row], sample: Sequence[Row]) -> None:
    """Raises `InputError` if files after that of the sample have a header."""
    others = [list(row.cells.values()) for row in sample]
    for before, row in itertools.pairwise(rows):
        is_first = row.path != before.path
        if is_first and looks_like_header([*row.cells.values()], others):
            raise InputError(
                f"{row.where}: this line looks like a header, but "
                f"{sample[0].path} has none. Several files must have the same "
                "header, or none. If it is data, add --nohas_header."
            )


def detect(
    options: RunClassifier, sample: Sequence[Row], has_names: bool
) -> bool:
    """Whether a table has a header; `has_names` if columns were named."""
    first, *others = (list(row.cells.values()) for row in sample)
    is_single = others and _num_filled(first) == 1 < _num_filled(others[0])
    if is_single and options.task_type != "multilabel":
        cell = quoted(next(filter(None, first)))
        raise InputError(
            f"{sample[0].where}: has a single cell, {cell}. If it is a title, "
            "remove it: the first line must be the header. Otherwise, add "
            "--has_header or --nohas_header."
        )
    has_header = has_names or looks_like_header(first, others)
    verdict = "is the header (otherwise: --nohas_header)"
    if not has_header:
        verdict = (
            "is data; columns have numbers from 0 (otherwise: --has_header)"
        )
    logging.info(f"{sample[0].where}: this line {verdict}: {first}")
    return has_header


def _num_filled(cells: Sequence[str]) -> int:
    return sum(cell != "" for cell in cells)


def looks_like_header(
    first: Sequence[str], others: Sequence[Sequence[str]]
) -> bool:
    """Whether the first line of a table names its columns.

    A line with a number is not a header, except for the numbers 0, 1, ... that
    pandas writes for columns without names. A line with a word above a column
    of numbers is one. Any other line is one, unless it has a cell of more than
    five words, or a cell that occurs in its column again.
    """
    names = [*first]
    if names[:1] == [""]:  # The column of the index.
        del names[0]
    if names and names == [*map(str, range(len(names)))]:
        # Otherwise, this is a table of numbers.
        return any(None in map(to_number, row) for row in others)
    if any(to_number(name) is not None for name in first):
        return False
    # Joined files have several headers.
    others = [row for row in others if [*row] != [*first]]
    columns = list(zip(first, zip(*others, strict=False), strict=False))
    for name, cells in columns:
        if name and None not in map(to_number, cells):
            return True
    is_repeated = any(name and name in cells for name, cells in columns)
    return not is_repeated and all(len(name.split()) <= 5 for name in first)


def warn_of_header(rows: Iterator[Row], names: Sequence[str]) -> Iterator[Row]:
    """Returns the rows; warns if only the first row has one word per cell.

    For a table that follows training data without a header.
    """
    sample = [*itertools.islice(rows, SAMPLE_SIZE)]
    are_words, *others = (
        all(len(row.text(name).split()) == 1 for name in names)
        for row in sample
    )
    if are_words and others and not any(others):
        logging.warning(
            f"{sample[0].where}: this line is an example, too, because the "
            "training data had no header. If it is a header, remove it or, for "
            "predict.py, add --has_header"
        )
    return itertools.chain(sample, rows)
