"""The inputs of `predict.py`: rows of tables with the columns of a task."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.errors import InputError, quoted
from official_bert.io import tables
from official_bert.options import Predict
from official_bert.tasks.headers import warn_of_header


class Input(NamedTuple):
    """An input of `predict.py`.

    Attributes:
        where: FILE:LINE or FILE, for messages.
        value: What `Task.parse` turns into an example.
        shown: How the output shows it: all cells of a row, the words of a
            sentence, or the value.
    """

    where: str
    value: Any
    shown: Any


def parse_text(value: Any, where: str) -> str:
    """Returns a text, or the `text` of a JSON object.

    Raises `InputError`, whose message begins with `where`, for other values.
    """
    text = value.get("text") if isinstance(value, dict) else value
    if not isinstance(text, str):
        raise InputError(
            f"{where}: must be a text, or an object with a text as `text`. "
            f"Received: {quoted(value)}."
        )
    return text


def has_rows(options: Predict) -> bool:
    """Whether the input of `predict.py` has rows with the task's columns."""
    if options.resolved_format == "jsonl":
        return options.text_a_column is not None
    return options.resolved_format != "text"


def table_inputs(
    options: Predict,
    names: Sequence[str],
    *,
    trained_header: bool = True,
    flags: Mapping[str, str] = {},
) -> Iterator[Input]:
    """Yields the rows of a table of which the task parses the columns `names`.

    Without names, it parses all cells. `trained_header` says whether the tables
    of the training data had a header.
    """
    has_header = options.has_header
    rows = tables.read(
        options.input_file,
        options.resolved_format,
        has_header=trained_header if has_header is None else has_header,
        flags=flags,
    )
    is_table = options.resolved_format not in tables.OBJECTS
    if is_table and names and has_header is None and not trained_header:
        rows = warn_of_header(rows, names)
    for row in rows:
        texts = {name: row.text(name) for name in names}
        cells = {name: row.cells[name] for name in row.columns}
        yield Input(row.where, texts or row.cells, cells)
