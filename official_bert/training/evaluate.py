"""Evaluation and prediction, during and after training."""

import collections
import contextlib
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert import files, progress
from official_bert.checkpoints import run_directory
from official_bert.errors import InputError
from official_bert.options import FinetuningOptions
from official_bert.tasks import record_files
from official_bert.tasks.forward import Forward
from official_bert.tokenization import BatchTokenizer
from official_bert.training import distribution, reporting
from official_bert.training.objectives import Batch, PretrainingObjective
from official_bert.training.step import sum_over_replicas

_HISTORY = "eval_history.jsonl"


def pretraining_metrics(
    model: Any,
    objective: PretrainingObjective,
    batches: tf.data.Dataset,
    strategy: tf.distribute.Strategy,
    num_batches: int,
) -> dict[str, np.float32]:
    """Returns losses and accuracies, and `loss`, the mean over batches.

    Without any masked token, loss and accuracy of masked LM are 0, as in the
    original implementation. `num_batches` is only for the progress bar.
    """

    def step(batch: Batch) -> dict[str, tuple[Any, Any]]:
        sums = sum_over_replicas(objective.evaluation_sums(model, batch))
        weights = sum_over_replicas(objective.loss_weights(batch))
        losses = objective.mean_losses(sums, weights)
        metrics = {
            # An accuracy has the weight of its loss.
            name: (value, weights[name.replace("_accuracy", "_loss")])
            for name, value in sums.items()
        }
        metrics["loss"] = (tf.add_n(list(losses.values())), tf.constant(1.0))
        return metrics

    compiled = tf.function(lambda batch: strategy.run(step, args=(batch,)))
    # In float64, so that the order of batches does not matter.
    totals: dict[str, Any] = collections.defaultdict(lambda: np.zeros(2))
    for batch in progress.bar(
        distribution.shard_batches(batches, strategy),
        description="Evaluating",
        total=num_batches,
        unit="batch",
        unit_scale=False,
    ):
        metrics = distribution.first_replica(strategy, compiled(batch))
        for name, (value, weight) in metrics.items():
            totals[name] += float(value), float(weight)
    return {
        name: np.float32(total / (weight or 1.0))
        for name, (total, weight) in totals.items()
    }


def evaluate(
    forward: Forward,
    tokenizer: BatchTokenizer,
    data: Mapping[str, Sequence[Any]],
    splits: Sequence[str],
    record_dir: str | None = None,
) -> dict[str, Any]:
    """Evaluates a fine-tuned model on development sets.

    `data` is {split: its examples}. Features are also written to `record_dir`
    as TFRecords, if given.

    Returns:
        The metrics of the first split, and those of others under their names.
    """
    results = {}
    for split in splits:
        name = split.replace("dev", "eval", 1) + ".tf_record"
        record_file = record_dir and os.path.join(record_dir, name)
        answers, losses = _run_model(
            forward, tokenizer, data[split], "Evaluating", record_file
        )
        results[split] = losses | forward.task.metrics(data[split], answers)
    first, *others = splits
    return {**results[first], **{split: results[split] for split in others}}


def predict(
    forward: Forward,
    tokenizer: BatchTokenizer,
    data: Mapping[str, Sequence[Any]],
    directory: str,
) -> None:
    """Predicts all test sets and writes the task's prediction files."""
    task = forward.task
    for split in task.splits("test"):
        name = split.replace("test", "predict", 1) + ".tf_record"
        record_file = os.path.join(directory, name)
        examples = data[split]
        answers, _ = _run_model(
            forward, tokenizer, examples, "Predicting", record_file
        )
        task.write_predictions(directory, split, examples, answers)
        name = split.replace("test", "predict_results") + ".json"
        path = os.path.join(directory, name)
        if metrics := task.metrics(examples, answers):
            reporting.write_json_results(path, metrics)
        elif files.exists(path):  # Of an earlier run, on labelled data.
            files.remove(path)


def _run_model(
    forward: Forward,
    tokenizer: BatchTokenizer,
    examples: Sequence[Any],
    description: str,
    record_file: str | None = None,
) -> tuple[list[Any], dict[str, float]]:
    """Returns an answer for each example, and the mean losses."""
    length = forward.max_seq_length
    answers: list[Any] = []
    losses = [np.zeros((0, 2))]
    with (
        record_files.writing(record_file)
        if record_file
        else contextlib.nullcontext()
    ) as writer:
        for features in forward.task.featurize(
            examples, tokenizer, length, is_training=False
        ):
            if writer:
                for record in record_files.encode_features(features, length):
                    writer.write(record)
            outputs = forward.run(features, description)
            answers += forward.task.answers(features, outputs)
            losses.append(np.stack([outputs.losses, outputs.weights], 1))
    return answers, _mean_losses(np.concatenate(losses), forward.batch_size)


