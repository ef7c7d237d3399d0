"""Long texts: what is cut off, and that windows leave nothing out.

That `truncate_tail` equals the original is shown in `test_glue.py`.
"""

import itertools
import random

import pytest

from official_bert.tasks import documents
from official_bert.tasks.documents import LongDocuments

HEAD_TAIL = LongDocuments("head_tail")
WINDOWS = LongDocuments("windows")


def test_what_fits_is_left_alone():
    for mode in ("truncate_tail", "head_tail", "windows"):
        found = documents.cut([1, 2, 3], [4, 5], 8, LongDocuments(mode))
        assert found == [([1, 2, 3], [4, 5])]
        assert documents.cut([1, 2], [], 4, LongDocuments(mode)) == [
            ([1, 2], [])
        ]


def test_head_and_tail_of_the_article():
    """Sun et al. keep 128 and 382 of what 512 positions hold."""
    ids = list(range(5000))
    [(kept, other)] = documents.cut(ids, [], 512, HEAD_TAIL)
    assert list(kept) == [*range(128), *range(5000 - 382, 5000)]
    assert other == []


def test_head_and_tail_of_a_pair():
    """Both are as long as the original would leave them."""
    a, b = list(range(100)), list(range(100, 130))
    for length in (3, 4, 9, 40, 80):
        [(cut_a, cut_b)] = documents.cut(a, b, length, HEAD_TAIL)
        [(head_a, head_b)] = documents.cut(a, b, length, LongDocuments())
        assert len(cut_a) == len(head_a)
        assert len(cut_b) == len(head_b)
        assert len(cut_a) + len(cut_b) == length - 3
        assert list(cut_a) == sorted(cut_a)
    [(cut_a, cut_b)] = documents.cut(a, b, 43, HEAD_TAIL)
    assert list(cut_a) == [*range(5), *range(85, 100)]
    assert list(cut_b) == [*range(100, 105), *range(115, 130)]


@pytest.mark.parametrize("stride", [0, 1, 3, 7, 1000])
def test_every_piece_is_in_a_window(stride):
    rng = random.Random(stride)
    for _ in range(300):
        length = rng.randrange(4, 40)
        a = list(range(rng.randrange(1, 120)))
        b = list(range(1000, 1000 + rng.randrange(40)))
        how = LongDocuments("windows", stride)
        found = documents.cut(a, b, length, how)
        room = length - (3 if b else 2)
        assert all(len(x) + len(y) <= room for x, y in found)
        if len(a) > len(b):
            long, parts = a, [list(part) for part, _ in found]
            short, kept = b, [list(part) for _, part in found]
        else:
            long, parts = b, [list(part) for _, part in found]
            short, kept = a, [list(part) for part, _ in found]
        assert sorted({piece for part in parts for piece in part}) == long
        # None lies within its neighbour, and all come in order.
        assert parts == sorted(parts)
        assert all(x[-1] < y[-1] for x, y in itertools.pairwise(parts))
        if len(found) > 1:
            assert all(part == short[: room // 2] for part in kept)


def test_windows_overlap_by_half_or_as_told():
    ids = list(range(12))
    found = documents.cut(ids, [], 6, WINDOWS)
    assert [part[0] for part, _ in found] == [0, 2, 4, 6, 8]
    found = documents.cut(ids, [], 6, LongDocuments("windows", 3))
    assert [part[0] for part, _ in found] == [0, 3, 6, 8]
    # A stride beyond the window would leave pieces out.
    found = documents.cut(ids, [], 6, LongDocuments("windows", 100))
    assert [part[0] for part, _ in found] == [0, 4, 8]


def test_no_room_for_anything():
    assert documents.cut([1, 2], [3], 3, WINDOWS) == [([], [])]
    assert documents.cut([1, 2], [3], 3, HEAD_TAIL) == [([], [])]
