"""The training loop: steps, progress, summaries, checkpoints."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert import progress
from official_bert.checkpoints import numbered
from official_bert.errors import InputError
from official_bert.training import distribution, interruption
from official_bert.training.inner_loop import InnerLoop
from official_bert.training.objectives import Batch, Scalars
from official_bert.training.plan import Plan

_SUMMARY_STEPS = 10

# The live line must fit a terminal.
_SHORT = {
    "masked_lm_loss": "mlm",
    "next_sentence_loss": "nsp",
    "sentence_order_loss": "sop",
    "lm_loss": "lm",
    "gradient_norm": "norm",
    "learning_rate": "lr",
}


class DivergedError(InputError):
    """The loss or its gradient is no number any more."""


def train(
    step: Callable[[Batch], Scalars],
    batches: tf.data.Dataset,
    state: Mapping[str, Any],
    plan: Plan,
    strategy: tf.distribute.Strategy,
    is_over: Callable[[int], bool] = lambda number: False,
) -> None:
    """Runs `step` on batch after batch, from the plan's first to its last.

    Args:
        step: Moves the weights once; returns scalars equal on all replicas,
            `loss` and `learning_rate` and `gradient_norm` among them.
        batches: What is left of the data.
        state: {name in a checkpoint: variable}, `global_step` among them.
        plan: Where to and how far.
        strategy: Whose replicas run the step.
        is_over: Called with how many steps were done, a checkpoint saved if one
            was due; may look at the model, and says whether to stop. That is
            after each step, or as often as the plan looks at them.

    Raises:
        DivergedError: The loss or the gradients are no longer finite. Earlier
            checkpoints stay.
        SystemExit: Ctrl-C or SIGTERM asked for it; the step is saved.
    """
    distributed = distribution.deal_out(batches, strategy)
    steps = InnerLoop(step, distributed.element_spec, plan, strategy)
    if plan.first_step >= plan.num_steps:
        logging.info(
            "Nothing is left to train: %d of %d steps are done.",
            plan.first_step,
            plan.num_steps,
        )
    if plan.first_step == 0:
        save(0, state, plan)
    with (
        _summaries(plan) as writer,
        progress.bar(
            description="Training",
            total=plan.num_steps,
            initial=plan.first_step,
            unit="step",
            unit_scale=False,
            disable=not plan.is_chief,
        ) as bar,
        interruption.watched() as asked,
    ):
        data = iter(distributed)
        number = plan.first_step
        while number < plan.num_steps:
            found = steps(data, plan.steps_until_look(number))
            bar.update(len(found))
            for scalars in found:
                number += 1
                _require_finite(number, scalars, plan)
                _report(bar, number, scalars, plan)
            stop = distribution.asked_anywhere(strategy, asked.signal)
            if plan.is_saved(number) or stop:
                save(number, state, plan)
                writer.flush()  # As long as the steps, the curves stay.
            if stop:
                interruption.leave(stop, number, plan.output_dir)
            if is_over(number):
                break
        # Asked while the last checkpoint was written, or measured.
        if stop := distribution.asked_anywhere(strategy, asked.signal):
            interruption.leave(stop, number, plan.output_dir)


@contextlib.contextmanager
def _summaries(plan: Plan) -> Iterator[Any]:
    """Yields what writes TensorBoard's events, on one host; others nothing."""
    writer = (
        tf.summary.create_file_writer(plan.output_dir)
        if plan.is_chief
        else tf.summary.create_noop_writer()
    )
    with contextlib.closing(writer), writer.as_default():
        yield writer


def _require_finite(
    number: int, scalars: Mapping[str, float], plan: Plan
) -> None:
    if scalars.get("loss_scale", 1.0) > 1.0:
        return  # The step was skipped and the scale halved; it may help.
    for name in ("loss", "gradient_norm"):
        if not math.isfinite(scalars[name]):
            raise DivergedError(
                f"The {name} must be finite. Received: {scalars[name]} at step "
                f"{number}. The last checkpoint in {plan.output_dir!r} is from "
                "before; try a lower --learning_rate or a longer warm-up."
            )


def _report(
    bar: Any, number: int, scalars: Mapping[str, float], plan: Plan
) -> None:
    """Shows a step on the live line and, now and then, to TensorBoard."""
    if not plan.is_chief:
        return
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
    """Writes the checkpoint of a step, if this process is to."""
    if not plan.is_chief:
        return
    prefix = numbered.save(
        plan.output_dir,
        step,
        {name: variable.numpy() for name, variable in state.items()},
        numbered.Resume(plan.seed, plan.examples_seen(step)),
        keep=plan.keep,
    )
    logging.info("Saved %s", prefix)
