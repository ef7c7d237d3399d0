"""The training loop: steps, progress, summaries, checkpoints."""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert import progress
from official_bert.checkpoints import numbered
from official_bert.errors import InputError
from official_bert.options.training import Training
from official_bert.training import distribution
from official_bert.training.objectives import Batch, Scalars

_SUMMARY_STEPS = 10

# The live line must fit a terminal.
_SHORT = {
    "masked_lm_loss": "mlm",
    "next_sentence_loss": "nsp",
    "gradient_norm": "norm",
    "learning_rate": "lr",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """How far a run goes and what it leaves behind.

    Attributes:
        output_dir: Where checkpoints and TensorBoard events go.
        num_steps: The step at which it ends.
        batch_size: Examples per step, over all replicas.
        save_steps: Steps between checkpoints.
        eval_every: Steps between evaluations, each of which needs a checkpoint;
            0 for none.
        keep: How many checkpoints to keep.
        seed: Of the order of examples and of dropout.
        first_step: The step at which it starts.
        first_example: How many examples were seen until then.
    """

    output_dir: str
    num_steps: int
    batch_size: int
    save_steps: int
    eval_every: int = 0
    keep: int
    seed: int
    first_step: int
    first_example: int

    @classmethod
    def make(
        cls,
        options: Training,
        num_steps: int,
        first_step: int,
        resumed: numbered.Resume,
        eval_every: int = 0,
    ) -> "Plan":
        """Returns the plan of a run that starts or goes on.

        Args:
            options: Of the run.
            num_steps: The step at which it ends.
            first_step: The step at which it starts.
            resumed: Where in the data.
            eval_every: Steps between evaluations.
        """
        return cls(
            output_dir=options.output_dir,
            num_steps=num_steps,
            batch_size=options.train_batch_size,
            save_steps=options.save_checkpoints_steps,
            eval_every=eval_every,
            keep=options.keep_checkpoint_max,
            seed=resumed.seed,
            first_step=first_step,
            first_example=resumed.examples_seen,
        )

    def is_saved(self, step: int) -> bool:
        """Whether there is a checkpoint of `step`."""
        return (
            step % self.save_steps == 0
            or step == self.num_steps
            or self.is_evaluated(step)
        )

    def is_evaluated(self, step: int) -> bool:
        """Whether the model is measured after `step`: in the end as well."""
        return bool(self.eval_every) and (
            step % self.eval_every == 0 or step == self.num_steps
        )

    def examples_seen(self, step: int) -> int:
        """Returns how many examples were seen when `step` is done."""
        return self.first_example + (step - self.first_step) * self.batch_size


def train(
    step: Callable[[Batch], Scalars],
    batches: tf.data.Dataset,
    state: Mapping[str, Any],
    plan: Plan,
    strategy: tf.distribute.Strategy,
) -> Iterator[int]:
    """Runs `step` on batch after batch, from the plan's first to its last.

    It yields between steps, so that its caller can look at the model, or stop.

    Args:
        step: Moves the weights once; returns scalars equal on all replicas,
            `loss` and `learning_rate` and `gradient_norm` among them.
        batches: What is left of the data.
        state: {name in a checkpoint: variable}, `global_step` among them.
        plan: Where to and how far.
        strategy: Whose replicas run the step.

    Yields:
        How many steps were done, after each, its checkpoint saved if one was
        due.

    Raises:
        InputError: The loss or the gradients are no longer finite. Earlier
            checkpoints stay.
    """
    distributed = strategy.experimental_distribute_dataset(batches)
    # Once for batches of all lengths; a trace for each would take long.
    compiled = tf.function(
        lambda batch: strategy.run(step, args=(batch,)),
        input_signature=[distributed.element_spec],
    )
    if plan.first_step == 0:
        save(0, state, plan)
    writer = tf.summary.create_file_writer(plan.output_dir)
    with (
        contextlib.closing(writer),
        writer.as_default(),
        progress.bar(
            description="Training",
            total=plan.num_steps,
            initial=plan.first_step,
            unit="step",
            unit_scale=False,
        ) as bar,
    ):
        data = iter(distributed)
        for number in range(plan.first_step + 1, plan.num_steps + 1):
            scalars = _host(strategy, compiled(next(data)))
            _require_finite(number, scalars, plan)
            _report(bar, number, scalars, plan)
            if plan.is_saved(number):
                save(number, state, plan)
            yield number


def _host(
    strategy: tf.distribute.Strategy, scalars: Scalars
) -> dict[str, float]:
    """Brings one replica's scalars to Python."""
    return {
        name: float(value)
        for name, value in distribution.first(strategy, scalars).items()
    }


def _require_finite(
    number: int, scalars: Mapping[str, float], plan: Plan
) -> None:
    for name in ("loss", "gradient_norm"):
        if not math.isfinite(scalars[name]):
            raise InputError(
                f"The {name} must be finite. Received: {scalars[name]} at step "
                f"{number}. The last checkpoint in {plan.output_dir!r} is from "
                "before; try a lower --learning_rate or a longer warm-up."
            )


def _report(
    bar: Any, number: int, scalars: Mapping[str, float], plan: Plan
) -> None:
    """Shows a step on the live line and, now and then, to TensorBoard."""
    bar.update()
    done = bar.format_dict["n"] - bar.initial
    speed = done * plan.batch_size / max(bar.format_dict["elapsed"], 1e-9)
    shown = [
        f"{_SHORT.get(name, name)} {value:.3g}"
        for name, value in scalars.items()
    ]
    bar.set_postfix_str(
        " ".join([*shown, f"{speed:.1f} examples/s"]), refresh=False
    )
    if number % _SUMMARY_STEPS == 0 or number == plan.num_steps:
        for name, value in scalars.items():
            tf.summary.scalar(name, value, step=number)
        tf.summary.scalar("examples_per_second", speed, step=number)


def save(step: int, state: Mapping[str, Any], plan: Plan) -> None:
    """Writes the checkpoint of a step."""
    prefix = numbered.save(
        plan.output_dir,
        step,
        {name: variable.numpy() for name, variable in state.items()},
        numbered.Resume(plan.seed, plan.examples_seen(step)),
        keep=plan.keep,
    )
    logging.info("Saved %s", prefix)
