"""`task.json`: the task that the model in a run directory was fine-tuned for.

  {"kind": "text", "task_type": "classification", "labels": ["0", "1"], ...
   "max_seq_length": 128, "do_lower_case": true}

`Task.to_json` returns all keys but the last two; `describe` adds them.
"""

import os
from typing import Any

from official_bert.io import files, json_files
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths

# The types of the keys that are read without creating the task. A task checks
# its own keys.
_TYPES = {
    "kind": str,
    "task_type": str,
    "pooling": str,
    "embedding_size": json_files.Size,
    "normalize": bool,
    "prompts": dict[str, str],
    "similarity": str,
    "labels": tuple[str, ...],
    "max_seq_length": json_files.Count,
    "do_lower_case": bool,
    "hub_module": str,
    "target_mean": float,
    "target_deviation": float,
}


def path_in(directory: str) -> str:
    """Returns the path of `task.json` in a directory."""
    return os.path.join(directory, file_names.TASK)


def is_in(directory: str) -> bool:
    """Whether a directory has a fine-tuned model."""
    return files.exists(path_in(directory))


def is_in_run(directory: str) -> bool:
    """Whether a directory is that of a fine-tuning run.

    KerasHub presets have another `task.json`.
    """
    config = os.path.join(directory, file_names.CONFIG)
    return is_in(directory) and files.exists(config)


def read(directory: str) -> dict[str, Any]:
    """Returns the content of `task.json` in a directory; {} without the file.

    Raises `InputError` if the file is invalid.
    """
    task = json_files.load(path_in(directory))
    for key in task.content.keys() & _TYPES.keys():
        task.get(key, _TYPES[key])
    return task.content


def read_beside(checkpoint: str) -> dict[str, Any]:
    """Returns the `task.json` of a fine-tuned checkpoint; {} for others.

    `checkpoint` is a prefix or a directory. KerasHub presets, which have
    another `task.json`, are not fine-tuned.
    """
    path = checkpoint_paths.beside(checkpoint, file_names.TASK)
    content = read(os.path.dirname(path)) if path else {}
    return content if "kind" in content else {}


def describe(
    task: dict[str, Any], max_seq_length: int, do_lower_case: bool
) -> dict[str, Any]:
    """Returns the content of `task.json` for the result of `Task.to_json`."""
    inputs = {"max_seq_length": max_seq_length, "do_lower_case": do_lower_case}
    return task | inputs
