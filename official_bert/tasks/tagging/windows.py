"""Which words the model reads together, and of which it says the tags.

A sentence is read with as many words of its document on both sides as there is
room for; if one side has fewer, the other has more::

    document   v v v v | w w w w w w | x x x x x x
    read           v v   w w w w w w   x x             room for 10
    predicted            w w w w w w

A sentence that is longer than the room is predicted in parts that fill half of
it, each in the middle of what is read of the words around it. So every word is
predicted once, and with context.
"""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class Window(NamedTuple):
    """Words by number, ends exclusive.

    Attributes:
        begin: The first that is read.
        first: The first that is predicted.
        last: The end of those that are predicted.
        end: The end of those that are read.
    """

    begin: int
    first: int
    last: int
    end: int


def make_windows(
    sizes: Sequence[int], first: int, last: int, room: int
) -> Iterator[Window]:
    """Yields windows that together predict the words `first` to `last`.

    Args:
        sizes: How many pieces each word of a document has, 1 to `room`.
        first: Where the sentence begins.
        last: Where it ends, exclusive.
        room: How many pieces can be read at once; only whole words are.
    """
    starts = [0, *itertools.accumulate(sizes)]
    for a, b in _parts(starts, first, last, room):
        spare = room - (starts[b] - starts[a])
        after = starts[-1] - starts[b]
        before = min(starts[a], max(spare // 2, spare - after))
        begin = bisect.bisect_left(starts, starts[a] - before)
        end = bisect.bisect_right(starts, starts[begin] + room) - 1
        yield Window(begin, a, b, end)


def _parts(
    starts: Sequence[int], first: int, last: int, room: int
) -> Iterator[tuple[int, int]]:
    """Yields a sentence, or if it is too long its parts."""
    is_short = starts[last] - starts[first] <= room
    size = room if is_short else room // 2
    while first < last:
        fits = bisect.bisect_right(starts, starts[first] + size) - 1
        # A single word may be longer than half of the room.
        end = min(max(fits, first + 1), last)
        yield first, end
        first = end
