"""Temporary signal handlers."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def temporary_handler(
    handler: Callable[[int, Any], Any] | int | None, *numbers: int
) -> Iterator[None]:
    """Sets the handler of some signals inside the context.

    For `handler`, see `signal.signal`. Outside the main thread, which alone can
    set handlers, this has no effect.
    """
    if threading.current_thread() is not threading.main_thread():
        numbers = ()
    earlier = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier_handler in earlier.items():
            signal.signal(number, earlier_handler)


def interruptible_waits() -> contextlib.AbstractContextManager[None]:
    """Lets Ctrl-C interrupt a wait inside the context, and after it.

    Packages such as polars install a C handler, after which the operating
    system resumes an interrupted wait. The Python handler stays the same.
    """
    handler = signal.getsignal(signal.SIGINT)
    return temporary_handler(handler, signal.SIGINT)
