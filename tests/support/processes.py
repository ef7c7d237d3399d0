"""Other Python processes, with their output."""

import contextlib
import os
import subprocess
import sys

import pytest

from support import ROOT


def run_python(*arguments, status=0, env=None, timeout=300, **options):
    """Returns a finished Python process with its stdout and stderr as text.

    It must end with `status`, unless that is None, within `timeout` seconds. By
    default it has this process' environment, and imports this project.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env=env or {**os.environ, "PYTHONPATH": str(ROOT)},
        **options,
    )
    assert status in (None, done.returncode), done.stderr[-4000:]
    return done


@contextlib.contextmanager
def started(*arguments, **options):
    """Yields a running Python process; kills it if the block raises.

    `options` are arguments of `subprocess.Popen`, which would wait for it.
    """
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def python_with(packages, variable):
    """Returns a Python that has packages, or skips the test.

    It is this one or the one that an environment variable names.
    """
    python = os.environ.get(variable, sys.executable)
    command = [python, "-c", f"import {packages}"]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip(
            f"needs {packages}, here or in the Python that the environment "
            f"variable {variable} names"
        )
    return python


def run_offline(python, *arguments):
    """Runs a Python that must not use the Hugging Face Hub."""
    line = [python, *map(str, arguments)]
    env = {**os.environ, "HF_HUB_OFFLINE": "1"}
    subprocess.run(line, check=True, capture_output=True, env=env)
