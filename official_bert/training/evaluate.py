"""Evaluation and prediction, during and after training; early stopping."""

import contextlib
import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.errors import InputError, quoted
from official_bert.inference.forward import Forward
from official_bert.io import files, json_files
from official_bert.options import FinetuningOptions, RunPretraining
from official_bert.runs import checkpoints as run_directory
from official_bert.runs import file_names
from official_bert.tasks import record_files
from official_bert.tasks.task import Task
from official_bert.tokenization import Tokenizer
from official_bert.training import reporting

# {mode of `DataSet.splits`: text of the progress bar}
_DESCRIPTIONS = {"dev": "Evaluating", "test": "Predicting"}


@dataclasses.dataclass(frozen=True)
class FinetuningRun:
    """One run of a fine-tuning command."""

    task: Task
    options: FinetuningOptions  # With the vocabulary of a TF Hub module.
    tokenizer: Tokenizer
    strategy: tf.distribute.Strategy
    model: Any
    examples: dict[str, Sequence[Any]]  # {split: its examples}
    directory: str  # For the files of this host; `output_dir` on the chief.

    @functools.cached_property
    def forwards(self) -> dict[str, Forward]:
        """{"dev" or "test": the model}, each compiled when it is first used."""
        options = self.options
        sizes = {
            "dev": options.eval_batch_size,
            "test": options.predict_batch_size,
        }
        return {
            mode: Forward(
                self.task.head,
                self.model,
                max_seq_length=options.max_seq_length,
                batch_size=batch_size,
                pad_to=options.eval_pad_to,
                strategy=self.strategy,
            )
            for mode, batch_size in sizes.items()
        }

    def measure(self, step: int) -> dict[str, Any]:
        """Returns the metrics after a step, and writes TensorBoard events.

        Only the first development set is evaluated.
        """
        results = {"global_step": step, **evaluate(self, ["dev"])["dev"]}
        main_metric = self.task.main_metric
        summary = reporting.original_results(results, main_metric)
        reporting.write_summary(self.directory, summary)
        return results


def evaluate(
    run: FinetuningRun, splits: Sequence[str], record_dir: str | None = None
) -> dict[str, dict[str, Any]]:
    """Returns {split: metrics} of a fine-tuned model on development sets.

    If `record_dir` is given, also writes the features to TFRecord files there.
    """
    results = {}
    for split in splits:
        answers, losses = _run_model(run, "dev", split, record_dir)
        results[split] = losses | run.task.metrics(run.examples[split], answers)
        reporting.warn_of_one_class(split, run.task.predictions(answers))
    return results


def write_results(run: FinetuningRun, global_step: int) -> None:
    """Evaluates all development sets; writes and prints the metrics."""
    splits = run.task.data.splits("dev")
    metrics = evaluate(run, splits, record_dir=run.directory)
    mismatched = {split: metrics[split] for split in splits if split != "dev"}
    results = {"global_step": global_step, **metrics["dev"], **mismatched}
    main_results = reporting.original_results(results, run.task.main_metric)
    reporting.write_summary(run.directory, main_results)
    for name in run.task.data.results_names(file_names.EVAL_RESULTS):
        path = os.path.join(run.directory, name)
        json_files.write(f"{path}.json", results)
        reporting.write_eval_results(f"{path}.txt", main_results)
    for split in splits:
        print_metrics(run, split, metrics[split])


def print_metrics(
    run: FinetuningRun, split: str, metrics: Mapping[str, Any]
) -> None:
    """Prints the metrics of a split and of its baseline, on the chief."""
    if run.options.is_chief:
        examples, training = run.examples[split], run.examples.get("train")
        baseline = run.task.baseline(training, examples) if training else {}
        title = f"{split}, {len(examples):,} examples"
        name = run.task.baseline_name
        reporting.print_metrics(title, metrics, baseline, name)
        metric = run.task.main_metric
        reporting.warn_unless_better(split, metric, metrics, baseline)


def predict(run: FinetuningRun) -> None:
    """Predicts all test sets and writes the task's prediction files."""
    for split in run.task.data.splits("test"):
        examples = run.examples[split]
        answers, _ = _run_model(run, "test", split, run.directory)
        run.task.write_predictions(run.directory, split, examples, answers)
        metrics = run.task.metrics(examples, answers)
        results_name = split.replace("test", file_names.PREDICT_RESULTS)
        for name in run.task.data.results_names(results_name):
            path = os.path.join(run.directory, f"{name}.json")
            if metrics:
                json_files.write(path, metrics)
            elif files.exists(path):  # From an earlier run, on labelled data.
                files.remove(path)
        if metrics:
            print_metrics(run, split, metrics)


