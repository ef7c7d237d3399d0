import itertools
import threading
import time

import pytest

from official_bert.io.pools import parallel_map


@pytest.mark.parametrize("length", [0, 20])
def test_results_have_the_order_of_the_items(length):
    def slow_at_first(number):
        time.sleep(0.02 if number % 3 == 0 else 0.0)
        return number * number

    found = list(parallel_map(slow_at_first, range(length)))
    assert found == [number * number for number in range(length)]


def test_two_items_are_computed_at_the_same_time():
    barrier = threading.Barrier(2, timeout=10.0)
    assert len(list(parallel_map(lambda _: barrier.wait(), range(4)))) == 4


def test_exception_is_raised_in_place_of_its_result_and_few_items_are_read():
    items = itertools.count()
    found = parallel_map(lambda number: 1.0 / (number - 3), items)
    assert [next(found) for _ in range(3)] == [1.0 / -3, 1.0 / -2, -1.0]
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert next(items) < 8
    assert list(found) == []
