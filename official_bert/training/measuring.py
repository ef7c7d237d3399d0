"""Evaluating and predicting with a fine-tuned model."""

import contextlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from official_bert import files
from official_bert.tasks import featurized
from official_bert.tasks.forward import Forward
from official_bert.tokenization import BatchTokenizer
from official_bert.training import reporting
from official_bert.training.preparing import Run

# Examples whose rows are in memory at once. SQuAD's development sets are not
# parted: windows are numbered from the chunk's first.
_CHUNK = 16384


def make_forward(run: Run, batch_size: int) -> Forward:
    """Returns the run's model, ready for rows of features."""
    return Forward(
        run.task,
        run.model,
        max_seq_length=run.options.max_seq_length,
        batch_size=batch_size,
        pad_to=run.options.eval_pad_to,
        strategy=run.strategy,
    )


def evaluate(run: Run, forward: Forward, *, in_the_end: bool) -> dict[str, Any]:
    """Measures the model on development sets.

    Args:
        run: With the examples to evaluate on.
        forward: The model.
        in_the_end: Whether to evaluate on all development sets rather than the
            first, and to write their records.

    Returns:
        The metrics of the first set, and those of others under their names.
    """
    splits = run.task.splits("dev")
    if not in_the_end:
        splits = splits[:1]
    found = {}
    for split in splits:
        name = split.replace("dev", "eval", 1) + ".tf_record"
        measured = _measure(
            forward,
            run.tokenizer,
            run.data[split],
            "Evaluating",
            os.path.join(run.folder, name) if in_the_end else None,
        )
        found[split] = {
            **_loss_results(measured, run.options.eval_batch_size),
            **run.task.metrics(run.data[split], measured.answers),
        }
    first, *others = splits
    return {**found[first], **{split: found[split] for split in others}}


def predict(run: Run) -> None:
    """Predicts all test sets, and writes what the task writes."""
    forward = make_forward(run, run.options.predict_batch_size)
    for split in run.task.splits("test"):
        name = split.replace("test", "predict", 1) + ".tf_record"
        folder = run.folder
        measured = _measure(
            forward,
            run.tokenizer,
            run.data[split],
            "Predicting",
            os.path.join(folder, name),
        )
        examples, answers = run.data[split], measured.answers
        run.task.write_predictions(folder, split, examples, answers)
        name = split.replace("test", "predict_results") + ".json"
        path = os.path.join(folder, name)
        if known := run.task.metrics(examples, answers):
            reporting.write_json(path, known)
        elif files.exists(path):  # Of an earlier run, on other data.
            files.remove(path)


class _Measured(NamedTuple):
    """What a model says of some examples.

    Attributes:
        answers: One for each example.
        losses: Of every row.
        weights: Of every row, what its loss counts.
    """

    answers: list[Any]
    losses: np.ndarray
    weights: np.ndarray


def _measure(
    forward: Forward,
    tokenizer: BatchTokenizer,
    examples: Sequence[Any],
    description: str,
    record_file: str | None = None,
) -> _Measured:
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
    return _Measured(answers, np.array(losses), np.array(weights))


def _loss_results(measured: _Measured, batch_size: int) -> dict[str, float]:
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
