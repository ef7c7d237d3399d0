"""What evaluations leave behind: result files, and events for TensorBoard."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert import files, json_files


def write_lines(output_dir: str, results: Mapping[str, Any]) -> None:
    """Writes `eval_results.txt`, one `key = value` a line, and a summary.

    Args:
        output_dir: Of the run.
        results: {name: number}, `global_step` among them.
    """
    write_summary(output_dir, results)
    lines = [f"{key} = {results[key]!s}" for key in sorted(results)]
    for line in lines:
        logging.info("  %s", line)
    files.write_text(
        os.path.join(output_dir, "eval_results.txt"),
        "".join(f"{line}\n" for line in lines),
    )


def write_summary(output_dir: str, results: Mapping[str, Any]) -> None:
    """Writes all numbers for TensorBoard, as the 2018 release did.

    Args:
        output_dir: Of the run; the events go to `eval` in it.
        results: {name: number}, `global_step` among them.
    """
    writer = tf.summary.create_file_writer(os.path.join(output_dir, "eval"))
    with contextlib.closing(writer), writer.as_default():
        for name, value in results.items():
            if name != "global_step" and np.isscalar(value):
                tf.summary.scalar(name, value, step=results["global_step"])


def lines_of_2018(
    results: Mapping[str, Any], main_metric: str
) -> dict[str, Any]:
    """Returns those results of a fine-tuned model that the original reports.

    Args:
        results: {name: number, or what the numbers are of}.
        main_metric: Its name, for a task without accuracy.
    """
    metric = "accuracy" if "accuracy" in results else main_metric
    lines = {f"eval_{metric}": np.float32(results[metric])}
    for name in ("eval_loss", "loss"):
        if name in results:
            lines[name] = np.float32(results[name])
    lines["global_step"] = results["global_step"]
    return lines


def write_json(path: str, results: Mapping[str, Any]) -> None:
    """Writes results, and shows those that are single numbers."""
    json_files.write(path, results)
    for name, value in results.items():
        if isinstance(value, (int, float)):
            logging.info("  %s = %.6g", name, value)
