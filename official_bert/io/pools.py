"""Computes results ahead of their use, in threads or processes."""

import collections
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from typing import TypeVar

_NUM_THREADS = 2

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def parallel_map(
    function: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    """Like `map`, but calls `function` in two threads at a time.

    While one thread stacks or unpacks a batch, or waits for the slowest core,
    the other computes: prediction is 1.1 to 1.5 times as fast on two cores. At
    most three items are read ahead of the results. An exception of `function`
    is raised in place of its result.
    """
    pool = futures.ThreadPoolExecutor(_NUM_THREADS)
    try:
        yield from ordered_results(pool, function, items, _NUM_THREADS + 1)
    finally:
        pool.shutdown(cancel_futures=True)


def ordered_results(
    pool: futures.Executor,
    function: Callable[[_Item], _Result],
    items: Iterable[_Item],
    most_pending: int,
) -> Iterator[_Result]:
    """Like `pool.map`, but reads only `most_pending` items ahead."""
    pending = collections.deque[futures.Future[_Result]]()
    for item in items:
        pending.append(pool.submit(function, item))
        if len(pending) == most_pending:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()
