"""Commands of this project as processes of their own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from official_bert.io import signals

# The directory that contains the package.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))

# Seconds from Ctrl-C to SIGTERM, for a process that Ctrl-C did not reach.
_GRACE = 2.0


def start(*arguments: str, **others: Any) -> subprocess.Popen[bytes]:
    """Starts Python with arguments; it imports this copy of the package.

    `others` are arguments of `subprocess.Popen`.
    """
    paths = filter(None, (_ROOT, os.environ.get("PYTHONPATH")))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if arguments[0] == "-m":  # A random.py in this directory hides nothing.
        env["PYTHONSAFEPATH"] = "1"
    return subprocess.Popen([sys.executable, *arguments], env=env, **others)


def start_command(name: str, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a command such as `run_classifier`."""
    return start("-m", "official_bert", name, *flags)


def wait(process: subprocess.Popen[bytes]) -> int:
    """Returns the exit status of a process, or -N if signal N killed it.

    Ctrl-C and SIGTERM also stop the process. After its end, they raise
    `KeyboardInterrupt` or `SystemExit`, whatever its exit status is.
    """
    stopped_by = []

    def stop(number: int, _: Any) -> None:
        stopped_by.append(number)
        process.send_signal(number)

    with (
        signals.temporary_handler(stop, signal.SIGTERM),
        signals.interruptible_waits(),
    ):
        try:
            status = process.wait()
        except KeyboardInterrupt:
            # A terminal sends Ctrl-C to both, but `kill` does not. Training
            # ignores the SIGTERM that follows another signal.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_GRACE)
            process.terminate()
            process.wait()
            raise
    if stopped_by:
        sys.exit(128 + signal.SIGTERM)  # As a shell does.
    return status
