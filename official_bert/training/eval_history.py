"""The evaluations during training: the best model, and early stopping."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from absl import logging

from official_bert.errors import InputError, quoted
from official_bert.io import files, json_files
from official_bert.runs import checkpoints, file_names
from official_bert.training import reporting

if TYPE_CHECKING:
    from official_bert.training.fit import TrainingRun


class EvalHistory:
    """The evaluations of a run, for `--eval_every` and `--early_stopping`.

    There are none if `--eval_every` is 0. Each one is a line of
    `eval_history.jsonl`. Training resumes at `first_step`; lines of later steps
    are dropped, because these will be evaluated again. `num_steps` is the last
    step.

    With `keeps_best`, `weights`, {name in a checkpoint: variable} with
    `global_step`, are saved in `best/` after the best evaluation so far.
    """

    def __init__(
        self,
        run: "TrainingRun",
        first_step: int,
        num_steps: int,
        weights: Mapping[str, Any],
    ) -> None:
        self._every = run.options.eval_every
        self._run, self._num_steps, self._weights = run, num_steps, weights
        self._directory = run.options.run_directory
        self._path = self._directory.file(file_names.EVAL_HISTORY)
        self._history = []
        has_lines = self._every and files.exists(self._path)
        lines = files.read_lines(self._path) if has_lines else []
        for number, line in enumerate(lines, start=1):
            where = f"{self._path}:{number}"
            entry = _parse_evaluation(line, where, run.main_metric)
            if entry["global_step"] <= first_step:
                self._history.append(entry)

    def is_due(self, step: int) -> bool:
        """Whether to evaluate: every `--eval_every` steps and after the last.

        False if an earlier run evaluated this step before it was killed.
        """
        is_last = step == self._num_steps
        if not self._every or step == 0:
            return False
        is_due = step % self._every == 0 or is_last
        return is_due and step not in [e["global_step"] for e in self._history]

    def evaluate(self, step: int) -> None:
        """Evaluates the weights after a step, and saves them if best."""
        metric = self._run.main_metric
        results = self._run.measure(step)
        new_score = score(results, metric)
        is_best = all(
            new_score > score(entry, metric) for entry in self._history
        )
        self._history.append(reporting.numbers(results))
        if self._run.options.is_chief:
            if is_best and self._run.keeps_best:
                best = self._directory.best.path
                files.make_directory(best)
                arrays = {name: w.numpy() for name, w in self._weights.items()}
                checkpoints.save(best, step, arrays, None, keep=1)
            files.write_text(self._path, json_files.to_lines(self._history))
        names = (metric, "eval_loss", "masked_lm_loss", "lm_loss")
        shown = [f"{n} = {results[n]:.4f}" for n in names if n in results]
        logging.info(f"Step {step}: {', '.join(shown)}")

    def stops_early(self, step: int) -> bool:
        """Whether the last `early_stopping` evaluations had no new best one."""
        metric = self._run.main_metric
        scores = [score(entry, metric) for entry in self._history]
        best = scores.index(max(scores)) if scores else -1
        num_since_best = len(scores) - 1 - best
        stops = 0 < self._run.options.early_stopping <= num_since_best
        if stops and step < self._num_steps:
            logging.info(
                f"Early stopping after step {step}: {metric} was best at step "
                f"{self._history[best]['global_step']}"
            )
            if self._run.options.is_chief:
                record = self._directory.record
                record = record._replace(num_train_steps=step)
                self._directory.write_record(record)
        return stops


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
