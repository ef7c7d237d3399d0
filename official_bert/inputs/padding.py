"""Rows of different lengths -> batches of one length, with little padding.

A row is {feature: values}, its sequences as long as they really are::

    {"input_ids": [101, 2023, 102], "input_mask": [1, 1, 1],
     "segment_ids": [0, 0, 0], "label_ids": [1]}
"""

import bisect
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from official_bert.inputs.schemas import Schema

Row = Mapping[str, Any]

# Few, because XLA compiles a program for each that occurs; the shorter, the
# denser, so that padding is about the same share of all.
_BUCKETS = (*range(8, 80, 8), *range(80, 192, 16), *range(192, 513, 32))


@functools.cache
def buckets(max_seq_length: int) -> tuple[int, ...]:
    """Returns the lengths that batches are padded to, the longest last."""
    shorter = [length for length in _BUCKETS if length < max_seq_length]
    return (*shorter, max_seq_length)


def padded_length(length: int, max_seq_length: int, pad_to: str) -> int:
    """Returns the length of a batch whose longest sequence has `length`.

    Args:
        length: At most `max_seq_length`.
        max_seq_length: The longest there may be.
        pad_to: `max`, or `bucket` for the next of a few lengths.
    """
    if pad_to == "max":
        return max_seq_length
    sizes = buckets(max_seq_length)
    return sizes[bisect.bisect_left(sizes, length)]


def row_length(row: Row) -> int:
    """Returns the length of a row's sequence, or of the longest of several."""
    mask = row["input_mask"]
    is_nested = len(mask) > 0 and hasattr(mask[0], "__len__")
    return max(map(len, mask)) if is_nested else len(mask)


def batches_by_length(
    lengths: Sequence[int], batch_size: int
) -> list[list[int]]:
    """Returns which rows go together, by their numbers: the long ones first.

    If memory does not suffice, one learns it at once.

    Args:
        lengths: Of all rows; equal ones stay in their order.
        batch_size: How many go together; the last are fewer.
    """
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    return [
        order[start : start + batch_size]
        for start in range(0, len(order), batch_size)
    ]


def pad_batch(
    schema: Schema, rows: Sequence[Row], length: int, batch_size: int
) -> dict[str, np.ndarray]:
    """Stacks rows; those missing to a full batch are all zeros.

    Args:
        schema: Of the rows.
        rows: At most `batch_size`.
        length: What sequences are padded to.
        batch_size: B.

    Returns:
        {feature: int32 or float32 array [B, length]}, or [B, C, length] where a
        row has C sequences.
    """
    batch = {}
    for name, feature in schema.items():
        width = length if feature.is_sequence else feature.length
        kind = np.float32 if feature.is_float else np.int32
        array = np.zeros((batch_size, feature.num_choices, width), kind)
        for number, row in enumerate(rows):
            parts = row[name] if feature.num_choices > 1 else [row[name]]
            for part, values in enumerate(parts):
                array[number, part, : len(values)] = values
        batch[name] = array if feature.num_choices > 1 else array[:, 0]
    return batch
