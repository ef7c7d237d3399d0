"""Folders, and files that are written whole or not at all."""

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from official_bert.errors import InputError
from official_bert.files import remote


def make_directory(path: str) -> None:
    """Makes the folder `path`, if need be, and checks that it takes files."""
    try:
        if remote.is_remote(path):
            with remote.errors_as_os_errors(path):
                remote.gfile().makedirs(path)
        else:
            os.makedirs(path, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
    except OSError as error:
        raise InputError(
            f"The output folder must be writable. Received: {path!r} "
            f"({error.strerror or error}). Choose another, or mend its "
            "permissions."
        ) from error


def require_room(folder: str) -> None:
    """Raises `InputError` if `make_directory` would, without making anything.

    It looks at the nearest folder that exists; remote ones are let pass.
    """
    if remote.is_remote(folder):
        return
    nearest = os.path.abspath(folder)
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest) or not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"The output folder must be writable. Received: {folder!r} "
            f"({nearest!r} takes no files). Choose another, or mend its "
            "permissions."
        )


def require_room_for_file(path: str) -> None:
    """Raises `InputError` if a file could not be written to `path`."""
    if not remote.is_remote(path) and os.path.isdir(path):
        raise InputError(
            f"Output must be a file. Received: {path!r}, which is a folder. "
            "Name a file in it."
        )
    require_room(os.path.dirname(path))


def remove(path: str) -> None:
    """Removes a file."""
    with remote.errors_as_os_errors(path):
        (remote.gfile() if remote.is_remote(path) else os).remove(path)


def rename(old: str, new: str) -> None:
    """Gives a file or folder another name, over a file that has it."""
    if remote.is_remote(new):
        with remote.errors_as_os_errors(new):
            remote.gfile().rename(old, new, overwrite=True)
    else:
        os.replace(old, new)


def remove_folder(path: str) -> None:
    """Removes a folder and all that is in it, as far as that is possible."""
    if remote.is_remote(path):
        with contextlib.suppress(Exception):
            remote.gfile().rmtree(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def temporary_name(path: str, kind: str = "tmp") -> str:
    """Returns a name beside `path` that nobody else uses.

    It has the number of this process, by which a run knows what dead ones left
    (`training.locking`), and more: processes of several machines may have one
    number, and threads of one process write the same file.
    """
    return f"{path}.{kind}-{os.getpid()}.{os.urandom(4).hex()}"


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields a temporary name beside `path` that becomes `path` at the end.

    An interrupted or failed writer so never leaves half a file under the final
    name, nor damages what stood there before.
    """
    temporary = temporary_name(path)
    try:
        yield temporary
        rename(temporary, path)
    except BaseException:
        with contextlib.suppress(Exception):
            remove(temporary)
        raise


@contextlib.contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """Yields a file that becomes `path` at the end: all of it, or nothing.

    Raises:
        InputError: The disk is full, or the folder takes no files.
    """
    try:
        if not remote.is_remote(path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with remote.errors_as_os_errors(path), replacing(path) as temporary:
            opener = remote.gfile().GFile if remote.is_remote(path) else io.open
            with opener(temporary, "wb") as file:
                yield file
    except OSError as error:
        raise InputError(
            f"{path}: must be writable. Received: {error.strerror or error}. "
            "What stood there before is as it was. Make room, or mend the "
            "permissions, and run the command again."
        ) from error


def write_text(path: str, text: str) -> None:
    """Writes a UTF-8 file in one piece, and waits until it is on the disk.

    Raises:
        InputError: The disk is full, or the folder takes no files.
    """
    with writing(path) as file:
        file.write(text.encode("utf-8"))
        file.flush()
        sync(file.name)


def sync(path: str) -> None:
    """Waits until a local file or folder has reached the disk.

    A name given to a file outlives a power cut sooner than what is in it.
    """
    if remote.is_remote(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not os.path.isdir(path):  # Some file systems cannot do folders.
            raise
    finally:
        os.close(descriptor)
