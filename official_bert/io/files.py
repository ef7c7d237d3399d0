"""Access to local and remote files, and atomic writes.

Local paths use Python's own file functions, so that a command can check its
paths before TensorFlow is imported. Paths with a scheme (``gs://bucket/name``)
use `tf.io.gfile`, which TensorFlow also uses for checkpoints and events. Both
are reached through the back ends of `etils.epath`.
"""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from official_bert.errors import InputError, short_reason
from official_bert.io import utf8

_HASHED_BLOCK = 4 * 2**20

# The end of a `temporary_name`.
_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{8}$")

_NOT_WRITABLE = "The output directory must be writable. Received: {!r}"
_FIX_DIRECTORY = "Choose another or fix its permissions."


def is_remote(path: str) -> bool:
    """Whether `path` has a scheme, such as ``gs://bucket/name``."""
    return "://" in path


def can_reread(path: str) -> bool:
    """Whether a path can be read twice: it is a file, not a pipe."""
    return os.path.isfile(path) or is_remote(path)


def _backend(path: str) -> Any:
    """Returns epath's `os.path`-like functions for this kind of path."""
    from etils.epath import backend  # Takes 0.1 s: not at start-up.

    return backend.tf_backend if is_remote(path) else backend.os_backend


@contextlib.contextmanager
def _input_errors(path: str, problem: str, advice: str) -> Iterator[None]:
    """Raises errors of the operating system and TensorFlow as `InputError`."""
    kinds: tuple[type[Exception], ...] = (OSError,)
    if is_remote(path):
        import tensorflow as tf

        kinds = (OSError, tf.errors.OpError)
    try:
        yield
    except kinds as error:
        reason = getattr(error, "strerror", None) or short_reason(error)
        raise InputError(f"{problem}: {reason}. {advice}") from error


def _look_up(function: str, path: str) -> Any:
    """Calls a function of the back end that takes a path and only reads."""
    problem = f"Cannot access {path!r}"
    advice = (
        "Check the address, the connection, and that TensorFlow supports this "
        "scheme."
    )
    with _input_errors(path, problem, advice):
        return getattr(_backend(path), function)(path)


def exists(path: str) -> bool:
    """Whether `path` is an existing file or directory."""
    return bool(_look_up("exists", path))


def size(path: str) -> int:
    """Returns the stored length of a file in bytes (compressed, for gzip)."""
    if not is_remote(path):
        # epath's `stat` fails if the owner of the file has no name.
        return os.path.getsize(path)
    return int(_look_up("stat", path).length)


def list_directory(path: str) -> list[str]:
    """Returns the sorted names in a directory; [] if there is no directory."""
    path = path or "."
    if not _look_up("isdir", path):
        return []
    # epath's list of a local directory would leave out names ending in "~".
    names = _look_up("listdir", path) if is_remote(path) else os.listdir(path)
    # In remote listings, directories end in a slash.
    return sorted(name.rstrip("/") for name in names)


def directory_size(path: str) -> int:
    """Returns the total size in bytes of all files below a directory."""
    return sum(
        size(os.path.join(folder, name))
        for folder, _, names in _look_up("walk", path)
        for name in names
    )


def expand(patterns: str) -> list[str]:
    """Returns the files of glob patterns, such as ``"a.txt,shards/*.gz"``.

    They are in the order of the patterns, sorted within each pattern. Patterns
    do not match temporary files, which a killed command leaves. Raises
    `InputError` if a pattern matches nothing, or a directory.
    """
    names: list[str] = []
    parts = [pattern for pattern in patterns.split(",") if pattern]
    # The name of an existing file may itself contain commas or brackets.
    for pattern in [patterns] if exists(patterns) else parts or [patterns]:
        matches = [pattern]
        if not exists(pattern):
            found = sorted(_look_up("glob", pattern))
            matches = [name for name in found if not _TEMPORARY.search(name)]
        if not matches:
            raise InputError(
                f"Input file {pattern!r} does not exist. Check the path, quote "
                "patterns that contain `*`, and separate names by commas."
            )
        names += matches
    for name in names:
        if os.path.isdir(name):
            raise InputError(
                f"Input {name!r} is a directory, not a file. Name the files in "
                f"it, for example '{name.rstrip('/')}/*'."
            )
    return names


def expand_if_pattern(value: str) -> list[str]:
    """Returns `expand` of a value with commas or patterns.

    Others, and the names of existing files, are returned, even without a file.
    """
    has_several = re.search(r"[,*?\[]", value) and not exists(value)
    return expand(value) if has_several else [value]


def is_file(path: str) -> bool:
    """Whether a path exists and is not a local directory."""
    return exists(path) and not os.path.isdir(path)


def require(path: str, what: str) -> None:
    """Raises `InputError` unless the file exists.

    The message starts with `what`: "--vocab_file" or "The vocabulary".
    """
    if not is_file(path):
        raise InputError(
            f"{what} must be an existing file. Received: {path!r}. "
            "Check the path."
        )


