"""Windows against the rules, piece by piece."""

import numpy as np
import pytest

from official_bert.errors import InputError
from official_bert.tasks.squad.windows import (
    WindowOptions,
    make_windows,
    owners,
)


def windows_by_hand(num_pieces, room, stride):
    start = 0
    while start < num_pieces:
        length = min(num_pieces - start, room)
        yield start, length
        if start + length == num_pieces:
            break
        start += min(length, stride)


def owner_by_hand(piece, windows):
    best, best_score = None, None
    for number, (start, length) in enumerate(windows):
        if start <= piece < start + length:
            left, right = piece - start, start + length - 1 - piece
            score = min(left, right) + 0.01 * length
            if best_score is None or score > best_score:
                best, best_score = number, score
    return best


CASES = [
    (num_pieces, room, stride)
    for num_pieces in (0, 1, 4, 5, 6, 7, 23, 100, 382, 400)
    for room in (1, 2, 5, 30, 381)
    for stride in (1, 2, 3, 5, 128)
]


def test_windows_cover_paragraphs_with_overlap():
    # The strides of one call are equal.
    for stride in (1, 2, 3, 5, 128):
        cases = [case[:2] for case in CASES if case[2] == stride]
        num_pieces, room = np.array(cases, np.int32).T
        windows = make_windows(num_pieces, room, stride)
        expected = [
            (example, *window)
            for example, case in enumerate(cases)
            for window in windows_by_hand(*case, stride)
        ]
        assert np.stack(windows, axis=1).tolist() == list(map(list, expected))


@pytest.mark.parametrize("case", CASES)
def test_a_piece_belongs_where_it_has_most_context(case):
    windows = list(windows_by_hand(*case))
    starts, lengths = np.array(windows, np.int32).reshape(-1, 2).T
    assert owners(starts, lengths).tolist() == [
        owner_by_hand(piece, windows) for piece in range(case[0])
    ]


def test_random_windows_follow_the_rule():
    random = np.random.default_rng(0)
    for _ in range(300):
        # Any that leave no gap; lengths differ, as those of `make_windows`
        # do only at the end.
        steps, overlaps = random.integers(1, 7, (2, random.integers(1, 9)))
        ends = np.cumsum(steps)
        starts = np.maximum(ends - steps - overlaps, 0)
        windows = list(zip(starts, ends - starts, strict=True))
        assert owners(starts, ends - starts).tolist() == [
            owner_by_hand(piece, windows) for piece in range(ends[-1])
        ]


def test_a_passage_may_have_a_million_pieces():
    # All windows against all pieces would be 8 billion numbers.
    num_pieces = 1_000_000
    made = make_windows(np.array([num_pieces]), np.array([381]), 128)
    windows = list(zip(made.start.tolist(), made.length.tolist(), strict=True))
    owner = owners(made.start, made.length)
    assert len(owner) == num_pieces
    pieces = np.random.default_rng(0).integers(num_pieces, size=20)
    for piece in (0, *pieces.tolist(), num_pieces - 1):
        assert owner[piece] == owner_by_hand(piece, windows)


def test_the_drawing_is_right():
    windows = make_windows(np.array([10]), np.array([5]), 3)
    assert windows.start.tolist() == [0, 3, 6]
    assert windows.length.tolist() == [5, 5, 4]
    owner = owners(windows.start, windows.length)
    assert owner.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_seq_length": 67}, "at least --max_seq_length=68"),
        ({"max_query_length": -1}, "max_query_length=-1"),
        ({"doc_stride": 0}, "`doc_stride` must be at least 1"),
    ],
)
def test_options_that_leave_no_way_are_refused(changes, message):
    good = {"max_seq_length": 68, "doc_stride": 1, "max_query_length": 64}
    WindowOptions(**good)
    with pytest.raises(InputError, match=message):
        WindowOptions(**{**good, **changes})
