import os
import signal
import threading
import time

import pytest
from support.processes import run_python

from official_bert.errors import InputError
from official_bert.pretraining_data.job import Job
from official_bert.pretraining_data.workers import Workers


def slow_square(job, number):
    assert job.corpus_directory == "here"
    time.sleep(0.02 * (number % 3))
    return number**2, os.getpid()


def fail(job, number):
    raise InputError(f"number {number}")


def die(job, number):
    os.kill(os.getpid(), signal.SIGKILL)


def workers(number):
    return Workers(number, Job(None, "here"))


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_results_are_in_order_and_few_items_are_read_ahead(number):
    taken = []
    with workers(number) as pool:
        items = (taken.append(i) or i for i in range(20))
        results = pool.map(slow_square, items)
        first = next(results)
        assert len(taken) <= 2 * number
        results = [first, *results]
    assert [square for square, _ in results] == [i**2 for i in range(20)]
    is_in_this_process = {process for _, process in results} == {os.getpid()}
    assert is_in_this_process == (number == 1)


def test_failed_workers_are_reported():
    with workers(2) as pool, pytest.raises(InputError, match="number 0"):
        list(pool.map(fail, range(5)))


def test_killed_workers_are_reported():
    items = ["a" * 2**20] * 5  # Larger than the buffer of a pipe.
    message = "--num_workers=2: .* killed"
    with pytest.raises(InputError, match=message), workers(2) as pool:
        list(pool.map(die, items))


# In its own process, because forks need a process without threads.
FAILED_START = """
import errno, os
from official_bert.errors import InputError
from official_bert.pretraining_data.workers import Workers

fork, started = os.fork, []

def fork_twice():
    if len(started) == 2:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    started.append(fork())
    return started[-1]

os.fork = fork_twice
try:
    Workers(4, None).__enter__()
except InputError as error:
    print(error, *started, sep="\\n")
"""


def test_failed_start_is_reported_and_leaves_no_process():
    done = run_python("-c", FAILED_START, timeout=60)
    message, *started = done.stdout.splitlines()
    assert message.startswith("--num_workers=4: ")
    assert len(started) == 2
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)


def sleep(job, seconds):
    time.sleep(seconds)


@pytest.mark.slow
def test_second_interruption_during_shutdown_is_ignored():
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)

    with workers(2) as pool:
        next(pool.map(sleep, [0.0, 1.0, 1.0]))
        threading.Timer(0.3, interrupt).start()  # While the others sleep.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


RAISED = """
import time
from official_bert.pretraining_data.workers import Workers

def sleep(job, seconds):
    time.sleep(seconds)

with Workers(2, None) as pool:
    next(pool.map(sleep, [0, 3600, 3600]))
    raise SystemExit(3)
"""


def test_busy_workers_are_killed_if_the_block_raises():
    run_python("-c", RAISED, status=3, timeout=60)
