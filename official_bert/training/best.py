"""The best model of a run, by evaluations while it trains."""

import json
import os
from collections.abc import Mapping
from typing import Any

from absl import logging

from official_bert import files
from official_bert.checkpoints import numbered
from official_bert.errors import InputError

_HISTORY = "eval_history.jsonl"


class Best:
    """Keeps what was measured, and the weights that did best.

    Every line of `eval_history.jsonl` is one evaluation; the weights are in the
    folder `best`. A run that goes on finds the lines as they were at its
    checkpoint; the weights may be of a later step, to which it comes again.

    Args:
        output_dir: Of the run.
        metric: What is compared; higher is better.
        step: At which the run goes on. What was measured later is forgotten.
        is_chief: Whether this process is the one that keeps it on disk.
    """

    def __init__(
        self, output_dir: str, metric: str, step: int, is_chief: bool = True
    ) -> None:
        self._output_dir = output_dir
        self._is_chief = is_chief
        self._metric = metric
        self._history = [
            entry
            for entry in _read(os.path.join(output_dir, _HISTORY))
            if entry["global_step"] <= step
        ]

    def add(
        self, results: Mapping[str, Any], weights: Mapping[str, Any]
    ) -> None:
        """Notes an evaluation, and keeps the weights if none was better.

        Args:
            results: Of the evaluation, `global_step` among them.
            weights: {name in a checkpoint: variable}, with `global_step`.
        """
        entry = {
            name: value
            for name, value in results.items()
            if isinstance(value, (int, float))
        }
        before = [earlier[self._metric] for earlier in self._history]
        is_best = not before or entry[self._metric] > max(before)
        self._history.append(entry)
        if self._is_chief:
            if is_best:
                self._keep(results["global_step"], weights)
            files.write_text(
                os.path.join(self._output_dir, _HISTORY),
                "".join(json.dumps(line) + "\n" for line in self._history),
            )
        logging.info(
            "Step %d: %s = %.4f",
            entry["global_step"],
            self._metric,
            entry[self._metric],
        )

    def _keep(self, step: int, weights: Mapping[str, Any]) -> None:
        folder = os.path.join(self._output_dir, files.BEST_DIRECTORY)
        files.make_directory(folder)
        numbered.save(
            folder,
            step,
            {name: weight.numpy() for name, weight in weights.items()},
            resume=None,
            keep=1,
        )

    def has(self, step: int) -> bool:
        """Whether there is an evaluation of a step, by an earlier run."""
        return any(entry["global_step"] == step for entry in self._history)

    def evaluations_without_gain(self) -> int:
        """Returns how many evaluations there were after the best one."""
        values = [entry[self._metric] for entry in self._history]
        return len(values) - 1 - values.index(max(values)) if values else 0


def _read(path: str) -> list[dict[str, Any]]:
    if not files.exists(path):
        return []
    entries = []
    for number, line in enumerate(files.read_lines(path), start=1):
        try:
            entries.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path}:{number}: must be as training wrote it. {error}. "
                "Remove the file to forget earlier evaluations."
            ) from error
    return entries
