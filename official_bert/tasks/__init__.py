"""Tasks for fine-tuning: data, features, heads and answers."""

import dataclasses
import difflib
from collections.abc import Callable, Sequence
from typing import Any

from official_bert.errors import InputError, listed
from official_bert.io import tables
from official_bert.io.rows import Row
from official_bert.options import RunClassifier
from official_bert.options.task_data import TAGGING_NAMES
from official_bert.sources import task_file
from official_bert.tasks import (
    choice,
    glue,
    own_pairs,
    own_texts,
    tagging,
    xnli,
)
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.embedding import EmbeddingTask
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.squad.task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import Task
from official_bert.tasks.text import TextTask
from official_bert.tasks.text_types import TextKind

# {`kind` in `task.json`: the class of the task}.
KINDS: dict[str, type[Task]] = {
    task.kind: task
    for task in (TextKind, ChoiceTask, TaggingTask, SquadTask, EmbeddingTask)
}

# {value of `--task_name`: the function that makes the task}.
_MAKERS: dict[str, Callable[[RunClassifier], Task]] = {
    **dict.fromkeys(glue.TASKS, glue.make),
    "xnli": xnli.make,
    "swag": choice.make_swag,
    **dict.fromkeys(TAGGING_NAMES, tagging.make),
    **dict.fromkeys((*tables.FORMATS, tables.LINES), own_texts.make),
    "choices": choice.make,
}


def get(options: RunClassifier, rows: Sequence[Row] = ()) -> Task:
    """Returns the task of `--task_name`, which may be in any case.

    `rows` are those that `detection.detect_omitted` read.
    """
    if options.resolved_task not in _MAKERS:
        near = difflib.get_close_matches(options.resolved_task, _MAKERS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise InputError(
            f"--task_name must be one of {', '.join(_MAKERS)}. Received: "
            f"{options.task_name!r}.{hint} tsv, csv, jsonl and choices are for "
            "your own data."
        )
    if options.task_type == "embedding":
        # Before the data is read, whose examples have no weights and groups.
        _check_flags(EmbeddingTask(), options)
        task: Task = own_pairs.make(options, rows)
    elif options.has_own_texts:
        task = own_texts.make(options, rows)
    else:
        task = _MAKERS[options.resolved_task](options)
    if isinstance(task, TextTask | ChoiceTask):
        mode, stride = options.long_document, options.window_stride
        long_documents = LongDocuments(mode, stride, options.window_pooling)
        task = dataclasses.replace(task, long_documents=long_documents)
    _check_flags(task, options)
    if isinstance(task, TextTask):
        metric = options.best_metric or task.best_metric
        task = dataclasses.replace(task, best_metric=metric)
    if isinstance(task, ClassificationTask):
        task = task.with_class_weights(options.class_weights or "none")
    return dataclasses.replace(task, pooling_head=options.pooling_head)


def _check_flags(task: Task, options: RunClassifier) -> None:
    """Raises `InputError` if the task does not support a flag that is set."""
    for name, field in options.fields().items():
        if options.is_set(name) and not task.supports(field):
            supported = listed(field.metadata["tasks"].split())
            received = f"Received: {task.kind}, {task.head.loss}. Omit it."
            raise options.error(name, f"is for {supported}. {received}")
    if not options.has_own_texts:
        names = ("weight_column", "group_column")
        options.require_unset(names, "is for your own texts. Omit it.")


def from_json(values: dict[str, Any]) -> Task:
    """Returns the task that a `task.json` describes, without data.

    Raises `InputError`, `KeyError`, `TypeError` or `ValueError` if it is
    malformed.
    """
    if values["kind"] not in KINDS:
        raise InputError(
            f"A task's kind must be one of {', '.join(KINDS)}. Received: "
            f"{values['kind']!r}. If a newer version of official_bert wrote "
            "task.json, install that version."
        )
    return KINDS[values["kind"]].from_json(values)


def load(description: dict[str, Any], directory: str) -> tuple[Task, int]:
    """Returns the task that `task.json` describes, and its `max_seq_length`.

    Raises `InputError`, which names the directory, if it is malformed.
    """
    try:
        return from_json(description), description["max_seq_length"]
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise InputError(
            f"{task_file.path_in(directory)}: must be as fine-tuning wrote it "
            f"({error}). Restore the file, or fine-tune again."
        ) from error


def head_kind(values: dict[str, Any]) -> str | None:
    """Returns the kind of head of a task in `task.json`, if it is known."""
    kind = KINDS.get(values.get("kind", ""))
    return kind.head_kind if kind else None
