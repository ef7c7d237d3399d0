"""Folders that are written whole or not at all."""

import contextlib
import os
from collections.abc import Iterable, Iterator

from official_bert.errors import InputError, short_reason
from official_bert.files import reading, remote, writing


def require_free_folder(
    flag: str, path: str, overwrite: bool = False, inputs: Iterable[str] = ()
) -> None:
    """Raises `InputError` unless a folder can be written to `path`.

    Args:
        flag: What names it.
        path: The folder.
        overwrite: Whether there may already be something in it.
        inputs: Files and folders that will be read, and must not be in it.
    """
    if not remote.is_remote(path) and os.path.isfile(path):
        raise InputError(
            f"{flag} must be a folder. Received: {path!r}, which is a file. "
            "Name a folder that does not exist yet."
        )
    for name in inputs:
        if _is_within(name, path):
            raise InputError(
                f"{flag} must be another folder than that of the input. "
                f"Received: {path!r}, where {name!r} is, which would be "
                "replaced. Name another folder."
            )
    if not overwrite and reading.list_folder(path):
        raise InputError(
            f"{flag} must be new or empty. Received: {path!r}, in which "
            "something is. Name another folder, or add --overwrite to replace "
            "all that is in it."
        )
    writing.require_room(os.path.dirname(path.rstrip("/")) or ".")


def _is_within(path: str, folder: str) -> bool:
    outer, inner = os.path.realpath(folder), os.path.realpath(path)
    return os.path.join(inner, "").startswith(os.path.join(outer, ""))


@contextlib.contextmanager
def replacing_folder(path: str) -> Iterator[str]:
    """Yields a temporary folder beside `path` that becomes `path` at the end.

    What stood there before goes when all of the new one is on the disk; what a
    killed process was in the midst of writing goes at once.

    Raises:
        InputError: The disk is full, or the folder takes no files.
    """
    path = path.rstrip("/")
    if not remote.is_remote(path) and os.path.islink(path):
        path = os.path.realpath(path)
    writing.remove_leftovers_of(path)
    temporary = writing.temporary_name(path)
    old = writing.temporary_name(path, "old")
    writing.make_directory(temporary)
    try:
        yield temporary
        # A folder with something in it cannot be replaced in one go.
        is_there = bool(reading.list_folder(path))
        if is_there:
            writing.rename(path, old)
        try:
            writing.rename(temporary, path)
        except BaseException:
            if is_there:
                writing.rename(old, path)
            raise
        if is_there:
            writing.remove_folder(old)
    except OSError as error:
        raise InputError(
            f"{path}: must be writable. Received: {short_reason(error)}. What "
            "stood there before is as it was. Make room, or mend the "
            "permissions, and run the command again."
        ) from error
    finally:
        writing.remove_folder(temporary)


def size_of_folder(path: str) -> int:
    """Returns how many bytes all files in a folder have."""
    walk = remote.gfile().walk if remote.is_remote(path) else os.walk
    return sum(
        reading.size(os.path.join(folder, name))
        for folder, _, names in walk(path)
        for name in names
    )
