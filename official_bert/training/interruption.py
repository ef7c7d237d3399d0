"""SIGINT (Ctrl-C), SIGTERM, SIGHUP: finish the step, save, exit."""

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

from official_bert.io import signals


class ReceivedSignal:
    """The name of the first signal that asked the run to stop, if any."""

    signal = ""


@contextlib.contextmanager
def watched() -> Iterator[ReceivedSignal]:
    """Records the first signal; a later Ctrl-C kills the process.

    Python runs signal handlers between two bytecodes, and a training step (or
    the inner loop of `--iterations_per_loop`) is one bytecode. So a first
    signal is recorded and reported when the step ends. From then on SIGINT has
    its default action, which needs no Python and ends the process even in the
    middle of a step. A second SIGTERM has no effect, because `timeout` and some
    schedulers send it twice.

    SIGHUP is sent if the terminal is closed. A signal that is already ignored
    stays ignored, such as SIGINT in background commands of shells. Only the
    main thread can handle signals, so in other threads, none are recorded.
    """
    received = ReceivedSignal()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    used = [n for n in numbers if signal.getsignal(n) != signal.SIG_IGN]

    def record(number: int, _: Any) -> None:
        if received.signal:
            return
        received.signal = signal.Signals(number).name
        message = f"{received.signal}: saving and stopping after this step."
        if signal.SIGINT in used:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            again = " again" if number == signal.SIGINT else ""
            message += f" Press Ctrl-C{again} to stop now, without saving."
        # Not through `sys.stderr`: the signal may have interrupted a write to
        # it, and a second one inside the first is an error.
        with contextlib.suppress(OSError):  # Ctrl-C ends its reader, too.
            os.write(2, f"\n{message}\n".encode())

    with signals.temporary_handler(record, *used):
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
