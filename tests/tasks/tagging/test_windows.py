"""Which words are read with which: nothing lost, nothing wasted."""

import random

import pytest

from official_bert.tasks.tagging import Window, make_windows


def windows(sizes, first, last, room):
    return list(make_windows(sizes, first, last, room))


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (4, 10, Window(2, 4, 10, 12)),  # The drawing.
        (0, 6, Window(0, 0, 6, 10)),
        (1, 7, Window(0, 1, 7, 10)),
        (10, 16, Window(6, 10, 16, 16)),
        (3, 13, Window(3, 3, 13, 13)),
    ],
)
def test_context_on_both_sides(first, last, expected):
    assert windows([1] * 16, first, last, room=10) == [expected]


def test_only_whole_words_are_context():
    assert windows([3, 3, 1, 3, 3], 2, 3, room=6) == [Window(2, 2, 3, 4)]
    assert windows([3, 3, 1, 3, 3], 2, 3, room=7) == [Window(1, 2, 3, 4)]


def test_a_long_sentence_is_predicted_in_parts():
    assert windows([1] * 10, 0, 10, room=8) == [
        Window(0, 0, 4, 8),
        Window(2, 4, 8, 10),
        Window(2, 8, 10, 10),
    ]


def test_a_word_as_long_as_the_room():
    assert windows([1, 4, 1], 0, 3, room=4) == [
        Window(0, 0, 1, 1),
        Window(1, 1, 2, 2),
        Window(2, 2, 3, 3),
    ]


def test_no_words_no_windows():
    assert windows([], 0, 0, room=5) == []


def test_every_word_once_and_no_room_wasted():
    rng = random.Random(1)
    num_split = 0
    for _ in range(3000):
        room = rng.randint(1, 30)
        most = rng.choice([1, 3, 8])
        sizes = rng.choices(range(1, min(room, most) + 1), k=rng.randint(1, 60))
        first, last = sorted(rng.choices(range(len(sizes) + 1), k=2))
        found = windows(sizes, first, last, room)
        num_split += len(found) > 1
        predicted = [n for w in found for n in range(w.first, w.last)]
        assert predicted == list(range(first, last))
        assert len(found) <= 1 or sum(sizes[first:last]) > room
        for begin, a, b, end in found:
            assert 0 <= begin <= a < b <= end <= len(sizes)
            used = sum(sizes[begin:end])
            assert used <= room
            # Neither neighbour fits, but for words that cannot be cut: what
            # they leave on the left is used on the right.
            assert end == len(sizes) or used + sizes[end] > room
            left, right = sum(sizes[begin:a]), sum(sizes[b:end])
            if begin > 0 and end < len(sizes):
                assert abs(left - right) <= 2 * most
            if begin > 0:
                assert left + sizes[begin - 1] > (room - sum(sizes[a:b])) // 2
    assert num_split > 500
