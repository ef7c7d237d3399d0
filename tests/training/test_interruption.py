"""Signals are recorded during a step; a second Ctrl-C kills the process."""

import signal
import subprocess
from concurrent import futures

import pytest
from support import hosts
from support.processes import run_python, started

from official_bert.io import signals
from official_bert.training import interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# Like a TensorFlow step, `sleep` is a call into C: Python's handlers run only
# after it.
CHILD = """
import ctypes, sys, time
from absl import logging
from official_bert.training import interruption

logging.set_verbosity(logging.INFO)
with interruption.watched() as received:
    print("ready", file=sys.stderr, flush=True)
    while not received.signal:
        time.sleep(0.01)
    ctypes.PyDLL(None).sleep(60)
"""


# A signal arrives while text is written, such as a progress bar.
WRITING = """
import io, os, signal, sys

class Stream(io.RawIOBase):
    def writable(self):
        return True

    def write(self, data):
        signal.raise_signal(signal.SIGTERM)
        return os.write(2, data)

sys.stderr = io.TextIOWrapper(io.BufferedWriter(Stream()), line_buffering=True)
from official_bert.training import interruption

with interruption.watched() as received:
    print("a progress bar", file=sys.stderr)
print(received.signal)
"""


# Ctrl-C in `command 2>&1 | tee log` also ends `tee`.
WITHOUT_READER = """
import os, signal
from official_bert.io import progress
from official_bert.training import interruption

reader, writer = os.pipe()
os.close(reader)
os.dup2(writer, 2)
with (
    interruption.watched() as received,
    progress.bar(description="Training", total=2) as bar,
):
    signal.raise_signal(signal.SIGINT)
    bar.refresh()
print(received.signal)
"""


@pytest.mark.parametrize("number", SIGNALS)
def test_first_signal_is_recorded_and_handlers_are_restored(number):
    def handler(*_):
        pass

    # `nohup` and background commands of shells ignore some signals.
    with signals.temporary_handler(handler, *SIGNALS):
        with interruption.watched() as received:
            assert received.signal == ""
            signal.raise_signal(number)
            assert received.signal == number.name
            signal.raise_signal(signal.SIGTERM)  # Has no effect.
            assert received.signal == number.name
        assert {signal.getsignal(number) for number in SIGNALS} == {handler}


def test_signal_during_a_write_to_stderr_is_reported_without_an_error():
    done = run_python("-c", WRITING)
    assert done.stdout == "SIGTERM\n"
    for text in ("a progress bar\n", "SIGTERM: saving and stopping"):
        assert text in done.stderr


def test_signal_that_also_ends_the_reader_of_stderr_is_no_error():
    assert run_python("-c", WITHOUT_READER).stdout == "SIGINT\n"


def test_ignored_signals_stay_ignored():
    with (
        signals.temporary_handler(signal.SIG_IGN, signal.SIGINT),
        interruption.watched() as received,
    ):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
        assert received.signal == "SIGTERM"


def test_ctrl_c_interrupts_again_after_an_error_in_the_block():
    with pytest.raises(ZeroDivisionError), interruption.watched():
        1 / 0  # noqa: B018
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_receive_no_signals():
    def run():
        with interruption.watched() as received:
            return received.signal

    with futures.ThreadPoolExecutor() as pool:
        assert pool.submit(run).result() == ""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_after_a_signal_kills_the_process_during_a_step(first):
    with started("-c", CHILD, stderr=subprocess.PIPE) as process:
        hosts.read_until(process, "ready")
        process.send_signal(first)
        again = " again" if first == signal.SIGINT else ""
        hosts.read_until(process, f"Press Ctrl-C{again} to stop now")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == -signal.SIGINT
