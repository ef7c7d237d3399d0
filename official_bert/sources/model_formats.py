"""The formats of models, and the locations of checkpoints and configs."""

import fnmatch
import os
from collections.abc import Sequence

from official_bert.errors import InputError, listed
from official_bert.io import files, json_files

# Subdirectory of a run directory with the checkpoint of the best evaluation.
BEST_DIRECTORY = "best"

# The suffix of the index file of a TF1 checkpoint.
INDEX = ".index"

# Weights in formats other than TF1's.
OTHER_WEIGHTS = ("model*.safetensors", "model.weights.h5")

# Files that are never opened.
_PICKLE = "a pickle, which can run code when it is opened"
_UNSUPPORTED = {
    ".bin": _PICKLE,
    ".pt": _PICKLE,
    ".pth": _PICKLE,
    ".h5": "written by the former TensorFlow models of transformers",
    ".msgpack": "written by the former Flax models of transformers",
}

# The config and the vocabulary beside a TF1 checkpoint.
CONFIG, VOCAB = "bert_config.json", "vocab.txt"

_CHECKPOINT = ("checkpoint", f"*{INDEX}")

# The prefix of the checkpoints that Google released.
RELEASED_PREFIX = "bert_model.ckpt"


def detect(path: str, where: str) -> str:
    """Returns checkpoint, huggingface or keras_hub: the format of a model.

    `path` is a directory or the prefix of a checkpoint. In a directory with
    several formats, a TF1 checkpoint with its config is preferred. Raises
    `InputError` for weights in unsupported formats, and for paths without a
    model, with a message that starts with `where`.
    """
    names = files.list_directory(path)
    has_others = has_any(names, OTHER_WEIGHTS)
    has_checkpoint = files.exists(path + INDEX) or has_any(names, _CHECKPOINT)
    if has_checkpoint and (CONFIG in names or not has_others):
        return "checkpoint"
    if CONFIG in names and "config.json" not in names:
        return "checkpoint"  # Without weights.
    if not has_others:
        for name in names or [""]:  # No names: `path` may itself be a file.
            require_readable(os.path.join(path, name).rstrip("/"))
    if "config.json" not in names:
        received = listed(names) or "no files. Check the path"
        if not names and files.exists(path):
            received = "a file. Pass its directory"
        raise InputError(
            f"{where} must have config.json, or bert_config.json and a TF1 "
            f"checkpoint, such as bert_model.ckpt.index. Received: {received}."
        )
    values = json_files.read_object(os.path.join(path, "config.json"))
    return "keras_hub" if "registered_name" in values else "huggingface"


def find_checkpoint(path: str) -> str:
    """Returns the prefix of a TF1 checkpoint, or a directory of checkpoints.

    `path` is a prefix or a directory. In a run directory, `best/` is preferred.
    """
    best = os.path.join(path, BEST_DIRECTORY)
    if has_any(files.list_directory(best), _CHECKPOINT):
        return best
    names = files.list_directory(path)
    prefixes = [n.removesuffix(INDEX) for n in names if n.endswith(INDEX)]
    if "checkpoint" in names and prefixes != [RELEASED_PREFIX]:
        return path  # The file `checkpoint` names the newest one.
    if RELEASED_PREFIX in prefixes:
        prefixes = [RELEASED_PREFIX]
    return os.path.join(path, prefixes[0]) if len(prefixes) == 1 else path


def beside_checkpoint(checkpoint: str, name: str) -> str | None:
    """Returns the path of a file in the directory of a checkpoint, or None.

    `checkpoint` is a prefix or a run directory. For a checkpoint in
    `BEST_DIRECTORY`, the parent directory is searched too.
    """
    checkpoint = checkpoint.rstrip("/")
    is_prefix = not files.exists(checkpoint)
    directory = os.path.dirname(checkpoint) if is_prefix else checkpoint
    paths = [os.path.join(directory, name)]
    if os.path.basename(directory) == BEST_DIRECTORY:
        paths.append(os.path.join(os.path.dirname(directory), name))
    return next(filter(files.exists, paths), None)


def has_any(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether a file name matches a pattern."""
    return any(fnmatch.filter(names, pattern) for pattern in patterns)


def require_readable(path: str) -> None:
    """Raises `InputError` for weights in a format that is never opened."""
    if path.endswith((".keras", ".weights.h5")):
        raise InputError(
            f"{path} is a Keras file. Pass a directory: a KerasHub preset, a "
            "transformers model or a TF1 checkpoint."
        )
    if reason := _UNSUPPORTED.get(os.path.splitext(path)[1]):
        raise InputError(
            f"{path} is {reason}, and is not supported. If you trust it, load "
            "it with a version of transformers that reads it, call "
            "`model.save_pretrained(directory, safe_serialization=True)`, and "
            "use that directory."
        )


def require_checkpoint_path(path: str) -> None:
    """Raises `InputError` if TensorFlow could not read a checkpoint there."""
    # TensorFlow finds a checkpoint by a glob pattern and escapes nothing.
    if "[" in path or "\\" in path:
        raise InputError(
            f"{path}: TensorFlow cannot read checkpoints whose path contains "
            "`[` or a backslash. Rename the directory or choose another."
        )
