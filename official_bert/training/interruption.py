"""Ctrl-C, and the SIGTERM of schedulers: the step ends, then the run does."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import NoReturn

from absl import logging

from official_bert import signals

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether the run was asked to end.

    Attributes:
        signal: The name of what asked, or nothing.
    """

    def __init__(self) -> None:
        self.signal = ""


@contextlib.contextmanager
def watched() -> Iterator[Interruption]:
    """Notes the first Ctrl-C or SIGTERM; a second Ctrl-C stops at once.

    Python calls its own handlers only between two of its operations, and a step
    is one of them, however long. So a thread is told instead.

    Yields:
        What tells whether to end. It never does outside the main thread, which
        alone may listen to signals.
    """
    asked = Interruption()
    if not signals.in_main_thread():
        yield asked
        return
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    listener = threading.Thread(target=_listen, args=(ours, asked), daemon=True)
    listener.start()
    try:
        with signals.temporary_handler(_stay, *_SIGNALS):
            earlier = signal.set_wakeup_fd(theirs.fileno())
            try:
                yield asked
            finally:
                signal.set_wakeup_fd(earlier)
    finally:
        theirs.close()  # The listener reads an end, and ends.
        listener.join()
        ours.close()


@contextlib.contextmanager
def waiting_for_hosts() -> Iterator[None]:
    """Lets Ctrl-C end the process while TensorFlow waits for other hosts.

    It does so outside of Python, whose own handler would not be called. And it
    takes SIGTERM, so that nobody hears it: here that is given back.
    """
    same = signal.getsignal(signal.SIGTERM)
    with (
        signals.temporary_handler(same, signal.SIGTERM),
        signals.temporary_handler(signal.SIG_DFL, signal.SIGINT),
    ):
        yield


def leave(asked_by: str, step: int, output_dir: str) -> NoReturn:
    """Ends the command, as one that did what it was told.

    Args:
        asked_by: The name of the signal.
        step: The last one done, whose checkpoint is saved.
        output_dir: Where it is.
    """
    logging.info(
        "Stopped by %s after step %d, saved as %s. Run the same command again "
        "to go on from there.",
        asked_by,
        step,
        os.path.join(output_dir, f"model.ckpt-{step}"),
    )
    sys.exit(0)


def _stay(number: int, frame: object) -> None:
    """Keeps the process alive; what there is to do, `_listen` does."""


def _listen(received: socket.socket, asked: Interruption) -> None:
    """Reads the numbers of signals as they come."""
    while number := received.recv(1):
        if number[0] not in _SIGNALS:
            continue
        if asked.signal and number[0] == signal.SIGINT:
            print("\nStopped at once, without saving.", file=sys.stderr)
            # The main thread may be in the midst of a step.
            os._exit(128 + signal.SIGINT)
        if not asked.signal:
            asked.signal = signal.Signals(number[0]).name
            logging.info(
                "%s: will save and stop after this step; Ctrl-C from now on "
                "stops at once.",
                asked.signal,
            )
