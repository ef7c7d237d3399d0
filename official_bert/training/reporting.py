"""The output of a run besides checkpoints: options, results, next command."""

import contextlib
import errno
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.errors import bullet_list, suppress_broken_pipe
from official_bert.io import files
from official_bert.options import FinetuningOptions, RunClassifier
from official_bert.options.training import TrainingOptions
from official_bert.runs import checkpoints, file_names
from official_bert.sources import checkpoint_paths
from official_bert.tasks.own_texts import MAX_SHARE_OF_LABEL
from official_bert.tasks.task import Task

# Maximum number of types of tags in the table of metrics.
_MAX_TYPES = 20


def write_eval_options(options: TrainingOptions) -> None:
    """Writes the options of a run that only evaluates or predicts."""
    if options.is_chief:
        path = options.run_directory.file(file_names.EVAL_OPTIONS)
        files.write_text(path, options.to_json())


def warn_of_one_class(
    split: str, task: Task, predictions: Sequence[Any], examples: Sequence[Any]
) -> None:
    """Warns if a model predicts the same class for everything.

    If the other labels are rare, more training is not the remedy.
    """
    classes = set(map(str, predictions))
    if len(classes) != 1 or len(predictions) == 1:
        return
    [predicted] = classes
    are_same = [predicted in task.labels_of(example) for example in examples]
    is_none = predicted == "[]"  # In multi-label tasks.
    has_rare_labels = is_none or np.mean(are_same) > MAX_SHARE_OF_LABEL
    advice = (
        "If most labels are the same, add examples of the others. Otherwise, "
        "train for more steps or with another learning rate"
    )
    if _has_class_weights(task) and has_rare_labels:
        advice = (
            "The other labels are rare. Add examples of them, or train with "
            "--class_weights=balanced (or larger weights)"
        )
        others = [x for x in getattr(task, "labels", ()) if x != predicted]
        if is_none or len(others) == 1:
            threshold = "0.2" if is_none else f"{others[0]}=0.2"
            flag = shlex.quote(f"--threshold={threshold}")
            advice += f", or predict with a lower threshold: predict.py {flag}"
    logging.warning(
        f"{split}: all {len(predictions)} predictions are {predicted!r}. "
        f"{advice}."
    )


def _has_class_weights(task: Task) -> bool:
    return task.supports(RunClassifier.fields()["class_weights"])


def warn_unless_better(
    split: str,
    task: Task,
    options: FinetuningOptions,
    metrics: Mapping[str, Any],
    baseline: Mapping[str, Any],
) -> None:
    """Warns if the main metric of a model is not better than the baseline's.

    If labels are rare, more training is not the remedy.
    """
    metric, more_steps = task.main_metric, options.more_steps
    if not (metric in baseline and metrics[metric] <= baseline[metric] < 1):
        return
    has_rare_labels = baseline.get("accuracy", 0.0) > MAX_SHARE_OF_LABEL
    has_rare_labels |= baseline.get("micro_f1") == 0.0
    advice = f"more steps ({more_steps})" if more_steps else "more steps"
    if _has_class_weights(task) and has_rare_labels:
        advice = "--class_weights=balanced, because labels are rare,"
        if options.is_set("class_weights"):
            advice = (
                "larger --class_weights for the rare labels, a lower "
                "--threshold of predict.py (for two labels, or several per "
                "text),"
            )
    logging.warning(
        f"{split}: {metric} is not better than the baseline. Try {advice} or "
        "another --learning_rate (1e-4 to 3e-4 for small models, 2e-5 for "
        "Base), and make sure that the model is pre-trained."
    )


