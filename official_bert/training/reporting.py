"""What a run writes about itself: options, results, TensorBoard events."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert import files, json_files
from official_bert.options.training import TrainingOptions


def write_run_files(options: TrainingOptions, texts: Mapping[str, str]) -> None:
    """Writes the files of a run, {name: text}, if this process is the chief."""
    if options.is_chief:
        for name, text in texts.items():
            files.write_text(os.path.join(options.output_dir, name), text)


def write_eval_results(
    directory: str,
    results: Mapping[str, Any],
    names: Sequence[str] = ("eval_results",),
) -> None:
    """Writes {name: number} to `eval_results.txt` and TensorBoard events."""
    write_summary(directory, results)
    lines = [f"{name} = {results[name]!s}\n" for name in sorted(results)]
    for line in lines:
        logging.info("  %s", line.rstrip())
    for name in names:
        path = os.path.join(directory, f"{name}.txt")
        files.write_text(path, "".join(lines))


def write_summary(directory: str, results: Mapping[str, Any]) -> None:
    """Writes results as TensorBoard events to `eval` in the directory."""
    writer = tf.summary.create_file_writer(os.path.join(directory, "eval"))
    with contextlib.closing(writer), writer.as_default():
        for name, value in results.items():
            if name != "global_step" and np.isscalar(value):
                tf.summary.scalar(name, value, step=results["global_step"])


def original_results(
    results: Mapping[str, Any], main_metric: str
) -> dict[str, Any]:
    """Returns those results that the original implementation reports.

    The main metric replaces the accuracy of tasks that have none. Tagging of
    entities adds their precision, recall and F1.
    """
    metric = "accuracy" if "accuracy" in results else main_metric
    selected = {f"eval_{metric}": np.float32(results[metric])}
    if "precision" in results:
        for name in ("precision", "recall", "f1"):
            selected[f"eval_{name}"] = np.float32(results[name])
    for name in ("eval_loss", "loss"):
        if name in results:
            selected[name] = np.float32(results[name])
    return {**selected, "global_step": results["global_step"]}


def write_json_results(
    directory: str, results: Mapping[str, Any], names: Sequence[str]
) -> None:
    """Writes results to JSON files, and logs those that are numbers."""
    for name in names:
        json_files.write(os.path.join(directory, f"{name}.json"), results)
    for name, value in numbers(results).items():
        logging.info("  %s = %.6g", name, value)


def numbers(results: Mapping[str, Any]) -> dict[str, float]:
    """Returns those results that are numbers."""
    return {
        name: value
        for name, value in results.items()
        if isinstance(value, (int, float))
    }
