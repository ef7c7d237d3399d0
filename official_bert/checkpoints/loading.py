"""Strict loading: what is missing, left over or wrongly shaped is refused."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from official_bert.checkpoints import numbered, tf1
from official_bert.errors import InputError, bullet_list

# What a training run's checkpoint holds besides weights.
OPTIMIZER_STATE = r"/(adam|lamb)_[mv]$|^global_step$|^loss_scale/"
# The same, and heads.
NOT_BERT = rf"^(?!bert/)|{OPTIMIZER_STATE}"


def by_name(weights: Iterable[Any]) -> dict[str, Any]:
    """Returns {name in a checkpoint: weight}; the name is the weight's path."""
    return {weight.path: weight for weight in weights}


def load(
    variables: Mapping[str, Any],
    prefix: str,
    *,
    may_initialize: str = "",
    may_skip: str = "",
) -> list[str]:
    """Assigns every variable its namesake in a TF1 checkpoint, or none at all.

    Args:
        variables: {name in the checkpoint: variable}.
        prefix: The checkpoint, or a folder whose newest is meant.
        may_initialize: Regular expression of names that the checkpoint may
            lack, and that then keep their initial values.
        may_skip: Regular expression of names in the checkpoint that may go
            unused.

    Returns:
        The names that kept their initial values.

    Raises:
        InputError: Any other name is missing, unused or has another shape; the
            message lists them all.
    """
    prefix = numbered.at(prefix)
    reader = tf1.open_reader(prefix)
    stored = reader.get_variable_to_shape_map()
    missing = sorted(set(variables) - set(stored))
    unused = sorted(set(stored) - set(variables))
    initialized = [name for name in missing if _matches(may_initialize, name)]
    problems = [
        *(f"missing: {name}" for name in missing if name not in initialized),
        *(f"unused: {name}" for name in unused if not _matches(may_skip, name)),
        *_shape_problems(variables, stored),
    ]
    if problems:
        raise InputError(_report(prefix, problems))
    arrays = {
        name: tf1.read_array(reader, prefix, name)
        for name in variables
        if name in stored
    }
    for name, array in arrays.items():
        variables[name].assign(array)
    return initialized


def _matches(pattern: str, name: str) -> bool:
    return bool(pattern and re.search(pattern, name))


def _shape_problems(
    variables: Mapping[str, Any], stored: Mapping[str, list[int]]
) -> list[str]:
    return [
        f"wrong shape: {name} is {stored[name]} in the checkpoint and "
        f"{list(variable.shape)} in the model"
        for name, variable in sorted(variables.items())
        if name in stored and stored[name] != list(variable.shape)
    ]


def _report(prefix: str, problems: list[str]) -> str:
    return (
        f"{prefix}: the checkpoint must fit the model. Received:"
        f"{bullet_list(problems)}\n"
        "Usual causes: a bert_config.json of another model; a checkpoint of "
        "another task, whose heads differ; an output folder used for another "
        "model, or with another --optimizer, before. In training, "
        "--may_initialize and --may_skip leave out what is missing or unused, "
        "but not what has another shape."
    )
