"""Signals are recorded during a step; a second Ctrl-C exits."""

import os
import signal
import subprocess
import time
from concurrent import futures

import pytest
from support.processes import started

from official_bert.io import signals
from official_bert.training import interruption

# Like a TensorFlow step, a call into C that Python's handlers cannot interrupt.
CHILD = """
import ctypes, os, signal, sys
from official_bert.training import interruption
with interruption.watched():
    print("ready", flush=True)
    for _ in range(60):
        ctypes.CDLL(None).usleep(1_000_000)
"""


def wait_for_signal(received):
    deadline = time.monotonic() + 10
    while not received.signal:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return received.signal


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_is_recorded_and_handlers_are_restored(number):
    before = signal.getsignal(number)
    with interruption.watched() as received:
        assert received.signal == ""
        os.kill(os.getpid(), number)
        assert wait_for_signal(received) == number.name
        os.kill(os.getpid(), signal.SIGTERM)  # Has no effect.
        time.sleep(0.1)
        assert received.signal == number.name
    assert signal.getsignal(number) == before
    assert signal.set_wakeup_fd(-1) == -1


def test_ignored_signals_stay_ignored():
    with (
        signals.temporary_handler(signal.SIG_IGN, signal.SIGINT),
        interruption.watched() as received,
    ):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert wait_for_signal(received) == "SIGTERM"


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


def test_second_ctrl_c_exits_during_a_step():
    with started("-c", CHILD, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=10) == 128 + signal.SIGINT
        assert time.monotonic() - start < 1
