"""Records of --num_workers do not depend on how the work is divided."""

import random
import re

import pytest
from support import pretraining_records
from support.pretraining_records import make

from official_bert.inputs import tfrecords
from official_bert.inputs.record_tokenizer import SUFFIX
from official_bert.pretraining_data import parallel

TOKENS = ["cat", "sat", "mat", "un", "##happy", "##ly", "dog", "."]
WORDS = ["cat", "sat", "unhappy", "unhappyly", "dog", "."]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Text of 40 documents, and a vocabulary for it."""
    rng = random.Random(0)
    lines = []
    for _ in range(40):
        for _ in range(rng.randint(1, 12)):
            lines.append(" ".join(rng.choices(WORDS, k=rng.randint(1, 14))))
        lines.append("")
    return pretraining_records.write_inputs(
        tmp_path_factory.mktemp("inputs"), "\n".join(lines), TOKENS
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"do_whole_word_mask": True, "short_seq_prob": 0.5},
        {"compress": True, "dupe_factor": 3},
        {"pack_sequences": True, "random_seed": 3},
        {"nsp": "sop"},
        {"nsp": "none"},
    ],
    ids=str,
)
def test_records_do_not_depend_on_num_workers(inputs, tmp_path, changes):
    names = [str(tmp_path / name) for name in "abc"]
    one_worker, two_workers = (
        make(inputs, ",".join(names), num_workers=number, **changes)
        for number in (1, 2)
    )
    assert one_worker == two_workers
    assert len(set(one_worker)) == 3
    written = [f"{name}{end}" for name in names for end in ("", SUFFIX)]
    assert sorted(map(str, tmp_path.iterdir())) == written


@pytest.mark.parametrize("whole_words", [False, True])
def test_records_do_not_depend_on_the_size_of_portions(
    inputs, tmp_path, monkeypatch, whole_words
):
    flags = {"do_whole_word_mask": whole_words, "num_workers": 1}
    expected = make(inputs, tmp_path / "out", **flags)
    monkeypatch.setattr(parallel, "_SENTENCES_PER_WORK_ITEM", 10)
    monkeypatch.setattr(parallel, "_INSTANCES_PER_BUCKET", 50)
    monkeypatch.setattr(parallel, "_PAIRS_IN_MEMORY", 70)
    monkeypatch.setattr(parallel, "BATCH_SIZE", 7)
    assert make(inputs, tmp_path / "out", **flags) == expected


def test_progress_bar_counts_instances(inputs, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(parallel, "_INSTANCES_PER_BUCKET", 50)
    make(inputs, tmp_path / "out", num_workers=1, dupe_factor=2)
    count = tfrecords.count_records(str(tmp_path / "out"))
    last = f"Writing records: 100%.* {count}/{count} .*instances/s"
    assert re.search(last, capsys.readouterr().err)


def test_rounds_and_seeds_give_different_records(inputs, tmp_path):
    rows = []
    for seed in (0, 1):
        make(inputs, tmp_path / "out", num_workers=1, random_seed=seed)
        rows += tfrecords.read(str(tmp_path / "out"))
    assert len(set(rows)) > 0.99 * len(rows)
