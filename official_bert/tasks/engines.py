"""Runs an engine, which computes logits, on features of any task."""

from collections.abc import Callable, Sequence

import numpy as np

from official_bert.errors import InputError
from official_bert.inputs import padding
from official_bert.io import progress
from official_bert.tasks.task import Features

# Maps a batch, {feature: int32 or float32 array [B, ...]}, to float32 arrays
# [B, ...]: the logits, and any others.
Engine = Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]]


def require_finite(outputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Returns a model's outputs; raises `InputError` for NaN and infinity."""
    if not all(np.isfinite(output).all() for output in outputs):
        raise InputError(
            "The outputs of the model must be finite numbers. Received: NaN or "
            "infinity. Its weights are damaged, or its training diverged: copy "
            "or train it again."
        )
    return outputs


def run(
    engine: Engine,
    features: Features,
    *,
    max_seq_length: int,
    batch_size: int,
    pad_to: str = "bucket",
    in_parallel: bool = True,
    description: str | None = None,
) -> list[tuple[np.ndarray, ...]]:
    """Returns the outputs for each feature, without a batch dimension.

    Args:
        engine: The model.
        features: The features, in any order of lengths.
        max_seq_length: The length of the longest possible feature.
        batch_size: B, to which every batch is filled up.
        pad_to: "bucket" or "max"; both give the same outputs, up to rounding.
        in_parallel: Whether batches may be computed at the same time, and in
            any order.
        description: The title of a progress bar; None: no bar.
    """
    lengths = [
        padding.padded_length(length, max_seq_length, pad_to)
        for length in features.lengths
    ]

    def compute(indices: list[int]) -> Sequence[np.ndarray]:
        length = lengths[indices[0]]
        return engine(features.batch(indices, length, batch_size))

    outputs: list[tuple[np.ndarray, ...]] = [()] * len(lengths)
    with progress.bar(
        description=description or "",
        total=len(lengths),
        unit=" features",
        disable=description is None,
    ) as bar:
        for indices, arrays in padding.map_batches(
            compute, lengths, batch_size, in_parallel=in_parallel
        ):
            # The last batch has fewer features than rows.
            for index, *values in zip(indices, *arrays, strict=False):
                outputs[index] = tuple(values)
            bar.update(len(indices))
    return outputs
