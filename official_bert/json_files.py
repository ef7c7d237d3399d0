"""JSON, read with errors that say where it is wrong; and written."""

import json
from typing import Any

from official_bert import files
from official_bert.errors import InputError

# Lists in lists in lists, and numbers of thousands of digits: what Python
# refuses to read.
_TOO_MUCH = (RecursionError, ValueError)


def read(path: str) -> Any:
    """Returns what a JSON file holds; a byte-order mark is dropped.

    Raises:
        InputError: The file is missing or no JSON, with its line.
    """
    text = files.read_text(path).removeprefix("\ufeff")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: must be valid JSON. {error.msg} at column "
            f"{error.colno}."
        ) from error
    except _TOO_MUCH as error:
        raise InputError(f"{path}: must be valid JSON. {error}.") from error


def parse_line(text: str, where: str) -> Any:
    """Returns the value that a line of JSON lines holds.

    Args:
        text: The line.
        where: FILE:LINE, to begin an error with.

    Raises:
        InputError: It is no JSON, or holds what is no text.
    """
    try:
        value = json.loads(text)
        if "\\u" in text:  # Only so a text in UTF-8 can have surrogates.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: must be a JSON value, all on one line. Received: "
            f"{error.msg} at character {error.pos + 1}."
        ) from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where}: must be text. Received: half a surrogate pair, "
            f"{error.object[error.start]!r}."
        ) from error
    except _TOO_MUCH as error:
        raise InputError(
            f"{where}: must be a JSON value. Received: {error}."
        ) from error
    return value


def read_object(path: str) -> dict[str, Any]:
    """Returns the one object that a JSON file holds.

    Raises:
        InputError: It is something else.
    """
    found = read(path)
    if not isinstance(found, dict):
        raise InputError(
            f"{path}:1: must hold one JSON object. Received: "
            f"{type(found).__name__}. Use the file as it was released or "
            "written."
        )
    return found


def to_text(value: Any, *, sort_keys: bool = False) -> str:
    """Returns JSON for people to read: a line each, letters as they are."""
    text = json.dumps(value, indent=2, sort_keys=sort_keys, ensure_ascii=False)
    return text + "\n"


def write(path: str, value: Any, *, sort_keys: bool = False) -> None:
    """Writes the `to_text` of a value.

    Raises:
        InputError: The disk is full, or the folder takes no files.
    """
    files.write_text(path, to_text(value, sort_keys=sort_keys))
