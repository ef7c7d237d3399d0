"""The lines of a file or of standard input, a chunk at a time."""

import itertools
import sys
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from official_bert import files, progress
from official_bert.errors import InputError

# What an error calls standard input.
STDIN = "<stdin>"
# The reader of standard input goes on: somebody may be typing there.
_ESCAPE = "surrogateescape"
# So much of standard input is read at once, if so much is there.
_READ = 1 << 20


class Line(NamedTuple):
    """A line of input.

    Attributes:
        where: FILE:LINE.
        text: Without its end. Bytes of standard input that are no UTF-8 stand
            there as lone surrogates.
    """

    where: str
    text: str

    def require_text(self) -> None:
        """Raises `InputError` if there were bytes that are no UTF-8."""
        try:
            self.text.encode("utf-8")
        except UnicodeEncodeError as error:
            wrong = self.text[error.start].encode("utf-8", _ESCAPE)
            raise InputError(
                f"{self.where}: text must be UTF-8. Received: the byte "
                f"0x{wrong.hex()}. Convert it, for example with `iconv -t "
                "UTF-8`."
            ) from error


def read_chunks(
    path: str, chunk_size: int, *, show_progress: bool
) -> Iterator[list[Line]]:
    """Yields the lines of a file that are not blank, some at a time.

    Args:
        path: The file; - for standard input.
        chunk_size: How many at a time. Of standard input, a chunk is what is
            there, and so perhaps a single line.
        show_progress: Whether to show on standard error how far it is.

    Raises:
        InputError: The text of a file is not UTF-8, with its line; of standard
            input, `Line.require_text` says so.
    """
    if path == "-":
        found = _arriving(sys.stdin.buffer, chunk_size)
        with progress.bar(
            description="Predicting", unit="line", disable=not show_progress
        ) as bar:
            for chunk in found:
                yield chunk
                bar.update(len(chunk))
        return
    lines = (
        progress.read_lines([path], "Predicting")
        if show_progress
        else files.read_lines(path)
    )
    numbered = _not_blank(path, enumerate(lines, start=1))
    while chunk := list(itertools.islice(numbered, chunk_size)):
        yield chunk


def _not_blank(
    path: str, numbered: Iterator[tuple[int, str]]
) -> Iterator[Line]:
    for number, text in numbered:
        if number == 1:
            text = text.removeprefix("\ufeff")
        if text.strip():
            yield Line(f"{path}:{number}", text)


def _arriving(stream: BinaryIO, chunk_size: int) -> Iterator[list[Line]]:
    """Yields lines as they come, so that none waits for the next."""
    first = 1
    for block in _blocks(stream):
        lines = _not_blank(STDIN, _decoded(block, first))
        while chunk := list(itertools.islice(lines, chunk_size)):
            yield chunk
        first += len(block)


def _blocks(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Yields the lines that are there, waiting for at least one."""
    rest = b""
    # `read1` returns what there is; `read` would wait for more.
    while data := stream.read1(_READ):  # type: ignore[attr-defined]
        *lines, rest = (rest + data).split(b"\n")
        yield lines
    if rest:
        yield [rest]


def _decoded(block: list[bytes], first: int) -> Iterator[tuple[int, str]]:
    """Yields numbers and texts of lines, as `files.read_lines` reads them."""
    for number, line in enumerate(block, start=first):
        yield number, line.decode("utf-8", _ESCAPE).replace("\r", "")
