"""Finding files and reading them."""

import contextlib
import glob as local_glob
import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast

from official_bert.errors import InputError
from official_bert.files import remote


def exists(path: str) -> bool:
    """Whether there is a file or folder called `path`."""
    if not remote.is_remote(path):
        return os.path.exists(path)
    with remote.errors_as_input_errors(path):
        return bool(remote.gfile().exists(path))


def _glob(pattern: str) -> list[str]:
    if not remote.is_remote(pattern):
        if os.path.exists(pattern):  # It may have [ ] in its name.
            return [pattern]
        return local_glob.glob(pattern)
    with remote.errors_as_input_errors(pattern):
        return list(remote.gfile().glob(pattern))


def expand(patterns: str) -> list[str]:
    """Returns the files that comma-separated glob patterns stand for.

    Args:
        patterns: Such as ``"a.txt,shards/*.gz"``.

    Returns:
        Their names: the patterns in the order given, sorted within a pattern.

    Raises:
        InputError: A pattern matches nothing, or a folder.
    """
    names: list[str] = []
    for pattern in filter(None, patterns.split(",")):
        matches = sorted(_glob(pattern))
        if not matches:
            raise InputError(
                f"Input files must exist. Received: {pattern!r}, which matches "
                "no file. Check the path, and quote patterns with a `*`."
            )
        names.extend(matches)
    if not names:
        raise InputError(
            f"At least one input file must be named. Received: {patterns!r}. "
            "Give files or globs, comma-separated."
        )
    for name in names:
        if os.path.isdir(name):
            raise InputError(
                f"Input must be files. Received: {name!r}, which is a folder. "
                f"Name the files in it, such as '{name.rstrip('/')}/*'."
            )
    return names


def require(path: str, what: str) -> None:
    """Raises `InputError` unless the file `path` exists.

    Args:
        path: The file.
        what: What it is to be, for the message: "The vocabulary".
    """
    if not exists(path) or os.path.isdir(path):
        raise InputError(
            f"{what} must be an existing file. Received: {path!r}. "
            "Check the path."
        )


# The folder, in that of a run that evaluates on the way, of what did best.
BEST = "best"


def beside(checkpoint: str, name: str) -> str | None:
    """Returns the path of a file that belongs to a checkpoint, if it is there.

    Args:
        checkpoint: Its path without `.index`, or a run's folder; the folder of
            its best checkpoint is one deeper than its files.
        name: Of the file.
    """
    folder = checkpoint
    if not exists(checkpoint):
        folder = os.path.dirname(checkpoint)
    homes = [folder]
    if os.path.basename(folder) == BEST:
        homes.append(os.path.dirname(folder))
    for home in homes:
        path = os.path.join(home, name)
        if exists(path):
            return path
    return None


def require_plain(path: str) -> None:
    """Raises `InputError` if a checkpoint could not be read from a path."""
    # TensorFlow's reader looks for the index by a pattern, and escapes nothing.
    if "[" in path or "\\" in path:
        raise InputError(
            f"{path}: a checkpoint's path must have no [ and no backslash, "
            "with which TensorFlow cannot read it. Rename the folder, or "
            "choose another."
        )


def size(path: str) -> int:
    """Returns the length of a file in bytes, as it is stored."""
    if remote.is_remote(path):
        with remote.errors_as_input_errors(path):
            return int(remote.gfile().stat(path).length)
    return os.path.getsize(path)


def list_folder(path: str) -> list[str]:
    """Returns the names in a folder, sorted; none if there is no folder."""
    path = path or "."
    if not remote.is_remote(path):
        return sorted(os.listdir(path)) if os.path.isdir(path) else []
    with remote.errors_as_input_errors(path):
        gfile = remote.gfile()
        names = gfile.listdir(path) if gfile.isdir(path) else []
    # There, names of folders end in a slash.
    return sorted(name.rstrip("/") for name in names)


@contextlib.contextmanager
def open_binary(path: str) -> Iterator[BinaryIO]:
    """Opens `path` for reading bytes, through gzip if it ends in ``.gz``."""
    try:
        raw = _open(path)
    except OSError as error:
        raise InputError(
            f"Cannot read {path!r}: {error.strerror or error}. "
            "Give the path of a file that exists and may be read."
        ) from error
    with raw:
        if path.endswith(".gz"):
            yield cast(BinaryIO, gzip.GzipFile(fileobj=raw))
        else:
            yield raw


def _open(path: str) -> Any:
    if not remote.is_remote(path):
        return open(path, "rb")
    with remote.errors_as_os_errors(path):
        file = remote.gfile().GFile(path, "rb")
        file.seek(0)  # Else a missing file is noticed only when it is read.
        return file


def is_gzip(path: str) -> bool:
    """Whether a file, whatever its name, begins as gzip files do."""
    with _open(path) as file:
        return bool(file.read(3) == b"\x1f\x8b\x08")


def read_text(path: str) -> str:
    """Returns the whole of a UTF-8 file, its line ends as they are."""
    with open_binary(path) as file:
        try:
            data = file.read()
        except _GZIP_ERRORS as error:
            raise _not_gzip(path, 1, error) from error
        return _decode(data, path, first_line=1)


def read_lines(
    path: str, on_bytes: Callable[[int], object] | None = None
) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file as the 2018 release reads them.

    Lines end at ``\n`` only (not at U+2028, U+0085, VT or FF), every ``\r`` is
    dropped wherever it stands, and a byte-order mark is kept. Nothing but
    ``\r`` after the last ``\n`` is no line.

    Args:
        path: A local or remote file; ``.gz`` is unpacked on the way.
        on_bytes: Called with the number of bytes read, as they are stored,
            since the line before; for progress.

    Raises:
        InputError: The file is missing, not UTF-8 or not gzip, with its line.
    """
    with open_binary(path) as file:
        stored = getattr(file, "fileobj", file)  # Before gzip unpacks it.
        number = position = 0
        try:
            for number, line in enumerate(file, start=1):
                if on_bytes and stored.seekable():  # A pipe is not.
                    on_bytes(stored.tell() - position)
                    position = stored.tell()
                text = _decode(line, path, number).replace("\r", "")
                if text:
                    yield text.removesuffix("\n")
        except _GZIP_ERRORS as error:
            raise _not_gzip(path, number + 1, error) from error


def numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yields the number, from 1, and the text of every line of a file.

    They are those of `read_lines`, but for a byte-order mark, which is dropped.
    """
    for number, line in enumerate(read_lines(path), start=1):
        yield number, line.removeprefix("\ufeff") if number == 1 else line


# A file cut short, one that is no gzip at all, and one that is damaged.
_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


def _not_gzip(path: str, line: int, error: Exception) -> InputError:
    return InputError(
        f"{path}:{line}: must be complete gzip data. Received: {error}. "
        "Compress or copy the file again."
    )


def _decode(data: bytes, path: str, first_line: int) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise InputError(
            f"{path}:{line}: text must be UTF-8. Received: the byte "
            f"0x{data[error.start]:02x} ({error.reason}). Convert the file, "
            "for example with `iconv -t UTF-8`."
        ) from error
