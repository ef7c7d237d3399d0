"""Folders, and files that are written whole or not at all."""

import contextlib
import io
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from official_bert.errors import InputError
from official_bert.files import reading, remote

# Of `temporary_name`, and what follows it of a checkpoint's files. No more than
# that: a user may call a folder data.tmp-20260705.
_TEMPORARY = re.compile(r"(.*)\.tmp-(\d+)\.[0-9a-f]{8}(\..*)?")


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
    require_room(os.path.dirname(_target(path)))


def _target(path: str) -> str:
    """Returns what is to be replaced: of a link, what it leads to.

    Raises:
        InputError: It is no file, and so cannot be replaced by one.
    """
    if remote.is_remote(path):
        return path
    if os.path.exists(path) and not os.path.isfile(path):
        kind = "folder" if os.path.isdir(path) else "device, pipe or socket"
        raise InputError(
            f"Output must be a file. Received: {path!r}, which is a {kind}. "
            "Name one that is a file, or not there yet."
        )
    return os.path.realpath(path) if os.path.islink(path) else path


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

    It has the number of this process, for `remove_leftovers`, and more:
    processes of several machines may have one number, and threads of one
    process write the same file.
    """
    return f"{path}.{kind}-{os.getpid()}.{os.urandom(4).hex()}"


def remove_leftovers(folder: str, name: str | None = None) -> None:
    """Removes what killed processes were in the midst of writing.

    Args:
        folder: A local folder in which nobody on another machine writes `name`
            at this time. In a remote one all stays.
        name: What it was to become; if left out, anything.
    """
    if remote.is_remote(folder):
        return
    for leftover in reading.list_folder(folder):
        match = _TEMPORARY.fullmatch(leftover)
        if (
            not match
            or name not in (None, match[1])
            or _is_another_process(int(match[2]))
        ):
            continue
        path = os.path.join(folder, leftover)
        if os.path.isdir(path):  # Of an export, say.
            remove_folder(path)
        else:
            with contextlib.suppress(OSError):
                os.remove(path)


def remove_leftovers_of(path: str) -> None:
    """Does so for one file; those of a link are beside what it leads to."""
    if not remote.is_remote(path):
        remove_leftovers(*os.path.split(os.path.realpath(path)))


def _is_another_process(number: int) -> bool:
    """Whether it runs on this machine: one that evaluates may write here."""
    try:
        os.kill(number, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return number != os.getpid()


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields a temporary name beside `path` that becomes `path` at the end.

    An interrupted or failed writer so never leaves half a file under the final
    name, nor damages what stood there before. A link stays one.

    Raises:
        InputError: What stands there is no file.
    """
    target = _target(path)
    temporary = temporary_name(target)
    try:
        yield temporary
        rename(temporary, target)
    except BaseException:
        with contextlib.suppress(Exception):
            remove(temporary)
        raise


@contextlib.contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """Yields a file that becomes `path` at the end: all of it, or nothing.

    Raises:
        InputError: The disk is full, the folder takes no files, or what stands
            there is none.
    """
    try:
        if not remote.is_remote(path):
            os.makedirs(os.path.dirname(_target(path)) or ".", exist_ok=True)
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
