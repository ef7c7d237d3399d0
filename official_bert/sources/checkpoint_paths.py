"""The locations of TF1 checkpoints and of the files beside them."""

import fnmatch
import os
from collections.abc import Iterable, Sequence

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.runs import file_names
from official_bert.runs.file_names import INDEX, RELEASED_PREFIX

CHECKPOINT_PATTERNS = (file_names.CHECKPOINT_LIST, f"*{INDEX}")


def find(path: str) -> str:
    """Returns the prefix of a TF1 checkpoint, or a directory of checkpoints.

    `path` is a prefix or a directory. In a run directory, `best/` is preferred.
    """
    best = os.path.join(path, file_names.BEST)
    if has_any(files.list_directory(best), CHECKPOINT_PATTERNS):
        return best
    names = files.list_directory(path)
    prefixes = [n.removesuffix(INDEX) for n in names if n.endswith(INDEX)]
    if file_names.CHECKPOINT_LIST in names and prefixes != [RELEASED_PREFIX]:
        return path  # The file `checkpoint` names the newest one.
    if RELEASED_PREFIX in prefixes:
        prefixes = [RELEASED_PREFIX]
    return os.path.join(path, prefixes[0]) if len(prefixes) == 1 else path


def directory(checkpoint: str) -> str:
    """Returns the directory of a checkpoint: a prefix or a directory."""
    checkpoint = checkpoint.rstrip("/")
    # Some users copy the data of a checkpoint to a file named like its prefix.
    is_prefix = files.exists(checkpoint + INDEX) or not files.exists(checkpoint)
    return os.path.dirname(checkpoint) if is_prefix else checkpoint


def beside(checkpoint: str, name: str) -> str | None:
    """Returns the path of a file in the directory of a checkpoint, or None.

    `checkpoint` is a prefix or a run directory. For a checkpoint in
    `best/`, the parent directory is searched too.
    """
    folder = directory(checkpoint)
    paths = [os.path.join(folder, name)]
    if os.path.basename(folder) == file_names.BEST:
        paths.append(os.path.join(os.path.dirname(folder), name))
    return next(filter(files.exists, paths), None)


def has_any(names: Sequence[str], patterns: Iterable[str]) -> bool:
    """Whether a file name matches a pattern."""
    return any(fnmatch.filter(names, pattern) for pattern in patterns)


def require_supported(path: str) -> None:
    """Raises `InputError` if TensorFlow could not read a checkpoint there."""
    # TensorFlow finds a checkpoint by a glob pattern and escapes nothing.
    if "[" in path or "\\" in path:
        raise InputError(
            f"{path}: TensorFlow cannot read checkpoints whose path contains "
            "`[` or a backslash. Rename the directory or choose another."
        )
