"""Pads sequences of different lengths to batches of one length."""

import bisect
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from official_bert.inputs.schemas import Schema
from official_bert.io.pools import parallel_map

# {feature: values} of an example, with sequences of their real length.
Unpadded = Mapping[str, Any]

# Few lengths, because XLA compiles kernels for each. Short ones are closer
# together, so that the share of padding is about the same for all.
_BUCKETS = (
    *range(6, 32, 2),
    *range(32, 64, 4),
    *range(64, 128, 8),
    *range(128, 256, 16),
    *range(256, 513, 32),
)


@functools.cache
def buckets(max_seq_length: int) -> tuple[int, ...]:
    """Returns the lengths that batches are padded to, in ascending order."""
    shorter = [length for length in _BUCKETS if length < max_seq_length]
    return (*shorter, max_seq_length)


def padded_length(length: int, max_seq_length: int, pad_to: str) -> int:
    """Returns the smallest bucket that fits, or `max_seq_length` for "max"."""
    if pad_to == "max":
        return max_seq_length
    sizes = buckets(max_seq_length)
    return sizes[bisect.bisect_left(sizes, length)]


def row_length(row: Unpadded) -> int:
    """Returns the sequence length of an example, or of its longest choice."""
    mask = row["input_mask"]
    is_nested = len(mask) > 0 and hasattr(mask[0], "__len__")
    return max(map(len, mask)) if is_nested else len(mask)


def map_by_length(
    function: Callable[[list[int]], Iterable[Any]],
    lengths: Sequence[int],
    batch_size: int,
    *,
    in_parallel: bool = True,
    on_batch: Callable[[int], object] = lambda _: None,
) -> list[Any]:
    """Applies a function to batches of similar length, by default in threads.

    The longest examples are first, so that insufficient memory is noticed at
    once. Equal lengths keep their order; the last batch may be smaller.
    `function` returns a result for each of the examples with the given indices;
    more results, for the padding of a batch, are ignored. `on_batch` is called
    with the size of each batch that is finished. Returns all results, in the
    order of the examples.
    """
    order = np.argsort(np.negative(lengths), kind="stable").tolist()
    starts = range(0, len(order), batch_size)
    batches = [order[start : start + batch_size] for start in starts]
    results: list[Any] = [None] * len(lengths)
    mapped = parallel_map if in_parallel else map
    for indices, found in zip(batches, mapped(function, batches), strict=True):
        for index, result in zip(indices, found, strict=False):
            results[index] = result
        on_batch(len(indices))
    return results


def pad_batch(
    schema: Schema, rows: Sequence[Unpadded], length: int, batch_size: int
) -> dict[str, np.ndarray]:
    """Stacks at most B = `batch_size` examples; fills up the batch with zeros.

    Returns {feature: int32 or float32 array [B, length]}, or [B, C, length]
    with C choices.
    """
    batch = {}
    for name, feature in schema.items():
        width = length if feature.is_sequence else feature.length
        dtype = np.float32 if feature.is_float else np.int32
        array = np.zeros((batch_size, feature.num_choices, width), dtype)
        for index, row in enumerate(rows):
            choices = row[name] if feature.num_choices > 1 else [row[name]]
            for choice, values in enumerate(choices):
                array[index, choice, : len(values)] = values
        batch[name] = array if feature.num_choices > 1 else array[:, 0]
    return batch
