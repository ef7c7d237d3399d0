"""The checkpoints of a run directory: `model.ckpt-N` and `checkpoint`.

`model.ckpt-N.resume.json`, beside a checkpoint, contains the values that
resuming needs and that the original implementation did not store.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

from absl import logging

from official_bert.errors import InputError, bullet_list
from official_bert.io import files, json_files
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.formats.tf1.checkpoint import DamagedCheckpointError

_Result = TypeVar("_Result")


class ResumeState(NamedTuple):
    """The state of a run besides weights, optimizer slots and step."""

    # Determines the order of examples and dropout.
    seed: Annotated[int, range(2**32)]
    examples_seen: Annotated[int, range(2**63)]


def first_undamaged(
    directory: str,
    read: Callable[[str], _Result],
    *,
    warns: bool = True,
    resumes: bool = False,
) -> _Result | None:
    """Returns `read(prefix)` for the newest undamaged checkpoint.

    `read` raises `DamagedCheckpointError` for a damaged checkpoint. With
    `warns`, a warning names each one. Only with `resumes`, the checkpoint of
    step 0, an untrained model, replaces a damaged one. Returns None if the
    directory has no checkpoint. Raises `InputError` if all checkpoints are
    damaged, or the file `checkpoint` is.
    """
    listed, errors = RunDirectory(directory).checkpoint_names(), list[str]()
    start = file_names.checkpoint(0)
    for name in reversed(listed):
        if errors and name == start and not resumes:
            break
        try:
            return read(os.path.join(directory, name))
        except DamagedCheckpointError as error:
            errors.append(str(error))
            if warns:
                logging.warning(f"Skipping a damaged checkpoint. {error}")
    if not listed:
        return None
    path = os.path.join(directory, file_names.CHECKPOINT_LIST)
    after = " after step 0" if len(errors) < len(listed) else ""
    raise InputError(
        f"{path}: all checkpoints{after} are damaged:"
        f"{bullet_list(errors)}\nName another one in this file, or empty the "
        "directory to train from the start."
    )


def latest(directory: str) -> str | None:
    """Returns the prefix of the newest checkpoint with an index, or None.

    Raises `InputError` if no index of the listed checkpoints can be read.
    """

    def require_index(prefix: str) -> str:
        tf1.open_reader(prefix)
        return prefix

    # `loading.load_newest` warns.
    return first_undamaged(directory, require_index, warns=False, resumes=True)


def read_global_step(prefix: str) -> int:
    """Returns the training step of a checkpoint; 0 if it stores none."""
    reader = tf1.open_reader(prefix)
    if not reader.has_tensor("global_step"):
        return 0
    return int(tf1.read_array(reader, prefix, "global_step"))


def save(
    directory: str,
    step: int,
    arrays: Mapping[str, Any],
    resume_state: ResumeState | None,
    keep: int,
) -> str:
    """Writes `model.ckpt-STEP` and removes all but the `keep` newest.

    The file `checkpoint` no longer lists checkpoints with other names or of
    later steps, which an earlier run left. Their files are not removed. The
    arrays include `global_step`. `resume_state` is None if no run resumes from
    this checkpoint. Returns the new prefix. Raises `InputError` if the disk is
    full; earlier checkpoints are then unchanged.
    """
    name = file_names.checkpoint(step)
    prefix = os.path.join(directory, name)
    earlier = RunDirectory(directory).checkpoint_names()
    try:
        if resume_state:
            text = json.dumps(resume_state._asdict()) + "\n"
            files.write_text(prefix + file_names.RESUME_STATE, text)
        tf1.write(prefix, arrays)
    except InputError:
        if name not in earlier:
            tf1.remove(prefix)
        raise
    kept = [*(n for n in earlier if 0 <= file_names.step_of(n) < step), name]
    _write_list(directory, kept)
    if outdated := kept[:-keep]:
        # Outdated checkpoints stay listed until they are removed. If the
        # process is killed before that, the next call removes them.
        for old_name in outdated:
            tf1.remove(os.path.join(directory, old_name))
        _write_list(directory, kept[-keep:])
    return prefix


def read_resume_state(prefix: str) -> ResumeState | None:
    """Returns the state that `save` stored beside a checkpoint, or None.

    Raises `InputError` if the file is damaged.
    """
    path = prefix + file_names.RESUME_STATE
    if not files.exists(path):
        return None
    try:
        content = json_files.read_object(path)
        return json_files.decode(content, ResumeState, "state")
    except (TypeError, ValueError) as error:  # TypeError if a value is missing.
        raise InputError(
            f"{path} is damaged. {str(error).rstrip('.')}. If you "
            "remove it, training resumes from this checkpoint, but at another "
            "position in the data."
        ) from error


def _write_list(directory: str, listed: Sequence[str]) -> None:
    """Writes the file `checkpoint`; the last name is the newest."""
    paths = [f"all_model_checkpoint_paths: {json.dumps(n)}" for n in listed]
    lines = [f"model_checkpoint_path: {json.dumps(listed[-1])}", *paths]
    path = os.path.join(directory, file_names.CHECKPOINT_LIST)
    files.write_text(path, "\n".join(lines) + "\n")
    files.sync(directory)
