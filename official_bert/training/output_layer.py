"""Decides whether fine-tuning loads the output layer of a fine-tuned model."""

from collections.abc import Mapping
from typing import Any

from absl import logging

from official_bert.errors import listed
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
    is_text = trained.get("kind") == current["kind"] == "text"
    is_regression = is_text and not labels and not trained_labels
    # Models of transformers without names of labels have LABEL_0, LABEL_1, ...
    has_names = trained_labels and trained_labels[0] != "LABEL_0"
    if labels and has_names and trained_labels != labels:
        reason = f"the labels of {checkpoint} were {listed(trained_labels)}"
    elif is_regression and _is_scaled(trained) != _is_scaled(current):
        reason = f"{checkpoint} was trained on differently scaled targets"
    else:
        return ()
    logging.info(f"The output layer is newly initialized, because {reason}")
    return heads.OUTPUT_LAYER


def _is_scaled(task: Mapping[str, Any]) -> bool:
    """Whether the model of a regression task predicts standardized targets."""
    mean = task.get("target_mean", 0.0)
    return (mean, task.get("target_deviation", 1.0)) != (0.0, 1.0)
