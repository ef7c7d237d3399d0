"""The training loop: steps, progress, TensorBoard events, checkpoints."""

import contextlib
import dataclasses
import math
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import tensorflow as tf
from absl import logging

from official_bert.errors import InputError
from official_bert.io import progress
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.lamb import Lamb
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.options.training import TrainingOptions
from official_bert.runs import file_names
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.training import checkpointing, distribution, interruption
from official_bert.training.eval_history import EvalHistory
from official_bert.training.objectives import Objective, Scalars
from official_bert.training.precision import LossScale
from official_bert.training.step import TrainingStep

_SUMMARY_STEPS = 10  # Steps between TensorBoard events.

# Names in the progress line, which must fit a terminal.
_SHORT_NAMES = {
    "masked_lm_loss": "mlm",
    "next_sentence_loss": "nsp",
    "sentence_order_loss": "sop",
    "lm_loss": "lm",
    "gradient_norm": "norm",
    "learning_rate": "lr",
}


@dataclasses.dataclass
class Trainer:
    """Everything that a training step needs. Creates the optimizer.

    `trained` are the variables to train; all others keep their values.
    `rate_scales` is {path of a weight: factor of its learning rate}. For
    `removes_padding` see `TrainingStep`.
    """

    model: Any
    objective: Objective
    trained: Sequence[Any]
    schedule: LinearWarmupDecay
    options: TrainingOptions
    strategy: tf.distribute.Strategy
    rate_scales: Mapping[str, float] = dataclasses.field(default_factory=dict)
    removes_padding: bool = False

    def __post_init__(self) -> None:
        is_lamb = self.options.optimizer == "lamb"
        is_float16 = self.options.mixed_precision == "float16"
        with self.strategy.scope():
            self.optimizer = (Lamb if is_lamb else AdamWeightDecay)(
                self.trained,
                self.schedule,
                corrects_bias=is_lamb or self.options.adam_bias_correction,
                rate_scales=self.rate_scales,
            )
            self.loss_scale = LossScale() if is_float16 else None

    @property
    def weights(self) -> dict[str, Any]:
        """{name in a checkpoint: variable} of the model, with frozen ones."""
        return tf1.by_name(self.model.trainable_variables)

    @property
    def state(self) -> dict[str, Any]:
        """{name in a checkpoint: variable} of all that a checkpoint stores."""
        scale = self.loss_scale.state() if self.loss_scale else {}
        return {**self.weights, **self.optimizer.state(), **scale}


