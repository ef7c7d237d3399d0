"""Long texts: how they are truncated, and that windows cover everything.

`test_glue.py` shows that `truncate_tail` equals the original implementation.
"""

import itertools
import random

import pytest

from official_bert.tasks import long_texts
from official_bert.tasks.long_texts import LongDocuments

HEAD_TAIL = LongDocuments("head_tail")


@pytest.mark.parametrize("mode", ["truncate_tail", "head_tail", "windows"])
def test_texts_that_fit_are_kept_and_without_room_both_are_empty(mode):
    mode = LongDocuments(mode)
    assert long_texts.cut([1, 2, 3], [4, 5], 8, mode) == [([1, 2, 3], [4, 5])]
    assert long_texts.cut([1, 2], [], 4, mode) == [([1, 2], [])]
    assert long_texts.cut([1, 2], [3], 3, mode) == [([], [])]


def test_head_tail_keeps_128_and_382_tokens_of_a_long_text():
    ids = list(range(5000))
    [(kept, other)] = long_texts.cut(ids, [], 512, HEAD_TAIL)
    assert list(kept) == [*range(128), *range(5000 - 382, 5000)]
    assert other == []


def test_head_tail_leaves_both_texts_as_long_as_truncate_tail():
    a, b = list(range(100)), list(range(100, 130))
    for length in (3, 4, 9, 40, 80):
        [pair] = long_texts.cut(a, b, length, HEAD_TAIL)
        [truncated] = long_texts.cut(a, b, length, LongDocuments())
        assert list(map(len, pair)) == list(map(len, truncated))
        assert sum(map(len, pair)) == length - 3
    [(cut_a, cut_b)] = long_texts.cut(a, b, 43, HEAD_TAIL)
    assert list(cut_a) == [*range(5), *range(85, 100)]
    assert list(cut_b) == [*range(100, 105), *range(115, 130)]


@pytest.mark.parametrize("stride", [0, 1, 3, 7, 1000])
def test_every_token_is_in_a_window(stride):
    rng = random.Random(stride)
    for _ in range(300):
        length = rng.randrange(4, 40)
        a = list(range(rng.randrange(1, 120)))
        b = list(range(1000, 1000 + rng.randrange(40)))
        windows = long_texts.cut(a, b, length, LongDocuments("windows", stride))
        room = length - (3 if b else 2)
        assert all(len(x) + len(y) <= room for x, y in windows)
        is_a_longer = len(a) > len(b)
        long, short = (a, b) if is_a_longer else (b, a)
        parts = [list(window[not is_a_longer]) for window in windows]
        others = [list(window[is_a_longer]) for window in windows]
        assert sorted({token for part in parts for token in part}) == long
        # The windows are in order, and none contains its neighbor.
        assert parts == sorted(parts)
        assert all(x[-1] < y[-1] for x, y in itertools.pairwise(parts))
        if len(windows) > 1:
            assert all(other == short[: room // 2] for other in others)


@pytest.mark.parametrize(
    ("stride", "starts"),
    # A stride beyond the window's size would leave out tokens.
    [(0, [0, 2, 4, 6, 8]), (3, [0, 3, 6, 8]), (100, [0, 4, 8])],
)
def test_windows_start_every_stride_tokens(stride, starts):
    mode = LongDocuments("windows", stride)
    windows = long_texts.cut(list(range(12)), [], 6, mode)
    assert [part[0] for part, _ in windows] == starts
