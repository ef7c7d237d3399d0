"""The Beam pipeline writes the records of --num_workers."""

import logging
import random

import pytest

import create_pretraining_data
from official_bert.errors import InputError
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import parallel

pytest.importorskip(
    "apache_beam", reason="needs pip install -r requirements-beam.txt"
)

# Beam and its dependencies raise warnings of their own.
pytestmark = pytest.mark.filterwarnings("default")

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat . it was warm ##s"


@pytest.fixture
def directory(tmp_path):
    words = TOKENS.split()[5:-1]
    rng = random.Random(1)
    lines = [" ".join(rng.choices(words, k=9)) for _ in range(400)]
    lines[::20] = [""] * 20
    (tmp_path / "text.txt").write_text("\n".join(lines))
    (tmp_path / "vocab.txt").write_text("\n".join(TOKENS.split()))
    return tmp_path


def make(directory, names, **changes):
    before = set(directory.iterdir())
    create_pretraining_data.main(
        CreatePretrainingData(
            input_file=str(directory / "text.txt"),
            output_file=",".join(str(directory / name) for name in names),
            vocab_file=str(directory / "vocab.txt"),
            max_seq_length=32,
            max_predictions_per_seq=5,
            **changes,
        )
    )
    outputs = {directory / name for name in names}
    assert set(directory.iterdir()) == before | outputs  # No other files.
    return [(directory / name).read_bytes() for name in names]


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
def test_records_equal_those_of_workers(directory, changes):
    logging.getLogger().setLevel(logging.WARNING)
    beam = make(directory, ["a", "b"], runner="DirectRunner", **changes)
    local = {k: v for k, v in changes.items() if k != "beam_options"}
    assert beam == make(directory, ["c", "d"], num_workers=1, **local)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"runner": "DataflowRunner", "beam_options": "--region=x"}, "project"),
        ({"beam_options": "--direct_num_workers=many"}, "2"),  # Raised by Beam.
    ],
)
def test_runner_and_its_options_are_checked_before_the_text_is_read(
    directory, monkeypatch, changes, error
):
    monkeypatch.setattr(parallel, "store_corpus", None)
    with pytest.raises((InputError, SystemExit), match=error):
        make(directory, ["a"], **{"runner": "DirectRunner", **changes})
