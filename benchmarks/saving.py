"""How long a checkpoint delays training, and whether its numbers are right.

  python -m benchmarks.saving [MODEL] [ROUNDS] [STEPS]

Measures STEPS steps on one instance: without a checkpoint, after one that the
training waits for, while one is written (until both are done), and without one
again. A delay is the difference to the mean of the first and the last. Waiting
includes copies of all variables to NumPy arrays, as in earlier versions.
"""

import sys
import tempfile
import time
import types
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from benchmarks import step
from official_bert.checkpoints import run_directory, tf1
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay
from official_bert.training import checkpointing
from official_bert.training.objectives import PretrainingObjective
from official_bert.training.step import train_step


def main(model_name: str = "base", rounds: str = "3", steps: str = "8") -> None:
    """Prints a row for each round."""
    cell = step.Cell(model_name, 1, 128)
    model = PretrainingModel(cell.config)
    optimizer = AdamWeightDecay(
        model.trainable_variables, LinearWarmupDecay(1e-4, 1000, 10)
    )
    batch = {name: tf.constant(v) for name, v in step.make_batch(cell).items()}
    objective = PretrainingObjective()
    one_step = tf.function(
        lambda: train_step(model, objective, optimizer, batch, seed=1)["loss"]
    )
    state = {**tf1.by_name(model.trainable_variables), **optimizer.state()}
    one_step().numpy()
    start = checkpointing.StartingPoint(0, 1, 0)

    with tempfile.TemporaryDirectory() as folder:
        options = types.SimpleNamespace(
            is_chief=True,
            output_dir=folder,
            train_batch_size=1,
            keep_checkpoint_max=2,
        )

        def wait_for_checkpoint(step: int) -> None:
            arrays = {n: variable.numpy() for n, variable in state.items()}
            run_directory.save(folder, step, arrays, None, keep=2)

        def seconds(save: Callable[[int], None] | None = None) -> float:
            begin = time.perf_counter()
            if save:
                save(int(optimizer.step.numpy()))
            for _ in range(int(steps)):
                one_step().numpy()
            saver.wait()
            return time.perf_counter() - begin

        print("steps   waiting  background   ratio  equal arrays")
        saver = checkpointing.BackgroundSaver(state, start, options)  # type: ignore[arg-type]
        with saver:
            for _ in range(int(rounds)):
                before = seconds()
                waiting = seconds(wait_for_checkpoint)
                expected = {n: np.array(v.numpy()) for n, v in state.items()}
                background = seconds(saver.save)
                without = (before + seconds()) / 2
                delays = waiting - without, background - without
                prefix = f"{folder}/model.ckpt-{expected['global_step']}"
                reader = tf.train.load_checkpoint(prefix)
                num_equal = sum(
                    np.array_equal(reader.get_tensor(n), array)
                    for n, array in expected.items()
                )
                del expected, reader
                print(
                    f"{without:5.2f} {delays[0]:9.2f} {delays[1]:11.2f} "
                    f"{delays[1] / delays[0]:7.2f}  "
                    f"{num_equal} of {len(state)}",
                    flush=True,
                )


if __name__ == "__main__":
    main(*sys.argv[1:])
