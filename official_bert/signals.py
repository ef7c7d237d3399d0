"""Temporary signal handlers."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


def in_main_thread() -> bool:
    """Whether this is the main thread: only it can set signal handlers."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def temporary_handler(
    handler: Callable[[int, Any], Any] | int | None, *numbers: int
) -> Iterator[None]:
    """Handles signals with `handler`, as in `signal.signal`, in the context.

    Outside the main thread, it has no effect.
    """
    if not in_main_thread():
        numbers = ()
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
