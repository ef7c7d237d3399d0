"""A training run's checkpoints: `model.ckpt-N` and the file `checkpoint`.

What a run needs to go on, beyond what the 2018 release stored, lies beside them
in `model.ckpt-N.resume.json`.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from official_bert import files
from official_bert.checkpoints import tf1
from official_bert.errors import InputError

_RESUME = ".resume.json"


def latest(folder: str) -> str | None:
    """Returns the prefix of a folder's newest checkpoint, if it has any.

    Raises:
        InputError: The file `checkpoint` names one that is not there.
    """
    state = _state(folder)
    if state is None:
        return None
    prefix = str(state.model_checkpoint_path)
    if not files.exists(prefix + ".index"):
        raise InputError(
            f"{os.path.join(folder, 'checkpoint')}: must name an existing "
            f"checkpoint. Received: {prefix!r}. Name "
            "another one in it, or remove it to start anew."
        )
    return prefix


def save(
    folder: str,
    step: int,
    arrays: Mapping[str, Any],
    resume: Mapping[str, Any],
    keep: int,
) -> str:
    """Writes `model.ckpt-STEP` and removes all but the `keep` newest.

    Args:
        folder: Where.
        step: N.
        arrays: {name: array}, with `global_step`.
        resume: What else going on needs; goes to a JSON file beside it.
        keep: How many checkpoints to keep.

    Returns:
        The new checkpoint's prefix.
    """
    prefix = os.path.join(folder, f"model.ckpt-{step}")
    files.write_text(prefix + _RESUME, json.dumps(dict(resume)) + "\n")
    tf1.write(prefix, arrays)
    state = _state(folder)
    earlier = state.all_model_checkpoint_paths if state else []
    # Names without their folder, so that it can be moved.
    kept = [os.path.basename(name) for name in [*earlier, prefix]]
    kept = list(dict.fromkeys(kept))
    _write_state(folder, kept[-keep:])
    for name in kept[:-keep]:
        _remove(os.path.join(folder, name))
    return prefix


def read_resume(prefix: str) -> dict[str, Any] | None:
    """Returns what `save` was given as `resume`; None for others' checkpoints.

    Raises:
        InputError: The file is damaged.
    """
    name = prefix + _RESUME
    if not files.exists(name):
        return None
    try:
        return dict(json.loads(files.read_text(name)))
    except ValueError as error:
        raise InputError(
            f"{name}: must be what training wrote. {error}. Remove it to go on "
            "from the checkpoint at another place of the data."
        ) from error


def _state(folder: str) -> Any:
    """Reads the file `checkpoint`; names in it come with their folder."""
    return tf.train.get_checkpoint_state(folder)


def _write_state(folder: str, names: list[str]) -> None:
    """Writes the file `checkpoint`, a CheckpointState message as text."""
    lines = [f"model_checkpoint_path: {json.dumps(names[-1])}"]
    lines += [f"all_model_checkpoint_paths: {json.dumps(n)}" for n in names]
    files.write_text(
        os.path.join(folder, "checkpoint"), "\n".join(lines) + "\n"
    )


def _remove(prefix: str) -> None:
    """Removes a checkpoint, its index first so that it is never half there."""
    names = tf.io.gfile.glob(prefix + ".*")
    for name in sorted(names, key=lambda name: not name.endswith(".index")):
        tf.io.gfile.remove(name)
