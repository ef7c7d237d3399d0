"""Decoding of UTF-8; errors name the line, and what the file is instead."""

import codecs
import gzip
import os
import shlex
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from official_bert.errors import InputError

# The first bytes of a file that `git clone` wrote without Git LFS.
LFS_POINTER = b"version https://git-lfs"

# The first bytes of some files that are not text, and what to do with them.
_NOT_TEXT = {
    b"PK\x03\x04": "a ZIP archive, such as .xlsx. Rename it or, if this is no "
    "table, export it as CSV in UTF-8",
    b"PAR1": "Parquet. The name of a table must end in .parquet; for a corpus, "
    "export the text",
    b"\xd0\xcf\x11\xe0": "an Office file, such as .xls. Export it as CSV",
    b"\x1f\x8b": "gzip data. Give the file a name that ends in .gz",
    b"BZh91AY&SY": "bzip2 data. Unpack it",
    b"\xfd7zXZ": "xz data. Unpack it",
    b"\x28\xb5\x2f\xfd": "Zstandard data. Unpack it",
    b"%PDF-": "PDF. Extract the text",
    b"{\\rtf": "RTF. Save it as plain text in UTF-8",
    LFS_POINTER: "a pointer of Git LFS. Run `git lfs pull`",
}


def _iconv(path: str, encoding: str = "ENCODING") -> str:
    """Returns the command that converts a file to UTF-8."""
    command, file = f"iconv -f {encoding} -t UTF-8", shlex.quote(path)
    if path.lower().endswith(".gz"):
        return f"`zcat {file} | {command} > NEW`"
    return f"`{command} {file} > NEW{os.path.splitext(path)[1]}`"


def _require_text(path: str, start: bytes) -> None:
    """Raises `InputError` if a file begins like UTF-16 or a binary format."""
    formats = dict(_NOT_TEXT)
    if start[257:262] == b"ustar":
        formats[start[:262]] = "a tar archive. Unpack it"
    orders = {codecs.BOM_UTF16_LE: "", codecs.BOM_UTF16_BE: ""}
    # Without a mark, every other byte of English text is zero.
    first = start[:4]
    for order, zeros in (("LE", first[1::2]), ("BE", first[::2])):
        if zeros == b"\0\0" and first.count(0) == 2:
            orders[first] = order
    for first_bytes, order in orders.items():
        command = _iconv(path, f"UTF-16{order}")
        formats[first_bytes] = f"UTF-16. Convert it: {command}"
    for first_bytes, received in formats.items():
        if start.startswith(first_bytes):
            raise InputError(
                f"{path}:1: text must be UTF-8. Received: {received}."
            )


def decode(
    path: str,
    stored: BinaryIO,
    on_bytes: Callable[[int], object] | None = None,
    *,
    by_line: bool = True,
) -> Iterator[str]:
    r"""Yields the lines of an open UTF-8 file, or its whole content.

    Only the whole content keeps every `\r`: TensorFlow drops them from the
    lines of remote files. For `on_bytes` and errors see `files.read_lines`.
    """
    is_packed = path.lower().endswith(".gz")
    file = gzip.GzipFile(fileobj=stored) if is_packed else stored
    number = position = 0
    try:
        lines = file if by_line else [file.read()]
        for number, line in enumerate(lines, start=1):
            if on_bytes and stored.seekable():  # Pipes are not.
                on_bytes(stored.tell() - position)
                position = stored.tell()
            if number == 1:
                _require_text(path, line)
            yield line.decode("utf-8")
    except UnicodeDecodeError as error:
        number += error.object.count(b"\n", 0, error.start)
        if b"\0\0" in error.object[:16]:
            raise InputError(
                f"{path}: must be text in UTF-8. Received: binary data, "
                "such as TFRecords."
            ) from error
        raise InputError(
            f"{path}:{number}: text must be UTF-8. Received: byte "
            f"0x{error.object[error.start]:02x} ({error.reason}). Convert "
            f"it: {_iconv(path)}, where ENCODING is often WINDOWS-1252."
        ) from error
    # Raised for truncated data, data that is not gzip, and damaged data.
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"{path}:{number + 1}: invalid gzip data: {error}. Compress or "
            "copy the file again."
        ) from error
