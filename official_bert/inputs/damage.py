"""Damaged TFRecords: where they are, and how to read around them.

A record's length has a checksum of its own. So a record with damaged data, or
with other data than an example's, can be stepped over; behind a damaged length
nothing can be found any more.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf
from absl import logging
from google.protobuf.message import DecodeError

from official_bert import files
from official_bert.errors import InputError
from official_bert.inputs import framing, records
from official_bert.inputs.records import RecordFiles, RecordRange


class Damage(NamedTuple):
    """What is wrong with a file.

    Attributes:
        name: The file.
        skipped: The numbers of its damaged records, from 1.
        is_cut: Whether nothing behind the last of them can be found.
    """

    name: str
    skipped: list[int]
    is_cut: bool

    def __str__(self) -> str:
        """Names file and records, for a message."""
        shown = ", ".join(map(str, self.skipped[:20]))
        if len(self.skipped) > 20:
            shown += f" and {len(self.skipped) - 20} more"
        rest = ", and all behind it" if self.is_cut else ""
        return f"{self.name}: record {shown}{rest}"


def find(data: RecordFiles) -> tuple[RecordFiles, list[Damage]]:
    """Reads all files, to know which of their records can be used.

    Returns:
        The files to read, with the records to leave out; and what is wrong.

    Raises:
        InputError: There is no good record in any of them.
    """
    ranges: dict[str, list[RecordRange]] = {}
    found = []
    for name in data.names:
        its_ranges, damage = _look(name)
        if damage.skipped:
            logging.warning("Skipping damaged records. %s", damage)
            ranges[name] = its_ranges
            found.append(damage)
    names = [name for name in data.names if ranges.get(name, True)]
    if not names:
        raise InputError(
            f"{data.names[0]}: must hold a TFRecord that is not damaged. "
            "Received: none, here or in any other file. Make or copy the files "
            "again."
        )
    return data._replace(names=names, ranges=ranges), found


def report(found: Sequence[Damage]) -> None:
    """Says at the end what training went without."""
    count = sum(len(damage.skipped) for damage in found)
    if count:
        is_cut = any(damage.is_cut for damage in found)
        logging.warning(
            "Skipped %d damaged records%s:%s",
            count,
            ", and a number that is not known behind them" if is_cut else "",
            "".join(f"\n  {damage}" for damage in found),
        )


def _look(name: str) -> tuple[list[RecordRange], Damage]:
    """Finds the ranges of good records of a file, and what is wrong with it."""
    number, skipped, is_cut = 0, [], False
    try:
        for number, data in enumerate(framing.read(name), start=1):
            if not _is_example(data):
                skipped.append(number)
    except framing.CutShortError:
        skipped.append(number + 1)
        is_cut = True
    bounds = [0, *skipped] if is_cut else [0, *skipped, number + 1]
    ranges = [
        RecordRange(first, next_bound - first - 1)
        for first, next_bound in itertools.pairwise(bounds)
        if next_bound - first > 1
    ]
    damage = Damage(name, skipped, is_cut)
    return (
        _unpacked(ranges, damage) if files.is_gzip(name) else (ranges, damage)
    )


def _unpacked(
    ranges: list[RecordRange], damage: Damage
) -> tuple[list[RecordRange], Damage]:
    """Ends a compressed file where TensorFlow fails to read it.

    It unpacks far ahead of the record it is asked for, and so stumbles before
    Python does; and it takes nothing for the end of a file but the end.
    """
    readable = []
    for part in ranges if damage.skipped else [RecordRange(0, -1)]:
        dataset = records.read(damage.name).skip(part.first).take(part.length)
        end = part.first
        try:
            for _ in dataset:
                end += 1
        except tf.errors.DataLossError:
            if end > part.first:
                readable.append(RecordRange(part.first, end - part.first))
            before = [number for number in damage.skipped if number <= end]
            return readable, Damage(damage.name, [*before, end + 1], True)
        readable.append(part)
    return ranges, damage


def _is_example(data: bytes | None) -> bool:
    try:
        return data is not None and bool(
            tf.train.Example.FromString(data).features.feature
        )
    except DecodeError:
        return False
