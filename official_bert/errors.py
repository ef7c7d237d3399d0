"""The exception for invalid input, messages and their parts, broken pipes."""

import contextlib
import errno
import functools
import importlib.util
import numbers
import os
import re
import reprlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from absl import logging

# The parts of TensorFlow's messages that describe a graph.
_GRAPH_PARTS = re.compile(
    r"\{\{.*?\}\} | \[Op:.*|Graph execution error:\s+"
    r"|Detected at node .*\n(\s+File .*\n)*\s*"
)

_CUT = reprlib.Repr()
_CUT.maxstring = _CUT.maxother = _CUT.maxlong = 100
_CUT.maxlist = _CUT.maxtuple = _CUT.maxdict = 10

# Logs a message once, because files are read several times.
log_once = functools.cache(logging.log)

# The modules of optional packages, and their extras in pyproject.toml.
EXTRAS = {
    "ai_edge_litert": "tflite",
    "apache_beam": "beam",
    "keras_hub": "keras-hub",
    "livekit.blingfire": "split-sentences",
    "matplotlib": "plots",
    "nncf": "nncf",
    "onnxruntime": "onnx",
    "openpyxl": "tables",
    "openvino": "openvino",
    "polars": "tables",
    "tensorflow_hub": "tfhub",
    "tensorflow_text": "serving-text",
    "tf2onnx": "onnx",
    "uvicorn": "server",
}


@contextlib.contextmanager
def suppress_broken_pipe(name: str = "stdout", *others: int) -> Iterator[None]:
    """Ends the block silently if the reader of a standard stream has ended.

    Such a reader is `head`. For blocks that only write, `others` may be `EIO`,
    the error number if the terminal was closed.
    """
    stream = getattr(sys, name)
    try:
        yield
        if stream:  # None if it is closed.
            stream.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, *others):
            raise
        # Otherwise, Python prints an error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class InputError(ValueError):
    """A flag, file or argument that the user gave is invalid.

    The message says what is required, what was received and what to do. It
    starts with ``FILE:LINE:`` if a file is invalid. Commands print it without a
    traceback and exit with status 1.
    """


def require_count(name: str, value: Any, at_least: int = 1) -> None:
    """Raises `InputError` unless `value` is an integer of this size."""
    if not (isinstance(value, numbers.Integral) and int(value) >= at_least):
        raise InputError(
            f"`{name}` must be an integer of at least {at_least}. Received: "
            f"{value!r}."
        )


def missing_package(package: str) -> str | None:
    """Returns the end of a message if a package is not installed, or None."""
    # For a nested package, `find_spec` imports its parents.
    with contextlib.suppress(ModuleNotFoundError):
        if importlib.util.find_spec(package):
            return None
    extra = f"[{EXTRAS[package]}]" if package in EXTRAS else ""
    return f"needs the package {package}. Run pip install -e '.{extra}'."


def require_package(package: str, user: str) -> None:
    """Raises `InputError`, "USER needs ...", if a package is not installed."""
    if problem := missing_package(package):
        raise InputError(f"{user} {problem}")


def bullet_list(problems: Sequence[str]) -> str:
    """Returns the first 40 problems for a message, each on its own line."""
    lines = [*problems[:40]]
    if len(problems) > 40:
        lines.append(f"... and {len(problems) - 40} more")
    return "".join(f"\n  {line}" for line in lines)


def listed(names: Iterable[Any]) -> str:
    """Returns the first ten names for a message: "a, b, ... and 7 more"."""
    texts = list(map(str, names))
    shown = [t if len(t) <= 100 else f"{t[:100]}..." for t in texts[:10]]
    if len(texts) > 10:
        shown.append(f"... and {len(texts) - 10} more")
    return ", ".join(shown)


def quoted(value: Any) -> str:
    """Returns the `repr` of a value for a message, shortened if it is long."""
    return _CUT.repr(value)


def first_line(error: Exception) -> str:
    """Returns the first line of an exception's message, or its class name."""
    lines = short_reason(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def short_reason(error: Exception) -> str:
    """Returns the message of an exception, without TensorFlow's graph names."""
    return _GRAPH_PARTS.sub("", getattr(error, "message", str(error)))
