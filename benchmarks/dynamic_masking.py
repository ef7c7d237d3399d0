r"""Seconds of a pre-training step on static and on dynamic records.

  python -m benchmarks.dynamic_masking [CELL...]

Steps of both kinds alternate, so that other load on the machine affects both
equally. README.md describes the columns.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from benchmarks.step import CELLS, Cell, make_batch, training_step
from official_bert.inputs.schemas import Masking
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.training.objectives import PretrainingObjective

# Tokens per word on average in English text, and the largest n-gram.
KINDS = {"tokens": (1.0, 1), "words": (1.25, 1), "3-grams": (1.25, 3)}
NUM_WARM, NUM_STEPS = 5, 60


def unmasked_batch(cell: Cell, tokens_per_word: float) -> dict[str, Any]:
    """Returns a batch of `unmasked_schema` with words of random lengths."""
    rng = np.random.default_rng(0)
    shape = cell.batch_size, cell.length
    is_start = rng.random(shape) < 1 / tokens_per_word
    is_start[:, 1] = True
    starts = np.where(is_start, np.arange(cell.length), 0)
    starts = np.maximum.accumulate(starts, axis=1)
    starts[:, [0, cell.length // 2, -1]] = 0  # [CLS] and [SEP].
    batch = {
        name: values
        for name, values in make_batch(cell).items()
        if not name.startswith("masked_lm_")
    }
    counts = np.full((cell.batch_size, 1), cell.num_predictions, np.int32)
    return {
        **batch,
        "word_starts": starts.astype(np.int32),
        "num_to_predict": counts,
    }


def make_step(
    cell: Cell, batch: dict[str, Any], masking: Masking | None
) -> Callable[[], float]:
    """Returns a function that trains a step and returns its seconds."""
    keras.utils.set_random_seed(0)
    _, step = training_step(
        PretrainingModel(cell.config), PretrainingObjective(masking=masking)
    )
    tensors = {name: tf.constant(values) for name, values in batch.items()}

    def run() -> float:
        start = time.perf_counter()
        step(tensors)["loss"].numpy()
        return time.perf_counter() - start

    return run


def main(*cells: str) -> None:
    print("model     kind       static  dynamic   cost")
    for name in cells or ("tiny", "mini"):
        cell = CELLS[name]
        static = make_step(cell, make_batch(cell), None)
        for kind, (tokens_per_word, max_ngram) in KINDS.items():
            size = cell.config.vocab_size
            masking = Masking(
                cell.num_predictions, max_ngram, 103, size, 0.8, 0.1
            )
            batch = unmasked_batch(cell, tokens_per_word)
            dynamic = make_step(cell, batch, masking)
            for _ in range(NUM_WARM):
                static(), dynamic()
            pairs = [(static(), dynamic()) for _ in range(NUM_STEPS)]
            before, after = map(statistics.median, zip(*pairs, strict=True))
            cost = statistics.median(b - a for a, b in pairs) / before
            print(
                f"{name:10}{kind:10}{before:7.4f}{after:9.4f}{cost:7.1%}",
                flush=True,
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
