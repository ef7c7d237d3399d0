"""Two at a time: in order, read little ahead, and nothing after a fault."""

import itertools
import threading
import time

import pytest

from official_bert.threads import parallel_map


def test_results_come_in_the_order_of_the_items():
    """Also when later ones are ready first."""

    def slow_at_first(number):
        time.sleep(0.02 if number % 3 == 0 else 0.0)
        return number * number

    found = list(parallel_map(slow_at_first, range(20)))
    assert found == [number * number for number in range(20)]


def test_two_are_computed_at_once():
    """Each waits for the other: one after the other they would never end."""
    barrier = threading.Barrier(2, timeout=10.0)
    assert len(list(parallel_map(lambda _: barrier.wait(), range(4)))) == 4


def test_items_are_read_little_ahead():
    """A long stream must not be held in memory."""
    items = itertools.count()
    found = parallel_map(lambda item: item, items)
    assert list(itertools.islice(found, 5)) == [0, 1, 2, 3, 4]
    assert next(items) <= 8


def test_a_fault_comes_where_its_result_would_and_ends_it():
    """What was found before is there; what comes later is not begun."""
    begun = []

    def function(number):
        begun.append(number)
        return 1.0 / (number - 3)

    found = parallel_map(function, range(100))
    assert [next(found) for _ in range(3)] == [1.0 / -3, 1.0 / -2, -1.0]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert max(begun) < 8
    assert list(found) == []


def test_no_items_give_nothing():
    """As of `map`."""
    assert list(parallel_map(str, [])) == []
