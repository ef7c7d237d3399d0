"""Functions over many items, in several processes."""

import collections
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NoReturn, TypeVar

from official_bert import signals
from official_bert.errors import InputError, short_reason
from official_bert.pretraining_data.recipe import Recipe

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Enough that no worker waits; results that are not fetched yet take memory.
_AHEAD = 2

# What a worker got when it was started.
_recipe: Recipe


class Workers:
    """Processes that know a recipe; with one, it is the process itself.

    To be used in a `with` statement, behind which no process is left. It raises
    `InputError` where the system does not start so many.

    Args:
        num_workers: How many processes.
        recipe: The first argument of all that they do.

    Attributes:
        recipe: The same.
    """

    def __init__(self, num_workers: int, recipe: Recipe):
        self.recipe = recipe
        self._num_workers = num_workers
        self._pool: futures.ProcessPoolExecutor | None = None

    def __enter__(self) -> "Workers":
        if self._num_workers > 1:
            self._pool = futures.ProcessPoolExecutor(
                self._num_workers,
                multiprocessing.get_context(_start_method()),
                initializer=_start,
                initargs=(self.recipe,),
            )
            # Ctrl-C goes to all processes of a terminal. Workers inherit that
            # they do not hear it, and end with the one that does.
            with signals.temporary_handler(signal.SIG_IGN, signal.SIGINT):
                try:
                    for _ in range(self._num_workers):
                        self._pool.submit(int)  # Starts one, if none is idle.
                except (OSError, BrokenProcessPool) as error:
                    self._give_up(error)
        return self

    def _give_up(self, error: Exception) -> NoReturn:
        """Ends the workers that were started; Python would wait for them."""
        for process in multiprocessing.active_children():
            process.kill()
            process.join()
        raise InputError(
            "So many processes must be allowed as --num_workers says. "
            f"Received: {self._num_workers}, and {short_reason(error)}. "
            "Try fewer workers."
        ) from error

    def __exit__(self, *_: object) -> None:
        if self._pool:
            # A second Ctrl-C or SIGTERM is not heard, as the first is being
            # obeyed: a pool that is interrupted here waits for itself for ever.
            numbers = (signal.SIGINT, signal.SIGTERM)
            with signals.temporary_handler(signal.SIG_IGN, *numbers):
                self._pool.shutdown(cancel_futures=True)

    def map(
        self,
        function: Callable[[Recipe, _Item], _Result],
        items: Iterable[_Item],
    ) -> Iterator[_Result]:
        """Yields `function(recipe, item)` of each item, in order.

        Items are taken as workers become free, so that memory is bounded.

        Raises:
            InputError: A worker was ended from outside.
        """
        if not self._pool:
            for item in items:
                yield function(self.recipe, item)
            return
        remaining = iter(items)
        pending: collections.deque[futures.Future[_Result]] = (
            collections.deque()
        )
        try:
            while True:
                room = _AHEAD * self._num_workers - len(pending)
                for item in itertools.islice(remaining, room):
                    pending.append(self._pool.submit(_call, function, item))
                if not pending:
                    return
                yield pending.popleft().result()
        except BrokenProcessPool as error:
            raise InputError(
                "A worker process was ended from outside, for want of memory "
                f"perhaps. Received: --num_workers={self._num_workers}. Output "
                "files are as they were; try fewer workers."
            ) from error


def _start_method() -> str:
    """Returns how to start a worker.

    A fork needs no time, and has the vocabulary; but it may hang where there
    are other threads, which it does not have, such as TensorFlow's.
    """
    is_alone = threading.active_count() == 1 and "tensorflow" not in sys.modules
    return "fork" if is_alone and sys.platform == "linux" else "spawn"


def _start(recipe: Recipe) -> None:
    global _recipe
    _recipe = recipe
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # One started later hears.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # A fork has the command's.
    threading.Thread(target=_end_with_the_command, daemon=True).start()


def _end_with_the_command() -> None:
    """Ends this worker when the command was killed; nobody else would."""
    command = multiprocessing.parent_process()
    assert command is not None
    command.join()
    os._exit(1)


def _call(function: Callable[[Recipe, Any], Any], item: Any) -> Any:
    return function(_recipe, item)
