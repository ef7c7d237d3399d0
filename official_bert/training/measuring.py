"""Evaluating and predicting with a fine-tuned model."""

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from official_bert import json_files
from official_bert.tasks import featurized
from official_bert.tasks.forward import Forward
from official_bert.tokenization import BatchTokenizer
from official_bert.training import evaluation

# Examples whose rows are in memory at once. SQuAD's development sets are not
# parted: windows are numbered from the chunk's first.
_CHUNK = 16384


class Measured(NamedTuple):
    """What a model says of some examples.

    Attributes:
        answers: One for each example.
        losses: Of every row.
        weights: Of every row, what its loss counts.
    """

    answers: list[Any]
    losses: np.ndarray
    weights: np.ndarray


def measure(
    forward: Forward,
    tokenizer: BatchTokenizer,
    examples: Sequence[Any],
    description: str,
    record_file: str | None = None,
) -> Measured:
    """Runs a model on examples.

    Args:
        forward: The model, and the task that the examples are of.
        tokenizer: Of the model.
        examples: In memory; their features are, some thousands at a time.
        description: What is being done.
        record_file: Where to write the features, as in 2018, if at all.
    """
    answers: list[Any] = []
    losses: list[float] = []
    weights: list[float] = []
    with (
        featurized.writing(record_file)
        if record_file
        else contextlib.nullcontext()
    ) as writer:
        for start in range(0, len(examples), _CHUNK):
            chunk = examples[start : start + _CHUNK]
            rows = list(
                forward.task.featurize(
                    chunk,
                    tokenizer,
                    forward.max_seq_length,
                    is_training=False,
                )
            )
            if writer:
                featurized.write_rows(
                    writer, forward.schema, (r.row for r in rows)
                )
            outputs = forward.run(rows, description)
            answers += forward.task.answers(chunk, rows, outputs)
            losses += [output.loss for output in outputs]
            weights += [output.weight for output in outputs]
    return Measured(answers, np.array(losses), np.array(weights))


def loss_results(measured: Measured, batch_size: int) -> dict[str, float]:
    """Returns `eval_loss`, the mean, and `loss`, that of batches' means.

    The 2018 release reports both. They differ if the last batch is short.
    """
    losses, weights = measured.losses, measured.weights
    if not weights.any():  # As with questions whose answers are not known.
        return {}
    starts = np.arange(0, len(losses), batch_size)
    batch_weights = np.add.reduceat(weights, starts)
    means = np.add.reduceat(losses, starts) / np.maximum(batch_weights, 1.0)
    return {
        "eval_loss": float(losses.sum() / weights.sum()),
        "loss": float(means.mean()),
    }


def write_results(
    folder: str, results: Mapping[str, Any], main_metric: str
) -> None:
    """Writes `eval_results.json`, and the lines of 2018 in `eval_results.txt`.

    Args:
        folder: Where.
        results: {name: number, or what the numbers are of}.
        main_metric: Its name, for the lines of a task without accuracy.
    """
    write_json(os.path.join(folder, "eval_results.json"), results)
    evaluation.write_results(folder, _lines(results, main_metric))


def write_summary(
    folder: str, results: Mapping[str, Any], main_metric: str
) -> None:
    """Writes the lines of 2018 for TensorBoard alone.

    Args:
        folder: See `write_results`, as all.
        results: Of an evaluation on the way.
        main_metric: Its name.
    """
    evaluation.write_summary(folder, _lines(results, main_metric))


def _lines(results: Mapping[str, Any], main_metric: str) -> dict[str, Any]:
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
