"""Progress bars, which show progress, speed and remaining time."""

import errno
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tqdm
from absl import logging

from official_bert.errors import suppress_broken_pipe
from official_bert.io import files


def bar(
    iterable: Iterable[Any] | None = None, *, description: str, **others: Any
) -> Any:
    """Returns a `tqdm` progress bar on standard error.

    A terminal gets one live line; a file or a pipe gets a line every ten
    seconds, so that logs stay short. Without `iterable`, call `update`.
    `others` are arguments of `tqdm.tqdm`.
    """
    if sys.stderr is None:  # In programs without a console.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    is_terminal = sys.stderr.isatty()
    # Otherwise, a log line would continue the line of a bar.
    logging.get_absl_handler().python_handler.stream = _Stderr()
    return _Bar(
        iterable,
        desc=description,
        dynamic_ncols=is_terminal,
        mininterval=0.2 if is_terminal else 10.0,
        maxinterval=10.0,
        file=sys.stderr,
        **others,
    )


class _Bar(tqdm.tqdm):
    """A bar that disappears if nobody reads standard error any more.

    For example, Ctrl-C also ends `tee`, before training has saved.
    """

    def display(self, *arguments: Any, **named: Any) -> None:
        with suppress_broken_pipe("stderr", errno.EIO):
            super().display(*arguments, **named)


class _Stderr(io.TextIOBase):
    """Standard error; lines appear above the progress bars."""

    def write(self, text: str) -> int:
        """Writes whole lines."""
        tqdm.tqdm.write(text, file=sys.stderr, end="")
        return len(text)


def read_files(
    names: Sequence[str], description: str, **others: Any
) -> Iterator[Iterator[str]]:
    """Yields the lines of each text file, with a progress bar of all bytes.

    `others` are arguments of `files.read_lines`.
    """
    total = sum(map(files.size, names))
    with bar(
        description=description, total=total, unit="B", unit_scale=True
    ) as bytes_bar:
        for name in names:
            yield files.read_lines(name, bytes_bar.update, **others)