def _run_model(
    run: FinetuningRun, mode: str, split: str, record_dir: str | None
) -> tuple[list[Any], dict[str, float]]:
    """Returns an answer for each example, and the mean losses."""
    forward, length = run.forwards[mode], run.options.max_seq_length
    answers: list[Any] = []
    losses = [np.zeros((0, 2))]
    writing: Any = contextlib.nullcontext()
    if record_dir:
        path = os.path.join(record_dir, file_names.records(split))
        writing = files.writing(path)
    with writing as file:
        for features in run.task.featurize(
            run.examples[split], run.tokenizer, length
        ):
            if file:
                record_files.write_features(file, features, length)
            outputs = forward.run(features, _DESCRIPTIONS[mode])
            answers += run.task.answers(features, outputs.logits)
            loss_sums = outputs.losses * run.task.loss_unit
            losses.append(np.stack([loss_sums, outputs.weights], 1))
    return answers, _mean_losses(np.concatenate(losses), forward.batch_size)


def _mean_losses(losses: np.ndarray, batch_size: int) -> dict[str, float]:
    """Returns `eval_loss`, the mean, and `loss`, the mean of batch means.

    The original implementation reports both. Without labels, returns {}.
    `losses` is [N, 2]: the sums of losses and of weights of each feature.
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


class Evaluations:
    """Evaluations during training, for `--eval_every` and `--early_stopping`.

    Each one is a line of `eval_history.jsonl`. Training resumes at
    `first_step`; lines of later steps are dropped, because these will be
    evaluated again. `num_steps` is the last step.

    `measure` evaluates a step and returns {name: value} with `global_step` and
    `metric`. After the best evaluation so far, `weights`, {name in a
    checkpoint: variable} with `global_step`, are saved in `best/`. If they are
    None, nothing is saved. `patience` is `--early_stopping`; 0: no early end.
    """

    def __init__(
        self,
        options: FinetuningOptions | RunPretraining,
        first_step: int,
        num_steps: int,
        measure: Callable[[int], Mapping[str, Any]],
        metric: str,
        weights: Mapping[str, Any] | None = None,
        patience: int = 0,
    ) -> None:
        self.every = options.eval_every
        self._num_steps = num_steps
        self._options, self._measure = options, measure
        self._metric, self._weights = metric, weights
        self._patience = patience
        self._path = os.path.join(options.output_dir, file_names.EVAL_HISTORY)
        self._history = []
        lines = files.read_lines(self._path) if files.exists(self._path) else []
        for number, line in enumerate(lines, start=1):
            entry = _parse_evaluation(line, f"{self._path}:{number}", metric)
            if entry["global_step"] <= first_step:
                self._history.append(entry)

    def is_due(self, step: int) -> bool:
        """Whether to evaluate: every `--eval_every` steps and after the last.

        False if an earlier run evaluated this step before it was killed.
        """
        is_last = step == self._num_steps
        is_due = step > 0 and (step % self.every == 0 or is_last)
        return is_due and step not in [e["global_step"] for e in self._history]

    def evaluate_if_due(self, step: int) -> bool:
        """Evaluates if it is due; returns whether `patience` ends training."""
        if self.is_due(step):
            self._evaluate(step)
        scores = [score(entry, self._metric) for entry in self._history]
        best = scores.index(max(scores)) if scores else -1
        num_since_best = len(scores) - 1 - best
        stops = 0 < self._patience <= num_since_best
        if stops and step < self._num_steps:
            logging.info(
                "Early stopping after step %d: %s was best at step %d",
                step,
                self._metric,
                self._history[best]["global_step"],
            )
        return stops

    def _evaluate(self, step: int) -> None:
        results = self._measure(step)
        new_score = score(results, self._metric)
        is_best = all(
            new_score > score(entry, self._metric) for entry in self._history
        )
        self._history.append(reporting.numbers(results))
        if self._options.is_chief:
            if is_best and self._weights:
                best = os.path.join(self._options.output_dir, file_names.BEST)
                files.make_directory(best)
                arrays = {name: w.numpy() for name, w in self._weights.items()}
                run_directory.save(best, step, arrays, None, keep=1)
            lines = [json.dumps(entry) + "\n" for entry in self._history]
            files.write_text(self._path, "".join(lines))
        names = (self._metric, "eval_loss", "masked_lm_loss", "lm_loss")
        shown = [f"{n} = {results[n]:.4f}" for n in names if n in results]
        logging.info("Step %d: %s", step, ", ".join(shown))


def score(results: Mapping[str, Any], metric: str) -> tuple[float, float]:
    """Returns a key to compare evaluations: larger is better.

    The loss decides between equal metrics. NaN is worse than all numbers.
    """
    numbers = results[metric], -results.get("eval_loss", 0.0)
    value, negative_loss = (-math.inf if math.isnan(n) else n for n in numbers)
    return value, negative_loss


def _parse_evaluation(line: str, where: str, metric: str) -> dict[str, Any]:
    remedy = "Remove the file to forget earlier evaluations."
    try:
        entry = json_files.parse_line(line, where)
    except InputError as error:
        raise InputError(f"{error} {remedy}") from error
    values = entry if isinstance(entry, dict) else {}
    for name in ("global_step", metric):
        if not isinstance(values.get(name), int | float):
            raise InputError(
                f"{where}: must be an object with a number as `{name}`. "
                f"Received: {quoted(entry)}. {remedy}"
            )
    return values
