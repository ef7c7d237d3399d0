"""What happens around the training loop, in pre-training and fine-tuning."""

import contextlib
import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, Protocol

import tensorflow as tf
from absl import logging

from official_bert import plots
from official_bert.inputs.records import RecordFiles
from official_bert.options.training import TrainingOptions
from official_bert.training import checkpointing, distribution, loop, resuming
from official_bert.training.checkpointing import StartingPoint
from official_bert.training.eval_history import EvalHistory


class TrainingData(NamedTuple):
    """The records that a run trains on."""

    records: RecordFiles
    num_examples: int = 0  # In an epoch. Pre-training counts steps only.


class TrainingRun(Protocol):
    """The part of a run that differs between pre-training and fine-tuning.

    Attributes:
        options: The options of the command.
        strategy: The devices and hosts that train.
        resumed: The checkpoint that training resumes from, if any.
        keeps_best: Whether `best/` keeps the weights of the best evaluation.
    """

    options: Any
    strategy: tf.distribute.Strategy
    resumed: str | None
    keeps_best: ClassVar[bool]

    @property
    def main_metric(self) -> str:
        """The metric that decides which evaluation is the best."""

    def measure(self, step: int) -> dict[str, Any]:
        """Evaluates the weights after a step, and writes TensorBoard events.

        Returns {name: value} with `global_step` and the main metric.
        """

    def load_initial(self) -> None:
        """Loads the weights of `init_checkpoint`, if it is set."""

    def training_data(self) -> TrainingData:
        """Returns the training data; writes its records if necessary."""

    def make_trainer(self, data: TrainingData) -> loop.Trainer:
        """Returns the model, the weights to train and their schedule."""

    def batches(
        self, data: TrainingData, start: StartingPoint, num_steps: int
    ) -> tf.data.Dataset:
        """Returns the batches from the starting point to the last step."""

    def data_files(self) -> dict[str, list[str]]:
        """Returns the files whose fingerprints are in the run's record."""

    def model_texts(self) -> dict[str, str]:
        """Returns {name: text} of the files that describe the model."""


@contextlib.contextmanager
def run_context(options: TrainingOptions) -> Iterator[None]:
    """Locks the output directory, reports lost hosts, finally draws plots.

    Runs that do not train and hosts other than the chief take no lock.
    """
    lock: Any = contextlib.nullcontext()
    if options.do_train and options.is_chief:
        lock = options.run_directory.lock()
    with lock, distribution.reporting_lost_hosts(options):
        yield
        if options.plots and options.is_chief:
            plots.write(options.output_dir)


def fit(run: TrainingRun) -> int:
    """Trains from the newest checkpoint, or from the start of the run.

    Returns the last step. Raises `SystemExit` on a signal to stop, after
    saving a checkpoint, and `InputError` if training diverges, or if changed
    options would have no effect because no step is left.
    """
    options = run.options
    if not run.resumed:
        # Before writing records, which may take much longer.
        run.load_initial()
    data = run.training_data()
    trainer = run.make_trainer(data)
    num_steps = trainer.schedule.num_train_steps
    _warn_of_few_evaluations(run, num_steps)
    start = StartingPoint(0, options.seed, 0)
    if run.resumed:
        start = checkpointing.resume(trainer.state, options)
    distribution.require_equal_start(
        run.strategy, options, start.seed, trainer.state
    )
    # The order of examples depends on TensorFlow's global seed too.
    checkpointing.set_seed(start.seed)
    if options.overwrite_output_dir:
        options.run_directory.remove_model()
    weights = {**trainer.weights, "global_step": trainer.optimizer.step}
    history = EvalHistory(run, start.step, num_steps, weights)
    is_finished = _is_finished(run, start.step, num_steps, history)
    if options.is_chief:
        resuming.write_run_files(
            options,
            start.seed,
            num_steps,
            run.data_files(),
            run.model_texts(),
            only_missing=is_finished,
        )
    if is_finished:
        return start.step
    loop.train(trainer, run.batches(data, start, num_steps), start, history)
    return int(trainer.optimizer.step.numpy())


def _is_finished(
    run: TrainingRun, step: int, num_steps: int, history: EvalHistory
) -> bool:
    """Evaluates the resumed step if still missing; True if no step is left.

    An earlier run may have ended between a checkpoint and its evaluation.
    """
    done = f"{step} of {num_steps}"
    is_last = step >= num_steps
    if is_last:  # Before an evaluation, which would write files.
        resuming.require_same_steps(run.options, f"{done} are done")
    if history.is_due(step):
        history.evaluate(step)
    stops_early = history.stops_early(step)
    if stops_early and not is_last:
        patience = f"--early_stopping={run.options.early_stopping}"
        reason = f"{patience} ends it at step {step}; larger values continue it"
        resuming.require_same_steps(run.options, reason)
    if is_last or stops_early:
        logging.info(f"Nothing to train: step {done}.")
    return is_last or stops_early


def _warn_of_few_evaluations(run: TrainingRun, num_steps: int) -> None:
    every, patience = run.options.eval_every, run.options.early_stopping
    if not every:
        return
    num_evaluations = math.ceil(num_steps / every)
    if num_evaluations == 1:
        logging.warning(
            f"With --eval_every={every} and {num_steps} training steps, there "
            "is a single evaluation, at the end"
        )
    elif num_evaluations <= patience + 1:
        logging.warning(
            f"--early_stopping={patience} has no effect: {num_steps} "
            f"training steps have only {num_evaluations} evaluations. Lower "
            "--eval_every"
        )
