"""Damaged files and odd flags end in a message, or are accepted."""

import pytest
from support.processes import run_python

# A process of its own, because the fuzzer changes settings of its process.
SCRIPT = """
import pathlib, sys
from tools import fuzz

with fuzz.fuzzing("inputs", "faults") as fuzzer:
    for reader in fuzz.READERS:
        fuzzer.try_inputs(reader, number=5, seed=1)
num_tried = sum(counts["tried"] for counts in fuzzer.counts.values())
assert num_tried >= 80, num_tried
reports = [path.read_text() for path in pathlib.Path().rglob("report.txt")]
sys.exit("\\n".join([fuzzer.table(), *reports]) if fuzzer.num_faults else 0)
"""


@pytest.mark.nightly
def test_damaged_inputs_raise_input_errors_and_change_no_file(tmp_path):
    run_python("-c", SCRIPT, cwd=tmp_path)