def require_writable_directory(path: str) -> None:
    """Raises `InputError` if `make_directory` would fail. Creates nothing.

    Checks the nearest existing parent. Remote directories are not checked.
    """
    if is_remote(path):
        return
    nearest = os.path.abspath(path)
    while not os.path.lexists(nearest):
        nearest = os.path.dirname(nearest)
    if not os.path.isdir(nearest) or not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"{_NOT_WRITABLE.format(path)}: {nearest!r} is not a writable "
            f"directory. {_FIX_DIRECTORY}"
        )


def require_writable_file(path: str) -> None:
    """Raises `InputError` if `path` cannot be written or replaced."""
    require_writable_directory(os.path.dirname(_link_target(path)))


@contextlib.contextmanager
def open_binary(path: str) -> Iterator[BinaryIO]:
    """Opens a file for reading its stored bytes."""
    with contextlib.ExitStack() as stack:
        with _input_errors(
            path, f"Cannot read {path!r}", "Check the path and the permissions."
        ):
            file = stack.enter_context(_backend(path).open(path, "rb"))
            if is_remote(path):
                file.seek(0)  # gfile opens lazily; fail here if missing.
        yield file


def is_gzip(path: str) -> bool:
    """Whether a file starts like gzip data; its name does not matter."""
    with open_binary(path) as file:
        return file.read(3) == b"\x1f\x8b\x08"


