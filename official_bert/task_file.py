"""`task.json`: the task that the model in a run directory was fine-tuned for.

  {"kind": "text", "task_type": "classification", "labels": ["0", "1"], ...
   "max_seq_length": 128, "do_lower_case": true}

`Task.to_json` returns all keys but the last two.
"""

import os
from typing import Any

from official_bert import files, json_files
from official_bert.errors import InputError, quoted

NAME = "task.json"

# The types of keys; the task itself checks its own.
_TYPES = {
    "kind": str,
    "max_seq_length": int,
    "do_lower_case": bool,
    "hub_module": str,
}


def path_in(directory: str) -> str:
    """Returns the path of `task.json` in a directory."""
    return os.path.join(directory, NAME)


def is_in(directory: str) -> bool:
    """Whether a directory has a fine-tuned model."""
    return files.exists(path_in(directory))


def read(directory: str) -> dict[str, Any]:
    """Returns the content of `task.json` in a directory.

    Raises `InputError` if the file is missing or invalid.
    """
    path = path_in(directory)
    content = json_files.read_object(path)
    labels = content.get("labels", [])
    is_list = isinstance(labels, list)
    if not is_list or not all(isinstance(label, str) for label in labels):
        raise InputError(
            f"{path}: `labels` must be a list of strings. Received: "
            f"{quoted(labels)}."
        )
    for key, kind in _TYPES.items():
        if key in content and type(content[key]) is not kind:
            raise InputError(
                f"{path}: `{key}` must be a {kind.__name__}. Received: "
                f"{quoted(content[key])}."
            )
    return content


def read_labels(directory: str) -> tuple[str, ...]:
    """Returns the labels of the model in a directory; some tasks have none."""
    return tuple(read(directory).get("labels", ()))


def describe(
    task: dict[str, Any], max_seq_length: int, do_lower_case: bool
) -> dict[str, Any]:
    """Returns the content of `task.json` for the result of `Task.to_json`."""
    more = {"max_seq_length": max_seq_length, "do_lower_case": do_lower_case}
    return task | more
