"""Masked sequences to record files."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from absl import logging

from official_bert import files
from official_bert.errors import InputError
from official_bert.inputs import tfrecords
from official_bert.inputs.tfrecords import encode_examples
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import packing
from official_bert.pretraining_data.examples import Columns

# Sequences in an array: more take more memory than the processor has nearby.
ROWS_AT_ONCE = 512


class Part(NamedTuple):
    """Some records.

    Attributes:
        data: What to add to each output file.
        num_records: How many there are.
        num_pieces: How many places of their sequences are no padding.
    """

    data: list[bytes]
    num_records: int
    num_pieces: int


def parts(
    batches: Iterable[Columns], options: CreatePretrainingData
) -> Iterator[Part]:
    """Yields the records of batches, which go to the output files in turn.

    Args:
        batches: Features of `schemas.pretraining_schema`, [n, length] each.
        options: Say whether several instances make a record.
    """
    if options.pack_sequences:
        limits = packing.Limits(
            options.max_seq_length,
            options.max_predictions_per_seq,
            options.max_sequences_per_row,
        )
        batches = packing.pack_batches(batches, limits)
    num_files = len(options.output_files())
    num_records = 0
    for columns in batches:
        records = list(encode_examples(columns))
        data = [
            tfrecords.join(
                records[(number - num_records) % num_files :: num_files],
                options.compress,
            )
            for number in range(num_files)
        ]
        num_pieces = int(np.count_nonzero(columns["input_mask"]))
        yield Part(data, len(records), num_pieces)
        num_records += len(records)


def write(parts: Iterable[Part], options: CreatePretrainingData) -> None:
    """Writes all output files, or none of them.

    Raises:
        InputError: There is nothing to write.
    """
    names = options.output_files()
    num_records = num_pieces = 0
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(files.writing(name)) for name in names]
        for part in parts:
            for file, data in zip(opened, part.data, strict=True):
                file.write(data)
            num_records += part.num_records
            num_pieces += part.num_pieces
        if not num_records:
            raise InputError(
                "The text must hold a document of more than one piece, since a "
                "piece by itself has no order. Received: --nsp=sop, and none. "
                "Give other text, or another --nsp."
            )
        # A full disk may show only now, and no file may have its name yet.
        for file in opened:
            file.flush()
            files.sync(file.name)
    logging.info(
        "Wrote %d records, %.1f%% of which are padding, to %s",
        num_records,
        100 - 100 * num_pieces / (num_records * options.max_seq_length),
        ", ".join(names),
    )
