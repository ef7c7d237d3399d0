"""How long a checkpoint delays training, and whether its numbers are right.

  python -m benchmarks.saving [MODEL] [ROUNDS] [STEPS]

Measures STEPS steps four times: without a checkpoint, after waiting for a
checkpoint, while a checkpoint is written in the background (until both are
done), and without a checkpoint again. A delay is the difference from the mean
of the two measurements without a checkpoint. README.md describes the columns.
"""

import sys
import tempfile
import time
import types
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from benchmarks import step
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.runs import checkpoints
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.training import checkpointing
from official_bert.training.objectives import PretrainingObjective


def main(model_name: str = "base", rounds: str = "3", steps: str = "8") -> None:
    cell = step.Cell(model_name, 1, 128)
    model = PretrainingModel(cell.config)
    optimizer, train = step.training_step(model, PretrainingObjective())
    batch = {name: tf.constant(v) for name, v in step.make_batch(cell).items()}
    state = {**tf1.by_name(model.trainable_variables), **optimizer.state()}
    train(batch)
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
            checkpoints.save(folder, step, arrays, None, keep=2)

        def seconds(save: Callable[[int], None] | None = None) -> float:
            begin = time.perf_counter()
            if save:
                save(int(optimizer.step.numpy()))
            for _ in range(int(steps)):
                train(batch)["loss"].numpy()
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
