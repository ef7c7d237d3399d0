"""The Beam pipeline writes the records of --num_workers."""

import logging
import random

import pytest
from support import pretraining_records
from support.pretraining_records import make

from official_bert.errors import InputError
from official_bert.pretraining_data import parallel

pytest.importorskip("apache_beam", reason="needs the extra beam")

# Beam and its dependencies raise warnings of their own.
pytestmark = pytest.mark.filterwarnings("default")

WORDS = ["the", "cat", "sat", "on", "mat", ".", "it", "was", "warm"]


@pytest.fixture
def inputs(tmp_path):
    rng = random.Random(1)
    lines = [" ".join(rng.choices(WORDS, k=9)) for _ in range(400)]
    lines[::20] = [""] * 20
    return pretraining_records.write_inputs(
        tmp_path, "\n".join(lines), [*WORDS, "##s"]
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"dupe_factor": 40},
        {"do_whole_word_mask": True, "compress": True},
        {"beam_options": "--direct_num_workers=2"},
        {"nsp": "sop", "mask_share": 0.0, "random_share": 0.9},
        {"nsp": "none", "pack_sequences": True},
    ],
    ids=str,
)
def test_records_equal_those_of_workers(inputs, changes):
    logging.getLogger().setLevel(logging.WARNING)
    outputs = f"{inputs}/a,{inputs}/b"
    beam = make(inputs, outputs, runner="DirectRunner", **changes)
    names = {path.name for path in inputs.iterdir()}
    assert names == {"text.txt", "vocab.txt", "a", "b"}
    local = {k: v for k, v in changes.items() if k != "beam_options"}
    assert beam == make(inputs, outputs, num_workers=1, **local)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"runner": "DataflowRunner", "beam_options": "--region=x"}, "project"),
        ({"beam_options": "--direct_num_workers=many"}, "2"),  # Beam's error.
    ],
)
def test_runner_and_its_options_are_checked_before_the_text_is_read(
    inputs, monkeypatch, changes, error
):
    monkeypatch.setattr(parallel, "store_corpus", None)
    with pytest.raises((InputError, SystemExit), match=error):
        make(inputs, inputs / "a", **{"runner": "DirectRunner", **changes})
