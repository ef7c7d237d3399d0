"""The types of tasks on texts: which class a `task_type` means."""

from collections.abc import Mapping
from typing import Annotated, Any

from official_bert.errors import InputError, listed
from official_bert.io import json_files
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.multilabel import MultilabelTask
from official_bert.tasks.regression import RegressionTask
from official_bert.tasks.task import Task, TransformersModel
from official_bert.tasks.text import TextTask

# {`task_type` in `task.json`, or value of `--task_type`: the class of the task}
TYPES: dict[str, type[TextTask]] = {
    task.task_type: task
    for task in (ClassificationTask, MultilabelTask, RegressionTask)
}


def problem_type(task: Mapping[str, Any]) -> str | None:
    """Returns `problem_type` for the content of a `task.json`."""
    found = TYPES.get(task.get("task_type", ""))
    if not found or task.get("activation") == "sigmoid":
        return None
    return found.problem_type


class TextKind(TextTask):
    """Makes tasks of the kind `text`, each of the class of its type."""

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Task:
        allowed = Annotated[str, tuple(TYPES)]
        name = json_files.decode(values["task_type"], allowed, "task_type")
        return TYPES[name].from_json(values)

    @classmethod
    def of_transformers(cls, model: TransformersModel) -> TextTask:
        """Returns the task; one output means regression.

        As in transformers and sentence-transformers, the answer is the sigmoid
        of the output, unless the model says otherwise.
        """
        labels, problem_type = model.labels, model.problem_type
        is_number = problem_type == RegressionTask.problem_type
        if is_number and len(labels) > 1:
            raise InputError(
                f"{model.where}: a regression model must have one label. "
                f"Received: {listed(labels)}. To convert only the encoder, add "
                "--skip='^classifier'."
            )
        if problem_type == MultilabelTask.problem_type:
            return MultilabelTask(labels=labels)
        if len(labels) == 1:
            activation = "identity" if is_number else "sigmoid"
            return RegressionTask(labels=(), activation=activation)
        return ClassificationTask(labels=labels)
