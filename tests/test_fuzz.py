"""Damaged files and odd flags end in a message, or are accepted."""

import pytest

from benchmarks import fuzz


@pytest.mark.slow
def test_damaged_inputs_raise_input_errors_and_change_no_file(tmp_path):
    inputs, faults = tmp_path / "inputs", tmp_path / "faults"
    with fuzz.fuzzer(str(inputs), str(faults)) as fuzzer:
        for reader in fuzz.READERS:
            fuzzer.try_inputs(reader, number=18, seed=1)
    num_tried = sum(counts["tried"] for counts in fuzzer.counts.values())
    assert num_tried >= 300
    reports = [path.read_text() for path in faults.glob("*/report.txt")]
    assert not fuzzer.num_faults, "\n".join([fuzzer.table(), *reports])
