"""Evaluations on the way: `--eval_every` and `--early_stopping`."""

from collections.abc import Mapping
from typing import Any

from absl import logging

from official_bert.training import measuring, reporting
from official_bert.training.best import Best
from official_bert.training.plan import Plan
from official_bert.training.preparing import Run


class Evaluations:
    """Measures the model of a run while it trains.

    Args:
        run: With the examples `dev`, if the plan has evaluations.
        plan: When to evaluate.
        weights: {name in a checkpoint: variable} of what is kept of the best
            model, `global_step` among them.
    """

    def __init__(
        self, run: Run, plan: Plan, weights: Mapping[str, Any]
    ) -> None:
        self._run = run
        self._plan = plan
        self._weights = weights
        self._metric = run.task.main_metric
        self._best = Best(
            plan.output_dir, self._metric, plan.first_step, plan.is_chief
        )
        # Made once: it keeps its compiled functions.
        self._forward = measuring.make_forward(run, run.options.eval_batch_size)

    def is_over(self, step: int) -> bool:
        """Measures the model if that is due; says whether to stop early.

        Args:
            step: How many steps were done.
        """
        if self._plan.is_evaluated(step) and not self._best.has(step):
            self._evaluate(step)
        patience = self._run.options.early_stopping
        stops = 0 < patience <= self._best.evaluations_without_gain()
        if stops:
            logging.info("Stopped early, after step %d", step)
        return stops

    def _evaluate(self, step: int) -> None:
        results = {
            "global_step": step,
            **measuring.evaluate(self._run, self._forward, in_the_end=False),
        }
        self._best.add(results, self._weights)
        reporting.write_summary(
            self._run.folder, reporting.lines_of_2018(results, self._metric)
        )
