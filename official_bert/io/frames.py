"""Tables in memory: data frames and lists of dicts.

pandas and polars are recognized by their methods, and not imported.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from official_bert.errors import InputError, listed, quoted


def is_frame(data: Any) -> bool:
    """Whether this is a DataFrame of polars or pandas."""
    return hasattr(data, "iter_rows") or hasattr(data, "itertuples")


def is_column(data: Any) -> bool:
    """Whether this is a Series of polars or pandas."""
    return hasattr(data, "to_list")


def is_list(data: Any) -> bool:
    """Whether this has items: it is neither a text, nor an object or scalar."""
    is_one = isinstance(data, str | bytes | Mapping)
    is_scalar = getattr(data, "ndim", 1) == 0
    return isinstance(data, Iterable) and not (is_one or is_scalar)


def rows_of(data: Any, name: str) -> list[dict[str, Any]]:
    """Returns the rows of a data frame or of an iterable of dicts.

    Cells become Python values, see `plain`; in a `datasets.Dataset`, ids of
    labels become their names. Raises `InputError`, which calls the data `name`,
    if columns have equal names, or for other data.
    """
    label_names = _label_names(data)
    if is_frame(data):
        columns = [*map(str, data.columns)]
        if len({*columns}) < len(columns):
            raise InputError(
                f"The columns of `{name}` must have different names. Received: "
                f"{listed(columns)}. Rename one."
            )
        rows = (
            data.iter_rows()  # polars
            if hasattr(data, "iter_rows")
            else data.itertuples(index=False, name=None)
        )
        data = (dict(zip(columns, cells, strict=True)) for cells in rows)
    items = [*data] if is_list(data) else None
    if items is None or not all(isinstance(item, Mapping) for item in items):
        raise InputError(
            f"`{name}` must be a pandas or polars DataFrame, or a list of "
            f'dicts such as {{"text": "Good.", "label": "positive"}}. '
            f"Received: {quoted(data if items is None else items)}."
        )
    return [
        {
            str(key): _named(plain(row[key]), label_names.get(key, []))
            for key in row
        }
        for row in items
    ]


def _label_names(data: Any) -> dict[str, list[str]]:
    """Returns {column: names of ids}, which the types of a `Dataset` have.

    The type of a column is a `ClassLabel`, or a list of them, such as tags.
    """
    types = getattr(data, "features", None)
    if not isinstance(types, Mapping):  # Also a column of a pandas DataFrame.
        return {}
    items = {key: getattr(types[key], "feature", types[key]) for key in types}
    return {key: getattr(items[key], "names", []) for key in items}


def _named(cell: Any, names: list[str]) -> Any:
    """Returns ids as names if there are any; -1, no label, as an empty text."""
    if isinstance(cell, list):
        return [_named(item, names) for item in cell] if names else cell
    if names and cell == -1:
        return ""
    return names[int(cell)] if cell in range(len(names)) else cell


def plain(cell: Any) -> Any:
    """Returns a cell as a Python value.

    A missing value (None, NaN, NaT, NA) is an empty text, as in a CSV file.
    Scalars of NumPy and TensorFlow become numbers and texts; arrays, Series and
    sets become lists.
    """
    for method in ("numpy", "tolist", "to_list"):
        if hasattr(cell, method):
            cell = getattr(cell, method)()
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    if isinstance(cell, set | frozenset):
        return sorted(map(plain, cell), key=str)
    # Missing values differ from themselves, except that this is NA for NA.
    is_missing = cell is None or (cell != cell) is not False
    return "" if is_missing else cell


def to_json(cell: Any) -> Any:
    """Returns what `json` writes for other than JSON types, also in lists.

    Dates and decimal numbers become texts.
    """
    value = plain(cell)
    return str(cell) if value is cell else value


def with_columns(frame: Any, columns: Mapping[str, list[Any]]) -> Any:
    """Returns a copy of a data frame with more columns.

    Values beyond the rows of the frame only determine the type of a column.
    """
    size = len(frame)
    added = type(frame)(columns)[:size]
    if hasattr(frame, "hstack"):
        return frame.hstack(added)
    # Without the index, which differs; an empty list would have no type.
    return frame.assign(**{name: added[name].array for name in columns})