def fingerprint(path: str) -> str:
    """Returns name, stored size and content hash of a local or remote file.

    A file of more than 16 MiB is hashed in part: four blocks of 4 MiB, evenly
    spaced from its start to its end. A change between them that keeps the size
    goes unnoticed. Pipes are not read.
    """
    name, digest = os.path.basename(path), hashlib.sha256()
    if not (exists(path) if is_remote(path) else os.path.isfile(path)):
        return f"{name}: not a regular file"
    length = size(path)
    with open_binary(path) as file:
        for number in range(4):
            if length > 4 * _HASHED_BLOCK:
                file.seek((length - _HASHED_BLOCK) * number // 3)
            digest.update(file.read(_HASHED_BLOCK))
    return f"{name}: {length} bytes, SHA-256 {digest.hexdigest()[:16]}"


def _decode(
    path: str,
    on_bytes: Callable[[int], object] | None = None,
    *,
    by_line: bool = True,
) -> Iterator[str]:
    with open_binary(path) as file:
        yield from utf8.decode(path, file, on_bytes, by_line=by_line)


def read_text(path: str) -> str:
    """Returns a UTF-8 file with its line ends; errors as in `read_lines`."""
    return "".join(_decode(path, by_line=False))


def read_lines(
    path: str,
    on_bytes: Callable[[int], object] | None = None,
    *,
    carriage_return: str | None = None,
) -> Iterator[str]:
    r"""Yields the lines of a UTF-8 file as the original implementation does.

    Only ``\n`` ends a line (not U+2028, U+0085, VT or FF), every ``\r`` is
    dropped, and a byte-order mark is kept. After the last ``\n``, there is one
    more line only if characters other than ``\r`` follow. ``.gz`` is unpacked.

    `on_bytes` is called after each line with the number of stored bytes read
    for it, for progress bars. Raises `InputError` if the file is missing, or
    not UTF-8 or gzip; the message names the line. If `carriage_return` is
    given, it replaces each ``\r`` within a line (not of remote files), and a
    file with only ``\r`` between its lines is an error, too.
    """
    needs_newline = carriage_return is not None
    for line in _decode(path, on_bytes):
        if needs_newline and "\r" in line.strip() and not line.endswith("\n"):
            raise InputError(
                f"{path}:1: a newline must end each line. Received: only "
                "carriage returns, as in files of old Macs. Save a table as "
                r"CSV UTF-8, or convert the file: `tr '\r' '\n' < FILE > NEW`."
            )
        needs_newline = False
        text = line.rstrip("\r\n").replace("\r", carriage_return or "")
        if text or line.endswith("\n"):
            yield text


def numbered_lines(
    path: str, carriage_return: str = ""
) -> Iterator[tuple[int, str]]:
    r"""Yields (number from 1, line); the file needs newlines.

    `carriage_return` replaces each ``\r`` within a line, see `read_lines`.

    Lines have no BOM. Joined files may have several.
    """
    lines = read_lines(path, carriage_return=carriage_return)
    for number, line in enumerate(lines, start=1):
        yield number, line.removeprefix("\ufeff")


def make_directory(path: str) -> None:
    """Creates a directory and its parents, and checks that it is writable."""
    with _input_errors(path, _NOT_WRITABLE.format(path), _FIX_DIRECTORY):
        _backend(path).makedirs(path, exist_ok=True)
        if not is_remote(path):
            tempfile.TemporaryFile(dir=path).close()


def remove(path: str) -> None:
    """Removes a file."""
    _backend(path).remove(path)


def remove_directory(path: str) -> None:
    """Removes a directory and everything in it, as far as possible."""
    if is_remote(path):
        with contextlib.suppress(Exception):
            _backend(path).rmtree(path)
    else:
        shutil.rmtree(path, ignore_errors=True)


def replace(source: str, target: str) -> None:
    """Renames a file or directory; a file of the name `target` is replaced."""
    _backend(target).replace(source, target)


def move(source: str, target: str) -> None:
    """Moves a file, also to another file system; `target` is replaced."""
    with write_errors(target):
        if is_remote(source) != is_remote(target):
            remote = source if is_remote(source) else target
            # The remote back end also reads and writes local files.
            _backend(remote).copy(source, target, overwrite=True)
        elif is_remote(source):
            replace(source, target)
        else:
            shutil.move(source, target)


def temporary_name(path: str) -> str:
    """Returns an unused name beside `path`: ``PATH.tmp-0123abcd``."""
    return f"{path}.tmp-{os.urandom(4).hex()}"


def sync(path: str) -> None:
    """Waits until a local file or directory is on the disk.

    After a power failure, a new name may otherwise point to missing data.
    """
    if is_remote(path):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        if not os.path.isdir(path):  # Some systems cannot sync directories.
            raise
    finally:
        os.close(descriptor)


def _link_target(path: str) -> str:
    """Returns the file to replace: `path`, or the target of a link.

    Raises `InputError` if `path` exists and is not a file.
    """
    if is_remote(path):
        return path
    if os.path.exists(path) and not os.path.isfile(path):
        kind = "directory" if os.path.isdir(path) else "device, pipe or socket"
        raise InputError(
            f"Output must be a file. Received: {path!r}, a {kind}. Name a file."
        )
    return os.path.realpath(path) if os.path.islink(path) else path


def write_errors(path: str) -> contextlib.AbstractContextManager[None]:
    """Raises errors of writing a file as `InputError`: the disk is full."""
    return _input_errors(
        path,
        f"{path}: cannot be written",
        "Existing files are unchanged. Free disk space or fix the permissions, "
        "and run the command again.",
    )


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yields a temporary name that is renamed to `path` when the block ends.

    If the block raises, `path` is unchanged. A link stays a link. Raises
    `InputError` if `path` is not a file.
    """
    target = _link_target(path)
    if not is_remote(path):
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    temporary = temporary_name(target)
    try:
        yield temporary
        replace(temporary, target)
    except BaseException:
        with contextlib.suppress(Exception):
            remove(temporary)
        raise


@contextlib.contextmanager
def writing(path: str) -> Iterator[BinaryIO]:
    """Yields a binary file that `replacing` renames to `path`.

    Raises `InputError` if the disk is full, the directory is not writable, or
    `path` is not a file.
    """
    with (
        write_errors(path),
        replacing(path) as temporary,
        _backend(path).open(temporary, "wb") as file,
    ):
        yield file


def write_text(path: str, text: str) -> None:
    """Writes a UTF-8 file like `writing`, and waits until it is on the disk."""
    with writing(path) as file:
        file.write(text.encode("utf-8"))
        file.flush()
        sync(file.name)


def write_texts(directory: str, texts: Mapping[str, str]) -> None:
    """Writes files, {name: text}; removes those whose text is ""."""
    for name, text in texts.items():
        path = os.path.join(directory, name)
        if text:
            write_text(path, text)
        elif exists(path):
            remove(path)


@contextlib.contextmanager
def temporary_directory(path: str) -> Iterator[str]:
    """Yields a new directory beside `path`, and removes it at the end."""
    directory = temporary_name(path)
    make_directory(directory)
    try:
        yield directory
    finally:
        remove_directory(directory)


@contextlib.contextmanager
def replacing_directory(path: str) -> Iterator[str]:
    """Yields a new directory that gets the name `path` when the block ends.

    An existing directory is removed when the new one is complete; if the block
    raises, it stays unchanged. A link stays a link. Raises `InputError` if the
    disk is full or the parent is not writable.
    """
    path = path.rstrip("/")
    if not is_remote(path) and os.path.islink(path):
        path = os.path.realpath(path)
    old = temporary_name(path)
    with temporary_directory(path) as new, write_errors(path):
        yield new
        # A directory with files in it cannot be replaced in one step.
        if _look_up("isdir", path):
            replace(path, old)
        try:
            replace(new, path)
        except BaseException:
            if exists(old):
                replace(old, path)
            raise
    remove_directory(old)


def data_directory() -> str:
    """Returns `data/` of the clone, which wheels contain in the package."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "data")  # Only in wheels.
    is_wheel = os.path.isdir(installed)
    return installed if is_wheel else f"{os.path.dirname(package)}/data"
