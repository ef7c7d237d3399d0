"""Texts that are longer than the model reads."""

from collections.abc import Sequence
from typing import NamedTuple

Ids = Sequence[int]
Pair = tuple[Ids, Ids]


class LongDocuments(NamedTuple):
    """What to do with texts that are longer than the model reads.

    Attributes:
        mode: truncate_tail, head_tail or windows, as `cut` explains.
        stride: How many pieces further the next window starts; 0 for half of
            what a window holds.
        pooling: mean or max: what the windows' logits become.
    """

    mode: str = "truncate_tail"
    stride: int = 0
    pooling: str = "mean"


TRUNCATE_TAIL = LongDocuments()


def cut(
    ids_a: Ids, ids_b: Ids, max_seq_length: int, how: LongDocuments
) -> list[Pair]:
    """Returns what fits into one sequence, or into several.

    * truncate_tail: the ends are cut off, of the longer text first, as in the
      2018 release.
    * head_tail: as much is cut, but out of the middle: a quarter of what stays
      is the beginning, the rest the end, as 128 and 382 of 510 pieces (Sun et
      al., 2019, "How to Fine-Tune BERT for Text Classification?", section
      5.3.1).
    * windows: overlapping windows of the longer text, each with all of the
      other one, or half a sequence of it.

    Args:
        ids_a: Pieces of text A.
        ids_b: Of text B, or none.
        max_seq_length: With [CLS] and [SEP]s.
        how: Which of these.
    """
    room = max_seq_length - (3 if ids_b else 2)
    if len(ids_a) + len(ids_b) <= room:
        return [(ids_a, ids_b)]
    if how.mode == "windows" and room > 0:
        return _windows(ids_a, ids_b, room, how.stride)
    length_a, length_b = _lengths(len(ids_a), len(ids_b), room)
    keep = _head_and_tail if how.mode == "head_tail" else _head
    return [(keep(ids_a, length_a), keep(ids_b, length_b))]


def _lengths(length_a: int, length_b: int, room: int) -> tuple[int, int]:
    """Shortens the longer one, B if both are the same, until both fit."""
    while length_a + length_b > room:
        if length_a > length_b:
            length_a -= 1
        else:
            length_b -= 1
    return length_a, length_b


def _head(ids: Ids, length: int) -> Ids:
    return ids[:length]


def _head_and_tail(ids: Ids, length: int) -> Ids:
    if len(ids) <= length:
        return ids
    head = -(-length // 4)
    return [*ids[:head], *ids[len(ids) - (length - head) :]]


def _windows(ids_a: Ids, ids_b: Ids, room: int, stride: int) -> list[Pair]:
    is_a_longer = len(ids_a) > len(ids_b)
    long, short = (ids_a, ids_b) if is_a_longer else (ids_b, ids_a)
    short = short[: room // 2]
    size = room - len(short)
    step = min(stride or size // 2, size) or 1
    last = max(len(long) - size, 0)
    starts = [*range(0, last, step), last]
    parts = [long[start : start + size] for start in starts]
    return [(part, short) if is_a_longer else (short, part) for part in parts]
