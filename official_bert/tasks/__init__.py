"""Tasks: what their examples are, and what a model must do with them."""

from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import glue
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tagging import task as tagging
from official_bert.tasks.task import Task


def get(options: RunClassifier) -> Task:
    """Returns the task that `--task_name` names, on the data it is given.

    Raises:
        InputError: There is no such task.
    """
    long_documents = LongDocuments(
        options.long_document, options.window_stride, options.window_pooling
    )
    if row := glue.find(options.task_name):
        return glue.make(row, options.data_dir, long_documents)
    if options.task_name.lower() in tagging.NAMES:
        return tagging.make(options)
    raise InputError(
        f"Task not found: {options.task_name!r}. --task_name must be one of "
        f"{', '.join((*glue.TASKS, *tagging.NAMES))}."
    )
