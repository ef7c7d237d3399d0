"""Computing two batches at the same time."""

import collections
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_NUM_THREADS = 2

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def parallel_map(
    function: Callable[[_Item], _Result], items: Iterable[_Item]
) -> Iterator[_Result]:
    """Like `map`, with two threads, which may both be in `function`.

    While Python stacks or unpacks a batch, or waits for the slowest core, the
    other thread computes: prediction is 1.1 to 1.5 times as fast on two cores.
    At most four items are read ahead of the results. An exception of `function`
    is raised in place of its result.
    """
    pending: collections.deque[concurrent.futures.Future[_Result]]
    pending = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(_NUM_THREADS)
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > _NUM_THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
