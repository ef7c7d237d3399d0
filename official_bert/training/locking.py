"""One run at a time in an output folder."""

import contextlib
import fcntl
import os
import re
import socket
from collections.abc import Iterator

from absl import logging

from official_bert import files
from official_bert.errors import InputError, short_reason
from official_bert.options import tf_config
from official_bert.options.training import TrainingOptions

_LOCK = "run.lock"

# Only the lock's holder writes these. Earlier names have a process id.
_TEMPORARY = re.compile(
    r"(model\.ckpt-\d+|checkpoint).*\.tmp-(\d+\.)?[0-9a-f]{8}(\..+)?"
)


@contextlib.contextmanager
def only_run(options: TrainingOptions) -> Iterator[None]:
    """Keeps other runs that train out of the output folder, and makes it.

    A folder that is still empty in the end, since the run failed, is removed.

    The operating system lets go of the lock when its holder dies, however it
    does. Remote folders, and file systems without locks, just pass; of a run on
    several hosts, the one that writes has the lock.

    Raises:
        InputError: Another run has the folder, or it takes no files.
    """
    if (
        not options.do_train
        or files.is_remote(options.output_dir)
        or not tf_config.is_chief(options.resolved_strategy)
    ):
        yield
        return
    is_new = not files.exists(options.output_dir)
    files.make_directory(options.output_dir)
    path = os.path.join(options.output_dir, _LOCK)
    descriptor = _locked(path)
    try:
        for folder in ("", files.BEST_DIRECTORY):
            _remove_temporary(os.path.join(options.output_dir, folder))
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)  # While it is still ours.
        os.close(descriptor)
        if is_new:
            with contextlib.suppress(OSError):  # What failed early left none.
                os.rmdir(options.output_dir)


def _remove_temporary(directory: str) -> None:
    """Removes checkpoints that a killed run did not finish writing."""
    for name in files.list_directory(directory):
        if _TEMPORARY.fullmatch(name):
            os.remove(os.path.join(directory, name))


def _locked(path: str) -> int:
    """Returns the descriptor of the lock file, which names this process."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise InputError(
                f"{path}: must be writable. Received: {short_reason(error)}. "
                "If a killed run of another user left it, remove it; or "
                "choose another --output_dir."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode(errors="replace").strip()
            os.close(descriptor)
            raise InputError(
                f"{os.path.dirname(path)}: an output folder must be that of "
                "one run at a time. Received: the folder of "
                f"{holder or 'another process'}, which is still running. Wait "
                "for it, stop it, or choose another --output_dir."
            ) from None
        except OSError as error:
            logging.warning("%s: cannot be locked: %s", path, error)
        if _is_at(path, descriptor):
            os.ftruncate(descriptor, 0)
            name = f"process {os.getpid()} on {socket.gethostname()}\n"
            os.write(descriptor, name.encode())
            return descriptor
        os.close(descriptor)  # Its holder removed it between our two steps.


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
