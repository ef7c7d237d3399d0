"""Reads and writes JSON; errors name the line."""

import json
import math
import os
import re
import types
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple

from official_bert.errors import InputError, quoted
from official_bert.io import files

# Types for `decode`.
Count = Annotated[int, range(1, 2**31)]
Amount = Annotated[int, range(2**31)]
Size = Annotated[int, range(2**16)]  # The size of an array in memory.

# For files in JSON that should be JSON Lines.
WRITE_LINES = (
    "Write one JSON object per line; pandas does with "
    'to_json(path, orient="records", lines=True).'
)

_OBJECT = re.compile(r'\s*\{\s*(".*)?\}\s*')

# Raised for deeply nested lists, very long numbers and lone surrogates.
_INVALID = (RecursionError, ValueError)


def read(path: str) -> Any:
    """Returns the content of a JSON file. A byte order mark is ignored.

    Raises `InputError` if the file is missing or not valid JSON, or contains a
    lone surrogate.
    """
    return parse(files.read_text(path).removeprefix("\ufeff"), path)


def parse(text: str, where: str, *, has_unique_keys: bool = False) -> Any:
    """Returns the value in a JSON text.

    Raises `InputError` if the text is not valid JSON, contains a lone surrogate
    or, with `has_unique_keys`, an object with a key that occurs twice. The
    message starts with `where`, such as the path of the file.
    """
    try:
        return _parse(text, _decode_unique if has_unique_keys else json.loads)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}:{error.lineno}: must be valid JSON. "
            f"{error.msg.removesuffix(' at')} at column {error.colno}."
        ) from error
    except _INVALID as error:
        raise InputError(f"{where}: must be valid JSON. {error}.") from error


def looks_like_object(line: str) -> bool:
    """Whether a line of text seems to be a JSON object."""
    return _OBJECT.fullmatch(line) is not None


def parse_line(text: str, where: str) -> Any:
    """Returns the value in one line of JSON lines.

    Raises `InputError` if the line is not valid JSON, or contains a lone
    surrogate or a key twice. The message starts with `where`: FILE:LINE.
    """
    try:
        return _parse(text, _decode_unique)
    except json.JSONDecodeError as error:
        # The first line of an indented file may be "[" or "{".
        is_whole_file = text.lstrip()[:1] == "[" or text.strip() == "{"
        advice = f" {WRITE_LINES}" if is_whole_file else ""
        raise InputError(
            f"{where}: must be a JSON value, all on one line. Received: "
            f"{error.msg.removesuffix(' at')} at character {error.pos + 1}."
            f"{advice}"
        ) from error
    except _INVALID as error:
        raise InputError(f"{where}: must be a JSON value. {error}.") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"It has the key {twice!r} twice")
    return value


# Created once: this takes as long as decoding a line.
_decode_unique = json.JSONDecoder(object_pairs_hook=_unique).decode


def _parse(text: str, decode: Callable[[str], Any]) -> Any:
    value = decode(text)
    if "\\u" in text:  # UTF-8 itself has no surrogates.
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(
                f"It has a lone surrogate, {error.object[error.start]!r}"
            ) from error
    return value


def read_object(path: str) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Raises `InputError` if the file is missing or contains something else.
    """
    content = read(path)
    if not isinstance(content, dict):
        kind = type(content).__name__
        raise InputError(
            f"{path}:1: must be one JSON object. Received: {kind}."
        )
    return content


class JsonObject(NamedTuple):
    """An object in a JSON file."""

    path: str  # The file, for messages.
    content: dict[str, Any]

    def get(self, key: str, kind: Any) -> Any:
        """Returns a value, decoded; a missing key is the same as null.

        Raises `InputError` if it does not fit the type `kind`, see `decode`.
        """
        try:
            return decode(self.content.get(key), kind, key)
        except ValueError as error:
            raise InputError(f"{self.path}: {error}") from error

    def nested(self, key: str) -> "JsonObject":
        """Returns the object at a key; an empty one if the key is missing."""
        return JsonObject(self.path, self.get(key, dict | None) or {})


def load(*path: str, must_exist: bool = False) -> JsonObject:
    """Returns the object in a file, such as `load(directory, name)`.

    A missing file is empty; with `must_exist`, it raises `InputError`.
    """
    joined = os.path.join(*path)
    is_read = must_exist or files.exists(joined)
    return JsonObject(joined, read_object(joined) if is_read else {})


def decode(value: Any, kind: Any, name: str) -> Any:
    """Returns a JSON value as a value of an annotated type.

    An object becomes a `NamedTuple` or data class, a list becomes a tuple.
    `Annotated` values must be in the given range or tuple. Raises `ValueError`
    with the name of the value if it does not fit, and `TypeError` if an object
    lacks a field.
    """
    args = typing.get_args(kind)
    # X | None; `Annotated` gives a `typing.Union`.
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return None if value is None else decode(value, args[0], name)
    if typing.get_origin(kind) is Annotated:
        kind, allowed = args
        if type(value) is kind and value not in allowed:
            must_be = f"between {allowed[0]} and {allowed[-1]}"
            if kind is str:
                must_be = f"one of {', '.join(allowed)}"
            raise ValueError(
                f"`{name}` must be {must_be}. Received: {quoted(value)}."
            )
    if typing.get_origin(kind) is dict and isinstance(value, dict):
        return {k: decode(item, args[1], k) for k, item in value.items()}
    if typing.get_origin(kind) is tuple and isinstance(value, list):
        return tuple(decode(item, args[0], name) for item in value)
    fields = _fields(kind)
    if fields and isinstance(value, dict) and value.keys() <= fields.keys():
        return kind(**{k: decode(v, fields[k], k) for k, v in value.items()})
    if kind is float and type(value) is int and value.bit_length() < 1024:
        return float(value)
    if type(value) is kind and (kind is not float or math.isfinite(value)):
        return value
    raise ValueError(
        f"`{name}` must be {_description(kind)}. Received: {quoted(value)}."
    )


def _fields(kind: Any) -> dict[str, Any]:
    """Returns the types of the fields of a named tuple or data class."""
    if typing.get_origin(kind):
        return {}
    return typing.get_type_hints(kind, include_extras=True)


def _description(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return "a list"
    if dict in (kind, typing.get_origin(kind)):
        return "an object"
    if fields := _fields(kind):
        return f"an object with only {', '.join(fields)}"
    return {int: "an int", float: "a finite number"}.get(
        kind, f"a {kind.__name__}"
    )


def to_text(value: Any, *, sort_keys: bool = False) -> str:
    """Returns indented JSON with unescaped letters."""
    text = json.dumps(value, indent=2, sort_keys=sort_keys, ensure_ascii=False)
    return text + "\n"


def to_lines(values: Iterable[Any]) -> str:
    """Returns JSON lines with unescaped letters."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    return "".join(f"{encode(value)}\n" for value in values)


def write(path: str, value: Any, *, sort_keys: bool = False) -> None:
    """Writes `to_text(value)`, or raises `InputError`."""
    files.write_text(path, to_text(value, sort_keys=sort_keys))
