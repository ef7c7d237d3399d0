"""The one exception that means "the input is at fault, not the program"."""

import re
from collections.abc import Sequence

# What an error of TensorFlow says of a graph rather than of a file.
_OF_GRAPHS = re.compile(r"\{\{.*?\}\} | \[Op:.*")


class InputError(ValueError):
    """Something the user gave cannot be used.

    Its message says what must hold, what was received and what to do; where a
    file is at fault it starts with ``FILE:LINE:``. Commands print the message
    alone, without a traceback, and exit with status 1.
    """


def bullet_list(problems: Sequence[str]) -> str:
    """Returns problems for a message, each on a line: the first 40."""
    lines = [*problems[:40]]
    if len(problems) > 40:
        lines.append(f"... and {len(problems) - 40} more")
    return "".join(f"\n  {line}" for line in lines)


def short_reason(error: Exception) -> str:
    """Returns what an error says, and of TensorFlow's what a user may read."""
    return _OF_GRAPHS.sub("", getattr(error, "message", str(error)))
