"""Signals, handled otherwise for a while."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

Handler = Callable[[int, Any], Any] | int | None


def in_main_thread() -> bool:
    """Whether this is the main thread, which alone may listen to signals."""
    return threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def temporary_handler(handler: Handler, *numbers: int) -> Iterator[None]:
    """Gives signals a handler, and at the end what they had.

    In other threads than the main one, all stays as it is.

    Args:
        handler: As `signal.signal` takes it.
        numbers: Of the signals.
    """
    if not in_main_thread():
        yield
        return
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
