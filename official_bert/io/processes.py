"""Commands of this project as processes of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence

# The directory that contains the package.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Starts Python with arguments; it imports this copy of the package."""
    paths = filter(None, (_ROOT, os.environ.get("PYTHONPATH")))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen([sys.executable, *arguments], env=env)


def start_command(name: str, flags: Sequence[str]) -> subprocess.Popen[bytes]:
    """Starts a command such as `run_classifier`."""
    return start("-m", "official_bert", name, *flags)
