"""Reading JSON, with errors that name the line, and writing it."""

import json
from typing import Any

from official_bert import files
from official_bert.errors import InputError

# For deeply nested lists, and numbers with thousands of digits.
_TOO_LARGE = (RecursionError, ValueError)


def read(path: str) -> Any:
    """Returns the content of a JSON file. A byte order mark is ignored.

    Raises `InputError` if the file is missing or not valid JSON.
    """
    text = files.read_text(path).removeprefix("\ufeff")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}:{error.lineno}: must be valid JSON. {error.msg} at column "
            f"{error.colno}."
        ) from error
    except _TOO_LARGE as error:
        raise InputError(f"{path}: must be valid JSON. {error}.") from error


def parse_line(text: str, where: str) -> Any:
    """Returns the value in one line of JSON lines.

    Raises `InputError` if the line is not valid JSON, or contains a lone
    surrogate. The message starts with `where`: FILE:LINE.
    """
    try:
        value = json.loads(text)
        if "\\u" in text:  # UTF-8 itself has no surrogates.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        return value
    except json.JSONDecodeError as error:
        must_be = "a JSON value, all on one line"
        reason = f"{error.msg} at character {error.pos + 1}"
    except UnicodeEncodeError as error:
        must_be = "text"
        reason = f"a lone surrogate, {error.object[error.start]!r}"
    except _TOO_LARGE as error:
        must_be, reason = "a JSON value", str(error)
    raise InputError(f"{where}: must be {must_be}. Received: {reason}.")


def read_object(path: str) -> dict[str, Any]:
    """Returns the object in a JSON file.

    Raises `InputError` if the file is missing or contains something else.
    """
    found = read(path)
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise InputError(
            f"{path}:1: must be one JSON object. Received: {kind}."
        )
    return found


def to_text(value: Any, *, sort_keys: bool = False) -> str:
    """Returns indented JSON with unescaped letters."""
    text = json.dumps(value, indent=2, sort_keys=sort_keys, ensure_ascii=False)
    return text + "\n"


def write(path: str, value: Any, *, sort_keys: bool = False) -> None:
    """Writes the `to_text` of a value, or raises `InputError`."""
    files.write_text(path, to_text(value, sort_keys=sort_keys))
