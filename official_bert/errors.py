"""The exception for invalid input, and parts of error messages."""

import re
from collections.abc import Sequence

# The parts of TensorFlow's messages that describe a graph.
_GRAPH_PARTS = re.compile(r"\{\{.*?\}\} | \[Op:.*")


class InputError(ValueError):
    """Something that the user gave is invalid.

    The message says what must hold, what was received and what to do. It starts
    with ``FILE:LINE:`` if a file is invalid. Commands print it without a
    traceback and exit with status 1.
    """


def bullet_list(problems: Sequence[str]) -> str:
    """Returns the first 40 problems for a message, each on its own line."""
    lines = [*problems[:40]]
    if len(problems) > 40:
        lines.append(f"... and {len(problems) - 40} more")
    return "".join(f"\n  {line}" for line in lines)


def short_reason(error: Exception) -> str:
    """Returns the message of an exception, without TensorFlow's graph names."""
    return _GRAPH_PARTS.sub("", getattr(error, "message", str(error)))
