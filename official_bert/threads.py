"""Two pieces of work at a time."""

import collections
import concurrent.futures
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

_AT_ONCE = 2

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


def parallel_map(
    function: Callable[[_Item], _Found], items: Iterable[_Item]
) -> Iterator[_Found]:
    """Yields what `function` returns for each item, in their order.

    Two threads call it. While one batch is stacked or unpacked by Python, or
    waits for the slowest core, another computes: prediction so is 1.1 to 1.5
    times as fast on two cores.

    Args:
        function: May be called by two threads at once.
        items: Read a little ahead of what is yielded.

    Raises:
        Exception: What `function` raised, where its result would have come.
    """
    waiting: collections.deque[concurrent.futures.Future[_Found]]
    waiting = collections.deque()
    pool = concurrent.futures.ThreadPoolExecutor(_AT_ONCE)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > _AT_ONCE:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # What nobody waits for any more need not be computed.
        pool.shutdown(cancel_futures=True)
