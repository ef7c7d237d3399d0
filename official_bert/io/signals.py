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
    """Sets the handler of some signals inside the context.

    For `handler`, see `signal.signal`. Outside the main thread, this has no
    effect.
    """
    if not in_main_thread():
        numbers = ()
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier_handler in earlier.items():
            signal.signal(number, earlier_handler)
