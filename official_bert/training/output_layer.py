"""Decides whether the output layer of a fine-tuned model fits a task."""

from collections.abc import Mapping
from typing import Any

from absl import logging

from official_bert.errors import InputError, listed
from official_bert.sources import heads
from official_bert.sources.pretrained import ModelFiles
from official_bert.tasks.task import Task


def weights_to_initialize(
    task: Task, model_files: ModelFiles
) -> tuple[str, ...]:
    """Returns the names of the weights that are not loaded from a model.

    The output layer is not loaded if the model was fine-tuned for other labels
    or another order of labels, or if only one of the two regression tasks
    standardizes its targets.
    """
    checkpoint = model_files.init_checkpoint
    trained, current = model_files.task, task.to_json()
    labels = current.get("labels", ())
    trained_labels = [*trained.get("labels", ())]
    # Models of transformers without names of labels have LABEL_0, LABEL_1, ...
    has_names = trained_labels and trained_labels[0] != "LABEL_0"
    if labels and has_names and trained_labels != labels:
        reason = f"the labels of {checkpoint} were {listed(trained_labels)}"
    elif _has_other_scale(trained, current):
        reason = f"{checkpoint} was trained on differently scaled targets"
    else:
        return ()
    logging.info(f"The output layer is newly initialized, because {reason}")
    return heads.OUTPUT_LAYER


def require_same_outputs(task: Task, model_files: ModelFiles) -> None:
    """Compares a model with a task that only evaluates it.

    Raises `InputError` if the model has the same labels in another order, such
    as an MNLI model of transformers, or standardized targets, or if only one of
    the two has pairs of texts. Other names of labels are a warning.
    """
    checkpoint = model_files.init_checkpoint
    trained, current = model_files.task, task.to_json()
    if _has_other_scale(trained, current):
        raise InputError(
            f"{checkpoint} was trained on differently scaled targets. Pass its "
            "run directory as --output_dir, or use predict.py."
        )
    examples: dict[Any, str] = {False: "single texts", True: "text pairs"}
    before, now = (examples.get(t.get("is_pair")) for t in (trained, current))
    if before and now and before != now:
        raise InputError(
            f"{checkpoint} was trained on {before}, but the task has {now}. "
            "Choose a model of this task."
        )
    theirs, ours = trained.get("labels", ()), current.get("labels", ())
    plain = [[label.casefold() for label in names] for names in (theirs, ours)]
    if plain[0] == plain[1] or len(theirs) != len(ours):  # Another error.
        return
    message = (
        f"{checkpoint}: the outputs of the model are for the labels "
        f"{listed(theirs)}, and those of the task for {listed(ours)}"
    )
    if sorted(plain[0]) == sorted(plain[1]):
        raise InputError(
            f"{message}. Use predict.py --model or, for your own data, write "
            "the labels of the model into a --label_file, in this order."
        )
    logging.warning(f"{message}. They are compared in this order")


def _has_other_scale(
    trained: Mapping[str, Any], current: Mapping[str, Any]
) -> bool:
    """Whether only one of two regression tasks standardizes its targets."""
    are_texts = trained.get("kind") == current["kind"] == "text"
    are_numbers = not (current.get("labels") or trained.get("labels"))
    is_other = _is_scaled(trained) != _is_scaled(current)
    return are_texts and are_numbers and is_other


def _is_scaled(task: Mapping[str, Any]) -> bool:
    """Whether the model of a regression task predicts standardized targets."""
    mean = task.get("target_mean", 0.0)
    return (mean, task.get("target_deviation", 1.0)) != (0.0, 1.0)
