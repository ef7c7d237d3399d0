"""`task.json`: what the model in a folder was fine-tuned for.

  {"kind": "text", "task_type": "classification", "labels": ["0", "1"], ...
   "max_seq_length": 128, "do_lower_case": true}

All but the last lines is what a task says of itself: `Task.to_json`.
"""

import os
from typing import Any

from official_bert import files, json_files
from official_bert.errors import InputError

NAME = "task.json"


def path_in(folder: str) -> str:
    """Returns where a folder has it, or would have it."""
    return os.path.join(folder, NAME)


def is_in(folder: str) -> bool:
    """Whether a folder is that of a fine-tuned model."""
    return files.exists(path_in(folder))


def read(folder: str) -> dict[str, Any]:
    """Returns what a folder's `task.json` says.

    Raises:
        InputError: There is none, or it is damaged.
    """
    path = path_in(folder)
    given = json_files.read_object(path)
    labels = given.get("labels", [])
    is_list = isinstance(labels, list)
    if not is_list or not all(isinstance(label, str) for label in labels):
        raise InputError(
            f"{path}: `labels` must be a list of texts. Received: {labels!r}. "
            "Use the file as fine-tuning wrote it."
        )
    return given


def read_labels(folder: str) -> tuple[str, ...]:
    """Returns the labels that a folder's model was trained for, if any."""
    return tuple(read(folder).get("labels", ()))


def describe(
    task: dict[str, Any], max_seq_length: int, do_lower_case: bool
) -> dict[str, Any]:
    """Returns what `task.json` is to say.

    Args:
        task: What the task says of itself.
        max_seq_length: In pieces.
        do_lower_case: Whether the model is uncased.
    """
    return {
        **task,
        "max_seq_length": max_seq_length,
        "do_lower_case": do_lower_case,
    }