def train(
    trainer: Trainer,
    batches: tf.data.Dataset,
    start: checkpointing.StartingPoint,
    history: EvalHistory,
) -> None:
    """Trains on batches from the starting point to the last step.

    Evaluations follow checkpoints and can end training early. On a signal to
    stop, saves a checkpoint and raises `SystemExit`. Raises `InputError` if the
    loss or the gradient is not finite.
    """
    options, strategy = trainer.options, trainer.strategy
    intervals = [options.save_checkpoints_steps]
    if options.eval_every:
        intervals.append(options.eval_every)
    step, num_steps = start.step, trainer.schedule.num_train_steps
    sharded = distribution.shard_batches(batches, strategy)
    runner = StepRunner(trainer, start.seed, sharded.element_spec)
    with (
        _event_writer(options) as writer,
        progress.bar(
            description="Training",
            total=num_steps,
            initial=step,
            unit="step",
            disable=not options.is_chief,
        ) as bar,
        interruption.watched() as received,
        checkpointing.BackgroundSaver(trainer.state, start, options) as saver,
    ):
        if step == 0:
            saver.save(step)
        data = iter(sharded)
        while step < num_steps:
            # A call must end where a checkpoint or an evaluation is due.
            ends = [num_steps, step + options.steps_per_call]
            ends += [(step // every + 1) * every for every in intervals]
            results = runner.run(data, min(ends) - step)
            _check_and_report(bar, step, results, options)
            step += len(results)
            saver.raise_error()
            stop = distribution.stop_requested(strategy, received.signal)
            is_due = any(step % every == 0 for every in intervals)
            if stop or step == num_steps or is_due:
                writer.flush()  # Curves must not lag behind checkpoints.
                saver.save(step)
            if stop:
                break
            if history.is_due(step):
                saver.wait()
                history.evaluate(step)
                if history.stops_early(step):
                    break
        saver.wait()
        # A signal may also arrive while a checkpoint is saved or evaluated.
        stop = distribution.stop_requested(strategy, received.signal)
    if stop:
        path = options.run_directory.file(file_names.checkpoint(step))
        _exit(stop, f"after step {step} of {num_steps}, saved as {path}")


def _exit(received: str, when: str) -> NoReturn:
    """Ends the process after a signal, whose name is `received`."""
    logging.info(
        f"Stopped by {received} {when}. Run the same command again to resume."
    )
    # As a shell reports it. Another host may have received the signal.
    number = signal.Signals.__members__.get(received, signal.SIGTERM)
    sys.exit(128 + number)


@contextlib.contextmanager
def _event_writer(options: TrainingOptions) -> Iterator[Any]:
    """Writes TensorBoard events to `output_dir`, on the chief."""
    writer = tf.summary.create_noop_writer()
    if options.is_chief:
        writer = tf.summary.create_file_writer(options.output_dir)
    with contextlib.closing(writer), writer.as_default():
        yield writer


class StepRunner:
    """Runs compiled training steps on all replicas.

    `seed` is the seed of dropout, `batch_spec` the element spec of the batches.
    """

    def __init__(self, trainer: Trainer, seed: int, batch_spec: Any) -> None:
        self._strategy = trainer.strategy
        options = trainer.options
        # XLA cannot compile the sums over several GPUs or CPUs. There,
        # `--jit_compile` compiles only the part before them. On TPUs,
        # `strategy.run` compiles everything.
        is_single_replica = trainer.strategy.num_replicas_in_sync == 1
        self._step = TrainingStep(
            trainer.model,
            trainer.objective,
            trainer.optimizer,
            seed,
            num_micro_batches=options.gradient_accumulation_steps,
            loss_scale=trainer.loss_scale,
            recomputes_layers=options.remat,
            compiles_gradients=options.jit_compile and not is_single_replica,
            removes_padding=trainer.removes_padding,
        )
        is_tpu = options.resolved_strategy == "tpu"
        # XLA and TPUs need static shapes, so each batch length is traced
        # separately. A loop inside TensorFlow cannot choose among traces.
        specs = tf.nest.flatten(batch_spec, expand_composites=True)
        has_many_traces = (options.jit_compile or is_tpu) and not all(
            spec.shape.is_fully_defined() for spec in specs
        )
        self._loops_inside = options.steps_per_call > 1 and not has_many_traces
        self._one_step = tf.function(
            self._run_step,
            input_signature=None if has_many_traces else [batch_spec],
            autograph=False,
            jit_compile=options.jit_compile and is_single_replica,
        )
        self._many_steps = tf.function(self._run_steps, autograph=False)

    def run(
        self, batches: Iterator[Any], num_steps: int
    ) -> list[dict[str, float]]:
        """Runs steps; returns the scalars of each."""
        if not self._loops_inside:
            # All steps are started before `float` waits for the first result.
            results = [self._one_step(next(batches)) for _ in range(num_steps)]
            return [tf.nest.map_structure(float, step) for step in results]
        scalars = self._many_steps(batches, tf.constant(num_steps))
        columns = {name: column.numpy() for name, column in scalars.items()}
        return [
            {name: float(column[i]) for name, column in columns.items()}
            for i in range(num_steps)
        ]

    def _run_step(self, batch: Any) -> Scalars:
        scalars = self._strategy.run(self._step.run, args=(batch,))
        return distribution.first_replica(self._strategy, scalars)

    def _run_steps(self, batches: Any, num_steps: Any) -> Scalars:
        """Returns {name: Tensor [num_steps]}."""
        outputs = self._one_step.get_concrete_function().structured_outputs
        return tf.map_fn(
            lambda _: self._one_step(next(batches)),
            tf.range(num_steps),
            parallel_iterations=1,
            fn_output_signature={k: v.dtype for k, v in outputs.items()},
        )


def _check_and_report(
    bar: Any,
    step: int,
    results: Sequence[Mapping[str, float]],
    options: TrainingOptions,
) -> None:
    """Reports the results of the steps after `step`.

    Raises `InputError` if a loss or a gradient is not finite.
    """
    bar.update(len(results))
    for number, scalars in enumerate(results, start=step + 1):
        # With a scale above 1, the step was skipped, and the scale halved.
        was_skipped = scalars.get("loss_scale", 1.0) > 1.0
        for name in ("loss", "gradient_norm"):
            if not (was_skipped or math.isfinite(scalars[name])):
                raise InputError(
                    f"The {name} must be finite. Received: {scalars[name]} at "
                    f"step {number}. The checkpoints in {options.output_dir!r} "
                    "are from earlier steps. Train again, with "
                    "--overwrite_output_dir and a lower --learning_rate or a "
                    "longer warm-up."
                )
        if options.is_chief:
            _report(bar, number, scalars, options.train_batch_size)


def _report(
    bar: Any, step: int, scalars: Mapping[str, float], batch_size: int
) -> None:
    """Shows a step in the progress line and, at intervals, in TensorBoard."""
    num_steps = bar.format_dict["n"] - bar.initial
    speed = num_steps * batch_size / max(bar.format_dict["elapsed"], 1e-9)
    shown = [
        f"{_SHORT_NAMES.get(name, name)} {value:.3g}"
        for name, value in scalars.items()
    ]
    shown.append(f"{speed:.1f} examples/s")
    bar.set_postfix_str(" ".join(shown), refresh=False)
    if step % _SUMMARY_STEPS == 0 or step == bar.total:
        for name, value in scalars.items():
            tf.summary.scalar(name, value, step=step)
        tf.summary.scalar("examples_per_second", speed, step=step)
