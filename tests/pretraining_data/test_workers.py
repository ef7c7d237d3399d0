"""Work in several processes: in order, not too far ahead, and if one dies."""

import os
import signal
import subprocess
import sys
import time

import pytest

from official_bert.errors import InputError
from official_bert.pretraining_data.recipe import Recipe
from official_bert.pretraining_data.workers import Workers


def slow_square(recipe, number):
    assert recipe.folder == "here"
    time.sleep(0.02 * (number % 3))
    return number**2, os.getpid()


def fail(recipe, number):
    raise InputError(f"number {number}")


def die(recipe, number):
    os.kill(os.getpid(), signal.SIGKILL)


def workers(number):
    return Workers(number, Recipe(options=None, folder="here"))


@pytest.mark.parametrize("number", [1, 3])
def test_results_come_in_order_and_are_not_made_far_ahead(number):
    taken = []
    with workers(number) as pool:
        results = pool.map(
            slow_square, (taken.append(i) or i for i in range(20))
        )
        first, _ = next(results)
        assert first == 0
        assert len(taken) <= 2 * number
        rest = list(results)
    assert [square for square, _ in rest] == [i**2 for i in range(1, 20)]
    assert ({process for _, process in rest} == {os.getpid()}) == (number == 1)


def test_errors_of_workers_arrive_and_a_killed_one_is_noticed():
    with workers(2) as pool:
        with pytest.raises(InputError, match="number 0"):
            list(pool.map(fail, range(5)))
        with pytest.raises(InputError, match=r"from outside.*workers=2"):
            list(pool.map(die, range(5)))


# In a process of its own, as forks are for processes without threads.
REFUSED = """
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


def test_too_many_processes_are_told_and_none_is_left():
    """As where a user may have no more: the third is refused."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSED],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    message, *started = done.stdout.splitlines()
    assert "as --num_workers says. Received: 4, and" in message
    assert len(started) == 2
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)


def test_a_second_interruption_waits_for_the_first(monkeypatch):
    """A pool that is interrupted while it shuts down never ends."""
    with workers(2) as pool:
        shutdown = pool._pool.shutdown

        def interrupted(**how):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            shutdown(**how)

        monkeypatch.setattr(pool._pool, "shutdown", interrupted)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
