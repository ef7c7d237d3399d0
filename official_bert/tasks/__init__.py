"""Tasks: what their examples are, and what a model must do with them."""

import dataclasses
from collections.abc import Callable
from typing import Any

from official_bert.errors import InputError
from official_bert.modeling.pooling_head import PoolingHead
from official_bert.options import RunClassifier
from official_bert.tasks import glue, own_data, swag, tagging, xnli
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import Task
from official_bert.tasks.text import TextTask


def get(options: RunClassifier) -> Task:
    """Returns the task that `--task_name` names, on the data it is given.

    Raises:
        InputError: There is no such task.
    """
    head = PoolingHead(options.feature_layers, options.bilstm_units)
    return dataclasses.replace(_find(options), pooling_head=head)


def _find(options: RunClassifier) -> ChoiceTask | TaggingTask | TextTask:
    name = options.task_name.lower()
    makers: dict[str, Callable[[RunClassifier], Any]] = {
        "xnli": xnli.make,
        "swag": swag.make,
        **dict.fromkeys(tagging.NAMES, tagging.make),
        **dict.fromkeys(own_data.FORMATS, own_data.make_text_task),
        "choices": own_data.make_choice_task,
    }
    if name.replace("-", "") in glue.TASKS:
        return glue.make(options)
    if make := makers.get(name):
        return make(options)
    raise InputError(
        f"Task not found: {options.task_name!r}. --task_name must be one of "
        f"{', '.join((*glue.TASKS, 'xnli', 'swag', *tagging.NAMES))}; for data "
        f"of your own {', '.join((*own_data.FORMATS, 'choices'))}."
    )


def from_json(given: dict[str, Any]) -> Task:
    """Returns a task that can predict, of what its `to_json` returned.

    Raises:
        InputError: It is of no known kind.
        KeyError, TypeError: Something that the kind needs is missing.
    """
    kind = given["kind"]
    if kind == "text":
        return TextTask.from_json(given)
    if kind == "choice":
        return ChoiceTask.from_json(given)
    if kind == "tagging":
        return TaggingTask.from_json(given)
    if kind == "squad":
        return SquadTask.from_json(given)
    raise InputError(
        "A task's kind must be text, choice, tagging or squad. Received: "
        f"{kind!r}. Was it made by a newer version?"
    )
