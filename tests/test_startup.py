"""Commands answer at once: they parse flags before they import TensorFlow."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

COMMANDS = [*sorted(ROOT.glob("*.py")), *sorted((ROOT / "data").glob("*.py"))]

# What takes a tenth of a second and more to import.
HEAVY = {
    "apache_beam",
    "keras",
    "keras_hub",
    "keras_nlp",
    "matplotlib",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "tensorflow",
    "tensorflow_hub",
    "tensorflow_text",
    "tf_keras",
    "tokenizers",
    "torch",
    "transformers",
}

every_command = pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda path: path.relative_to(ROOT).as_posix()
)


def run(command: pathlib.Path, *arguments: str):
    """Runs a command as a user does, and reports what it imported."""
    return subprocess.run(
        [sys.executable, "-X", "importtime", str(command), *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def imported(stderr: str) -> set[str]:
    lines = re.findall(r"^import time: .* \| +(\S+)$", stderr, re.MULTILINE)
    return {name.partition(".")[0] for name in lines}


@every_command
def test_help_shows_the_flags_without_importing_tensorflow(command):
    result = run(command, "--help")

    assert re.search(r"^ +--\w+", result.stdout, re.MULTILINE)
    assert "Traceback" not in result.stderr
    assert imported(result.stderr) & HEAVY == set()


@every_command
def test_a_wrong_flag_is_refused_without_importing_tensorflow(command):
    result = run(command, "--no_such_flag=1")

    assert "no_such_flag" in result.stderr
    assert "Traceback" not in result.stderr
    assert result.returncode != 0
    assert imported(result.stderr) & HEAVY == set()


def test_a_heavy_import_would_be_noticed(tmp_path):
    command = tmp_path / "slow.py"
    command.write_text("import numpy.linalg")

    assert imported(run(command).stderr) & HEAVY == {"numpy"}