def _mean_losses(losses: np.ndarray, batch_size: int) -> dict[str, float]:
    """Returns `eval_loss`, the mean, and `loss`, the mean of batch means.

    The original implementation reports both. They differ if the last batch is
    short. Without labels, as in SQuAD's test sets, there is neither.

    Args:
        losses: [N, 2], the sum of losses and of weights of each feature.
        batch_size: Features in a batch.
    """
    sums, weights = losses.T
    if not weights.any():
        return {}
    starts = np.arange(0, len(sums), batch_size)
    batch_weights = np.add.reduceat(weights, starts)
    means = np.add.reduceat(sums, starts) / np.maximum(batch_weights, 1.0)
    return {
        "eval_loss": float(sums.sum() / weights.sum()),
        "loss": float(means.mean()),
    }


@dataclasses.dataclass
class Evaluations:
    """Evaluations during training, for `--eval_every` and `--early_stopping`.

    Each one is a line of `eval_history.jsonl`. The weights with the best main
    metric are kept in `best`.

    Attributes:
        forward: The model, with the batch size of evaluation.
        data: {split: its examples}.
        directory: Where this process writes.
        first_step: The step at which training resumes. Later evaluations in
            the history are forgotten: training will come to them again.
        weights: {name in a checkpoint: variable} to keep of the best model,
            `global_step` included.
    """

    forward: Forward
    tokenizer: BatchTokenizer
    data: Mapping[str, Sequence[Any]]
    options: FinetuningOptions
    directory: str
    first_step: int
    weights: Mapping[str, Any]

    def __post_init__(self) -> None:
        self._metric = self.forward.task.main_metric
        self._history = [
            entry
            for entry in _read_history(self.options.output_dir)
            if entry["global_step"] <= self.first_step
        ]

    @property
    def every(self) -> int:
        """Steps between evaluations."""
        return self.options.eval_every

    def should_stop(self, step: int, num_steps: int) -> bool:
        """Evaluates the model if that is due; returns whether to stop early.

        Args:
            step: Number of steps done.
            num_steps: Number of steps of the whole run. The last one is
                evaluated too.
        """
        is_due = self.every and (step % self.every == 0 or step == num_steps)
        # An earlier run may have evaluated this step before it was killed.
        if is_due and step not in [e["global_step"] for e in self._history]:
            self._evaluate(step)
        patience = self.options.early_stopping
        stops = 0 < patience <= self._evaluations_since_best()
        if stops:
            logging.info("Early stopping after step %d.", step)
        return stops

    def _evaluate(self, step: int) -> None:
        """Evaluates on the first development set and updates the history."""
        splits = self.forward.task.splits("dev")[:1]
        metrics = evaluate(self.forward, self.tokenizer, self.data, splits)
        results = {"global_step": step, **metrics}
        score = results[self._metric]
        is_best = all(score > entry[self._metric] for entry in self._history)
        self._history.append(
            {
                name: value
                for name, value in results.items()
                if isinstance(value, (int, float))
            }
        )
        if self.options.is_chief:
            if is_best:
                self._save_best(step)
            files.write_text(
                os.path.join(self.options.output_dir, _HISTORY),
                "".join(json.dumps(entry) + "\n" for entry in self._history),
            )
        logging.info("Step %d: %s = %.4f", step, self._metric, score)
        reporting.write_summary(
            self.directory, reporting.original_results(results, self._metric)
        )

    def _save_best(self, step: int) -> None:
        directory = os.path.join(self.options.output_dir, files.BEST_DIRECTORY)
        files.make_directory(directory)
        arrays = {name: w.numpy() for name, w in self.weights.items()}
        run_directory.save(directory, step, arrays, resume=None, keep=1)

    def _evaluations_since_best(self) -> int:
        scores = [entry[self._metric] for entry in self._history]
        return len(scores) - 1 - scores.index(max(scores)) if scores else 0


def _read_history(directory: str) -> list[dict[str, Any]]:
    path = os.path.join(directory, _HISTORY)
    if not files.exists(path):
        return []
    entries = []
    for number, line in enumerate(files.read_lines(path), start=1):
        try:
            entries.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}:{number}: must be a JSON object. {error}. Remove the "
                "file to forget earlier evaluations."
            ) from error
    return entries
