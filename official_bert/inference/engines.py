"""Runs an engine, which computes logits, on features of any task."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np

from official_bert.errors import InputError
from official_bert.inputs import padding
from official_bert.inputs.padding import Unpadded
from official_bert.inputs.schemas import Feature
from official_bert.io import progress
from official_bert.tasks.task import Features

# Maps a batch, {feature: int32 or float32 array [B, ...]}, to float32 arrays
# [B, ...]: the logits, and any others.
Engine = Callable[[dict[str, np.ndarray]], Sequence[np.ndarray]]


class EngineUser:
    """Base of classes with an engine, which exists only in this process."""

    def __reduce__(self) -> NoReturn:
        """Raises `TypeError`: `pickle` and `copy` cannot copy an engine."""
        name = type(self).__name__
        raise TypeError(
            f"a {name} cannot be pickled or copied. Keep the directory of its "
            f"model, and load it with {name}.from_pretrained(directory), also "
            "in other processes."
        )


class NotFiniteError(InputError):
    """Outputs of a model are NaN or infinite: the model is at fault."""


def require_finite(outputs: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Returns a model's outputs; see `NotFiniteError`."""
    if not all(np.isfinite(output).all() for output in outputs):
        raise NotFiniteError(
            "The outputs of the model must be finite numbers. Received: NaN or "
            "infinity. Its weights are damaged, or its training diverged: copy "
            "or train it again."
        )
    return outputs


def batch_size_for(num_features: int, limit: int) -> int:
    """Returns a batch size for a number of features, at most `limit`.

    Every batch is filled up, so few features need a smaller one. A new size can
    take time to compile, so all sizes below the limit are powers of two.
    """
    return min(1 << (num_features - 1).bit_length(), limit)


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

    def compute(indices: list[int]) -> Iterable[tuple[np.ndarray, ...]]:
        length = lengths[indices[0]]
        outputs = engine(features.batch(indices, length, batch_size))
        return zip(*outputs, strict=True)

    with progress.bar(
        description=description or "",
        total=len(lengths),
        unit=" features",
        disable=description is None,
    ) as bar:
        return padding.map_by_length(
            compute,
            lengths,
            batch_size,
            in_parallel=in_parallel,
            on_batch=bar.update,
        )


def run_rows(
    engine: Engine,
    rows: Sequence[Unpadded],
    batch_size: int,
    finish: Callable[[Sequence[np.ndarray], Any], Iterable[Any]],
) -> list[Any]:
    """Runs an engine on batches of similar length, padded to their longest row.

    `finish` is called with the outputs and the inputs of a batch, and returns a
    result for each row. Returns the results of all rows, in their order.
    """

    def run_batch(indices: list[int]) -> Iterable[Any]:
        own = [rows[index] for index in indices]
        schema = {
            name: Feature(max(len(row[name]) for row in own)) for name in own[0]
        }
        batch = padding.pad_batch(schema, own, 0, len(own))
        return finish(engine(batch), batch)

    lengths = list(map(padding.row_length, rows))
    return padding.map_by_length(run_batch, lengths, batch_size)
