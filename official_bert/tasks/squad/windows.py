"""Windows: the parts of a long paragraph that the model reads in turn.

A paragraph that does not fit beside its question is read in windows that
overlap. So a piece is seen several times, and counts where it has the most
context on both sides::

    pieces      0 1 2 3 4 5 6 7 8 9       room for 5, doc_stride 3
    window 0    0 1 2 3 4
    window 1          3 4 5 6 7
    window 2                6 7 8 9
    owner       0 0 0 0 1 1 1 2 2 2
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.errors import InputError

Ints = npt.NDArray[np.int32]

NUM_SPECIAL = 3  # [CLS] question [SEP] window [SEP]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowOptions:
    """How text is laid out; the fields are the flags of that name.

    Attributes:
        max_seq_length: S, of question, window and special pieces together.
        doc_stride: How many pieces a window begins after the one before it.
        max_query_length: How many pieces of a question are kept.

    Raises:
        InputError: There is no room for a window, or no way forward.
    """

    max_seq_length: int
    doc_stride: int
    max_query_length: int

    def __post_init__(self) -> None:
        least = self.max_query_length + NUM_SPECIAL + 1
        if self.max_query_length < 0 or self.max_seq_length < least:
            raise InputError(
                "`max_seq_length` must leave room for a question of "
                f"`max_query_length` pieces and {NUM_SPECIAL} special ones. "
                f"Received: max_seq_length={self.max_seq_length}, "
                f"max_query_length={self.max_query_length}. Pass at least "
                f"--max_seq_length={least}."
            )
        if self.doc_stride < 1:
            raise InputError(
                "`doc_stride` must be at least 1. Received: "
                f"doc_stride={self.doc_stride}."
            )


class Windows(NamedTuple):
    """Windows of many examples, in the order of these.

    Attributes:
        example: int32 [W], the index of each window's example, ascending.
        start: int32 [W], its first piece, counted in the paragraph.
        length: int32 [W], how many pieces of the paragraph it has.
    """

    example: Ints
    start: Ints
    length: Ints

    def rows(self, begin: int, end: int) -> "Windows":
        """Returns some of the windows."""
        return Windows(
            self.example[begin:end],
            self.start[begin:end],
            self.length[begin:end],
        )


def make_windows(num_pieces: Ints, room: Ints, doc_stride: int) -> Windows:
    """Cuts the paragraphs of examples into windows.

    Args:
        num_pieces: [E], the length of each example's paragraph. One of length
            0 has no windows.
        room: [E], how many pieces a window of each example can have.
        doc_stride: See `WindowOptions`.
    """
    steps = np.minimum(room, doc_stride)
    num_later = -(-(num_pieces - room) // steps)
    counts = np.where(num_pieces > 0, 1 + np.maximum(num_later, 0), 0)
    example = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    start = (np.arange(len(example)) - firsts[example]) * steps[example]
    length = np.minimum(num_pieces[example] - start, room[example])
    return Windows(
        example.astype(np.int32),
        start.astype(np.int32),
        length.astype(np.int32),
    )


def owners(starts: Ints, lengths: Ints) -> npt.NDArray[np.intp]:
    """Returns in which window each piece of a paragraph has most context.

    That is where the smaller one of its contexts, to the left and to the right,
    is largest; the longer window if they are equal, and then the first one.

    Args:
        starts: [N], of the windows of one example.
        lengths: [N].

    Returns:
        [number of pieces] numbers of windows.
    """
    if not len(starts):
        return np.zeros(0, np.intp)
    num_pieces = int(starts[-1] + lengths[-1])
    owner = np.zeros(num_pieces, np.intp)
    best_scores = np.full(num_pieces, -1.0)
    # One by one: all windows against all pieces would be quadratic.
    for number, (start, length) in enumerate(
        zip(starts.tolist(), lengths.tolist(), strict=True)
    ):
        left = np.arange(length)
        # In float64 and in this order, for ties to be ties.
        scores = np.minimum(left, left[::-1]) + 0.01 * length
        best = best_scores[start : start + length]
        owner[start : start + length][scores > best] = number
        np.maximum(best, scores, out=best)
    return owner
