"""How far a run goes and what it leaves behind."""

import dataclasses

import tensorflow as tf

from official_bert.checkpoints import numbered
from official_bert.options.training import TrainingOptions
from official_bert.training import distribution


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
        steps_per_call: How many steps to make between two looks at them.
        jit_compile: Whether XLA compiles the step, all of it where there is
            one replica.
        is_static: Whether batches of every length have a program of their own.
        is_chief: Whether this process is the one that leaves anything behind.
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
    steps_per_call: int = 1
    jit_compile: bool = False
    is_static: bool = False
    is_chief: bool = True

    @classmethod
    def make(
        cls,
        options: TrainingOptions,
        num_steps: int,
        first_step: int,
        resumed: numbered.Resume,
        strategy: tf.distribute.Strategy,
        eval_every: int = 0,
    ) -> "Plan":
        """Returns the plan of a run that starts or goes on.

        Args:
            options: Of the run.
            num_steps: The step at which it ends.
            first_step: The step at which it starts.
            resumed: Where in the data.
            strategy: On which devices.
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
            steps_per_call=options.steps_per_call,
            jit_compile=options.jit_compile,
            is_static=options.jit_compile or options.resolved_strategy == "tpu",
            is_chief=distribution.is_chief(strategy),
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

    def steps_until_look(self, step: int) -> int:
        """Returns how many steps to make at once after `step`.

        None goes beyond a checkpoint, an evaluation or the end.
        """
        ends = [self.num_steps, step + self.steps_per_call]
        for every in filter(None, (self.save_steps, self.eval_every)):
            ends.append((step // every + 1) * every)
        return min(ends) - step