@suppress_broken_pipe("stdout", errno.EIO)
def print_metrics(
    title: str,
    metrics: Mapping[str, Any],
    baseline: Mapping[str, Any] | None = None,
    baseline_name: str = "",
) -> None:
    """Prints the metrics that are numbers, and those of a baseline, if any.

    The F1 of the types of tags follows, the most frequent type first.
    """
    shown = numbers(metrics) | _type_scores(metrics)
    if "eval_loss" in shown:
        shown.pop("loss", None)  # Another mean of the same losses.
    columns = {"model": shown}
    if baseline:
        columns["baseline"] = numbers(baseline) | _type_scores(baseline)
    rows = {title: list(columns)}
    for name in shown:
        rows[name] = [_cell(column.get(name)) for column in columns.values()]
    width = max(24, len(title))
    print()
    for name, cells in rows.items():
        print(name.ljust(width) + "".join(f" {cell:>9}" for cell in cells))
    if baseline:
        print(f"Baseline: {baseline_name}.")


def _type_scores(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Returns {"f1 TYPE": F1} of the types with the largest support."""
    types = metrics.get("per_type", {})
    shown = sorted(types, key=lambda name: -types[name]["support"])[:_MAX_TYPES]
    return {f"f1 {name}".rstrip(): types[name]["f1"] for name in shown}


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


def write_eval_results(path: str, results: Mapping[str, Any]) -> None:
    """Writes {name: number} in the format of `eval_results.txt`."""
    lines = [f"{name} = {results[name]!s}\n" for name in sorted(results)]
    files.write_text(path, "".join(lines))


def write_summary(options: TrainingOptions, results: Mapping[str, Any]) -> None:
    """Writes results as TensorBoard events to `eval/`, on the chief."""
    if not options.is_chief:
        return
    path = options.run_directory.file(file_names.EVENTS)
    writer = tf.summary.create_file_writer(path)
    with contextlib.closing(writer), writer.as_default():
        for name, value in results.items():
            if name != "global_step":
                tf.summary.scalar(name, value, step=results["global_step"])


def original_results(
    results: Mapping[str, Any], main_metric: str
) -> dict[str, Any]:
    """Returns the results that the original implementation reports.

    The main metric replaces the accuracy of tasks that have none. Tagging of
    entities adds their precision, recall and F1.
    """
    names = ["accuracy" if "accuracy" in results else main_metric]
    if "precision" in results:
        names += ["precision", "recall", "f1"]
    selected = {f"eval_{name}": np.float32(results[name]) for name in names}
    for name in ("eval_loss", "loss"):
        if name in results:
            selected[name] = np.float32(results[name])
    return {**selected, "global_step": results["global_step"]}


def numbers(results: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the results that are numbers, as Python numbers."""
    return {
        name: value.item() if isinstance(value, np.floating) else value
        for name, value in results.items()
        if isinstance(value, int | float | np.floating)
    }


@suppress_broken_pipe("stdout", errno.EIO)
def print_fine_tuning(options: TrainingOptions) -> None:
    """Prints the command that fine-tunes the pre-trained model."""
    model = f"--model={shlex.quote(options.output_dir)}"
    if not options.run_directory.has(file_names.VOCAB):
        model += " --vocab_file=VOCAB_FILE"
    print(
        f"\nFine-tune the model:\n  python run_classifier.py {model} "
        "--train_file=labeled.csv --output_dir=finetuned"
    )


@suppress_broken_pipe("stdout", errno.EIO)
def print_next_command(task: Task, options: FinetuningOptions) -> None:
    """Prints the files of the run and, after training, the next command."""
    has_files = options.do_train or options.do_predict
    if not (has_files and options.is_chief):
        return
    directory, run = options.output_dir, options.run_directory
    model = checkpoints.latest(checkpoint_paths.find(directory))
    ending = task.data.input_ending or task.input_ending
    print(
        f"\nThe model is {model or options.init_checkpoint}. Some other files "
        f"in {directory}:{bullet_list(run.result_names())}"
    )
    if not options.do_train:
        return
    if file_names.TEMPORARY in directory:
        print(
            "\nThe directory is temporary: it is removed with the Predictor. "
            "To keep the model, pass output_dir."
        )
        return
    print(
        f"\nPredict new examples{task.input_hint}:\n  python predict.py "
        f"--model_dir={shlex.quote(directory)} --input_file=new.{ending}"
    )
