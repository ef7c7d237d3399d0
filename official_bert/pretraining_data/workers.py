"""A pool of worker processes with bounded queues."""

import functools
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import TypeVar

from official_bert.errors import InputError, short_reason
from official_bert.io import pools, signals
from official_bert.pretraining_data.job import Job

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Pending items per worker. Two keep the workers busy; more take more memory.
_ITEMS_PER_WORKER = 2


class Workers:
    """Worker processes; with one worker, functions run in this process.

    `job` is the first argument of all functions. Entering the context
    raises `InputError` if the workers cannot be started; leaving it ends them.
    """

    def __init__(self, num_workers: int, job: Job):
        self.job = job
        self._num_workers = num_workers
        self._pool: futures.ProcessPoolExecutor | None = None
        # Child processes that do not belong to this pool.
        self._other_children: list[BaseProcess] = []

    def __enter__(self) -> "Workers":
        if self._num_workers > 1:
            self._other_children = multiprocessing.active_children()
            self._pool = futures.ProcessPoolExecutor(
                self._num_workers,
                multiprocessing.get_context(_start_method()),
                initializer=_start,
            )
            # Workers inherit SIG_IGN, so Ctrl-C reaches only the parent, which
            # ends them.
            with signals.temporary_handler(signal.SIG_IGN, signal.SIGINT):
                try:
                    for _ in range(self._num_workers):
                        self._pool.submit(int)  # Starts a process.
                except (OSError, BrokenProcessPool) as error:
                    # Otherwise, Python waits for the workers that started.
                    self._kill_workers()
                    raise InputError(
                        f"--num_workers={self._num_workers}: the processes "
                        f"could not be started ({short_reason(error)}). Use "
                        "fewer workers."
                    ) from error
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._pool:
            # A second Ctrl-C or SIGTERM is ignored: a pool that is interrupted
            # while it shuts down never returns.
            numbers = (signal.SIGINT, signal.SIGTERM)
            with signals.temporary_handler(signal.SIG_IGN, *numbers):
                # A worker may wait forever for the lock of a killed worker.
                if error:
                    self._kill_workers()
                    _stop_writing(self._pool)
                self._pool.shutdown(cancel_futures=True)

    def _kill_workers(self) -> None:
        for process in multiprocessing.active_children():
            if process not in self._other_children:
                process.kill()
                process.join()

    def map(
        self, function: Callable[[Job, _Item], _Result], items: Iterable[_Item]
    ) -> Iterator[_Result]:
        """Yields `function(job, item)` for each item, in order.

        Items are read as workers become free. Raises `InputError` if a worker
        was killed.
        """
        call = functools.partial(function, self.job)
        if not self._pool:
            yield from map(call, items)
            return
        most_pending = _ITEMS_PER_WORKER * self._num_workers
        try:
            yield from pools.ordered_results(
                self._pool, call, items, most_pending
            )
        except BrokenProcessPool as error:
            raise InputError(
                f"--num_workers={self._num_workers}: a worker process was "
                "killed, possibly because memory ran out. The output files are "
                "unchanged. Use fewer workers."
            ) from error


def _start_method() -> str:
    # A fork starts at once, but may hang if this process has other threads,
    # such as those of TensorFlow.
    is_alone = threading.active_count() == 1 and "tensorflow" not in sys.modules
    return "fork" if is_alone and sys.platform == "linux" else "spawn"


def _stop_writing(pool: futures.ProcessPoolExecutor) -> None:
    """Lets the thread that writes items end, although no worker reads them.

    Python 3.11.5 and later do this themselves; before, `shutdown` would wait
    forever.
    """
    if sys.version_info < (3, 11, 5):
        pool._call_queue._reader.close()  # type: ignore[attr-defined]


def _start() -> None:
    # A worker that is started later does not inherit SIG_IGN, and a fork
    # inherits the command's SIGTERM handler.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Ends this worker when the command is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
