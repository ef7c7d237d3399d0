"""SIGINT (Ctrl-C) and SIGTERM: finish the step, save, exit."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator

from absl import logging

from official_bert.io import signals

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class ReceivedSignal:
    """The name of the first signal that asked the run to stop, if any."""

    signal = ""


@contextlib.contextmanager
def watched() -> Iterator[ReceivedSignal]:
    """Records SIGINT and SIGTERM; a second Ctrl-C exits immediately.

    Python runs signal handlers only between two bytecodes, and a training step
    is one bytecode. Therefore, a thread is notified instead. Only the main
    thread can handle signals, so in other threads, none are recorded.
    """
    received = ReceivedSignal()
    if not signals.in_main_thread():
        yield received
        return
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    listener = threading.Thread(target=_listen, args=(reader, received))
    listener.daemon = True
    with reader, contextlib.ExitStack() as stack:
        listener.start()
        stack.callback(listener.join)
        stack.callback(writer.close)
        # Ends the listener, even if a forked process has a copy of the socket.
        stack.callback(writer.shutdown, socket.SHUT_WR)
        # A signal that is already ignored stays ignored, such as SIGINT in
        # background commands of shells. For other signals, a handler that does
        # nothing keeps the process alive.
        used = [n for n in _SIGNALS if signal.getsignal(n) != signal.SIG_IGN]
        handlers = signals.temporary_handler(lambda *_: None, *used)
        stack.enter_context(handlers)
        earlier = signal.set_wakeup_fd(writer.fileno())
        stack.callback(signal.set_wakeup_fd, earlier)
        yield received


@contextlib.contextmanager
def waiting_for_hosts() -> Iterator[None]:
    """Lets Ctrl-C end the process while TensorFlow waits for other hosts.

    TensorFlow waits in C++, where Python's handler would not run. It also
    replaces the handler of SIGTERM; this is undone here.
    """
    sigterm_handler = signal.getsignal(signal.SIGTERM)
    with (
        signals.temporary_handler(sigterm_handler, signal.SIGTERM),
        signals.temporary_handler(signal.SIG_DFL, signal.SIGINT),
    ):
        yield


def _listen(reader: socket.socket, received: ReceivedSignal) -> None:
    """Reads the numbers of signals until the socket is closed."""
    while data := reader.recv(1):
        number = data[0]
        if number == signal.SIGINT and received.signal:
            print("\nStopped without saving.", file=sys.stderr)
            # The main thread may be inside a step.
            os._exit(128 + signal.SIGINT)
        if number in _SIGNALS and not received.signal:
            received.signal = signal.Signals(number).name
            logging.info(
                "%s: saving and stopping after this step. Press Ctrl-C%s to "
                "stop now, without saving.",
                received.signal,
                " again" if number == signal.SIGINT else "",
            )
