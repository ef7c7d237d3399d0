"""A training run's checkpoints: `model.ckpt-N` and the file `checkpoint`.

What a run needs to go on, beyond what the 2018 release stored, lies beside them
in `model.ckpt-N.resume.json`.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf
from absl import logging

from official_bert import files
from official_bert.checkpoints import tf1
from official_bert.errors import InputError
from official_bert.options.model_source import ModelOptions

_LIST = "checkpoint"
_RESUME = ".resume.json"
_INDEX_NAME = re.compile(r"(model\.ckpt-\d+)\.index")


class Resume(NamedTuple):
    """What a run needs to go on, beside weights, moments and step.

    Attributes:
        seed: Of the order of examples and of dropout.
        examples_seen: How many of them the run has had.
    """

    seed: int
    examples_seen: int


def latest(folder: str) -> str | None:
    """Returns the prefix of a folder's newest good checkpoint, if it has any.

    One that is cut short, damaged or gone is passed over, with a warning.

    Raises:
        InputError: The file `checkpoint` cannot be read, or names none that is
            there and whole.
    """
    names = _listed(folder)
    for name in reversed(names):
        prefix = os.path.join(folder, name)
        try:
            tf1.check(prefix)
        except InputError as error:
            logging.warning("Passing over a bad checkpoint. %s", error)
        else:
            return prefix
    if not names:
        return None
    raise InputError(
        f"{os.path.join(folder, _LIST)}: must name an existing checkpoint that "
        f"is whole. Received: {', '.join(map(repr, names))}. Name another one "
        "in it, or empty the folder to start anew."
    )


def at(path: str) -> str:
    """Returns `path`, or if it is a run's folder, its newest checkpoint."""
    if files.exists(path + ".index"):
        return path
    return latest(path) or path


def best_or_latest(folder: str) -> str | None:
    """Returns the checkpoint that did best, if one was kept, or the newest."""
    return latest(os.path.join(folder, files.BEST_DIRECTORY)) or latest(folder)


def require(folder: str) -> str:
    """Returns `best_or_latest` of a folder that must have a checkpoint.

    Raises:
        InputError: It has none.
    """
    prefix = best_or_latest(folder)
    if prefix is None:
        raise InputError(
            f"{folder}: must hold a checkpoint, model.ckpt-N.index and its "
            "data. Received: none. Copy it as well, or train."
        )
    return prefix


def named_by(options: ModelOptions) -> str:
    """Returns the prefix of what options name: of a `model_dir`, its best.

    Raises:
        InputError: There is none in it.
    """
    return options.init_checkpoint or require(options.checkpoint_path)


def trained_steps(prefix: str) -> int:
    """Returns how many steps a checkpoint was trained for.

    One without what only training needs, as it was released or stripped, does
    not say: 0.
    """
    reader = tf1.open_reader(prefix)
    if not reader.has_tensor("global_step"):
        return 0
    return int(tf1.read_array(reader, prefix, "global_step"))


def save(
    folder: str,
    step: int,
    arrays: Mapping[str, Any],
    resume: Resume | None,
    keep: int,
) -> str:
    """Writes `model.ckpt-STEP` and removes all but the `keep` newest.

    Args:
        folder: Where.
        step: N. Checkpoints of later steps are not of this run, and no longer
            listed.
        arrays: {name: array}, with `global_step`.
        resume: Goes to a JSON file beside it, if no run ends here.
        keep: How many checkpoints to keep.

    Returns:
        The new checkpoint's prefix.

    Raises:
        InputError: The disk is full. Earlier checkpoints stay.
    """
    name = f"model.ckpt-{step}"
    prefix = os.path.join(folder, name)
    listed = _listed(folder)
    try:
        if resume:
            text = json.dumps(resume._asdict()) + "\n"
            files.write_text(prefix + _RESUME, text)
        tf1.write(prefix, arrays)
    except InputError:
        if name not in listed:
            tf1.remove(prefix)
        raise
    names = [*(n for n in listed if _step_of(n) < step), name]
    _write_list(folder, names[-keep:])
    files.sync(folder)  # Before what it named until now is gone.
    for old in names[:-keep]:
        tf1.remove(os.path.join(folder, old))
    return prefix


def read_resume(prefix: str) -> Resume | None:
    """Returns what `save` was given as `resume`; None for others' checkpoints.

    Raises:
        InputError: The file is damaged.
    """
    name = prefix + _RESUME
    if not files.exists(name):
        return None
    try:
        return Resume(**json.loads(files.read_text(name)))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name}: must be what training wrote. {error}. Remove it to go on "
            "from the checkpoint at another place of the data."
        ) from error


def _listed(folder: str) -> list[str]:
    """Returns the names in the file `checkpoint`, the newest last.

    They are without their folder, so that it can be moved. Without that file,
    they are those of all checkpoints there are.
    """
    path = os.path.join(folder, _LIST)
    if not files.exists(path):
        # The first of a run, if it was killed between writing and listing it.
        matches = map(_INDEX_NAME.fullmatch, files.list_directory(folder))
        return sorted((m[1] for m in matches if m), key=_step_of)
    try:
        state = tf.train.get_checkpoint_state(folder)
    except ValueError:  # It names none.
        state = None
    if state is None:
        raise InputError(
            f"{path}: must be as training wrote it. Received: what cannot be "
            'read. Write `model_checkpoint_path: "model.ckpt-N"` into it.'
        )
    paths = [*state.all_model_checkpoint_paths, state.model_checkpoint_path]
    names = [os.path.basename(path) for path in paths if path]
    # The newest may stand among the others as well.
    return [*(n for n in names[:-1] if n != names[-1]), *names[-1:]]


def _step_of(name: str) -> int:
    """Returns N of `model.ckpt-N`; names of another kind come first."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def _write_list(folder: str, names: list[str]) -> None:
    """Writes the file `checkpoint`, the newest name last."""
    lines = [f"model_checkpoint_path: {json.dumps(names[-1])}"]
    lines += [f"all_model_checkpoint_paths: {json.dumps(n)}" for n in names]
    files.write_text(os.path.join(folder, _LIST), "\n".join(lines) + "\n")
