"""--nsp=sop makes ordered or swapped pairs, --nsp=none single segments.

Every word of the text is different and numbered by position, so the records
show where the segments come from.
"""

import random

import numpy as np
import pytest
import scipy.stats
from support import pretraining_records
from support.pretraining_records import make

from official_bert.errors import InputError

CLS, SEP = 2, 3
FIRST = len(pretraining_records.SPECIAL)  # The id of the first word.
LENGTH = 32


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Returns a directory, document boundaries and sentence boundaries."""
    rng = random.Random(0)
    words, documents, starts, sentences = [], [], [], []
    for _ in range(300):
        lines = []
        starts.append(len(words))
        for _ in range(rng.choice([1, 2, 3, 8, 20])):
            new = [f"w{len(words) + n}" for n in range(rng.randint(1, 14))]
            sentences.append(len(words))
            words += new
            lines.append(" ".join(new))
        documents.append("\n".join(lines))
    directory = pretraining_records.write_inputs(
        tmp_path_factory.mktemp("inputs"), "\n\n".join(documents), words
    )
    ends = [len(words)]
    return directory, np.array(starts + ends), {*sentences, *ends}


def instances(path):
    """Yields the unmasked ids, the segments and the label of each record."""
    rows = pretraining_records.parse(path, LENGTH, 5)
    ids = rows["input_ids"].copy()
    index, slots = np.nonzero(rows["masked_lm_weights"])
    places = rows["masked_lm_positions"][index, slots]
    ids[index, places] = rows["masked_lm_ids"][index, slots]
    lengths = rows["input_mask"].sum(1)
    labels = rows["next_sentence_labels"][:, 0]
    for number, length in enumerate(lengths):
        segments = rows["segment_ids"][number]
        assert not ids[number, length:].any()
        assert not segments[length:].any()
        yield ids[number, :length], segments[:length], labels[number]


def split(ids, segments):
    """Returns the positions of the words of a pair."""
    num_a = int((segments == 0).sum())
    assert ids[0] == CLS
    assert ids[num_a - 1] == ids[-1] == SEP
    a, b = ids[1 : num_a - 1] - FIRST, ids[num_a:-1] - FIRST
    for segment in (a, b):
        assert min(segment) >= 0
        np.testing.assert_array_equal(np.diff(segment), 1)
    return a, b


both_modes = pytest.mark.parametrize("num_workers", [0, 1])


@both_modes
def test_sop_pairs_are_neighbors_in_either_order(inputs, tmp_path, num_workers):
    directory, borders, _ = inputs
    out = tmp_path / "out"
    make(directory, out, nsp="sop", num_workers=num_workers, dupe_factor=3)
    labels = []
    num_touching = num_short = 0
    for ids, segments, label in instances(out):
        a, b = split(ids, segments)
        first, second = (b, a) if label else (a, b)
        assert first[-1] < second[0]
        assert not ((borders > first[0]) & (borders <= second[-1])).any()
        # There is a gap only if a segment was truncated.
        if len(ids) < LENGTH:
            assert first[-1] + 1 == second[0]
            num_short += 1
        num_touching += first[-1] + 1 == second[0]
        labels.append(label)
    assert num_touching > num_short > 500
    counts = np.bincount(labels, minlength=2)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@both_modes
def test_none_makes_single_segments_of_whole_sentences(
    inputs, tmp_path, num_workers
):
    directory, borders, sentences = inputs
    out = tmp_path / "out"
    make(directory, out, nsp="none", num_workers=num_workers, dupe_factor=3)
    seen = set()
    for ids, segments, label in instances(out):
        assert label == 0
        assert not segments.any()
        assert (ids[0], ids[-1]) == (CLS, SEP)
        words = ids[1:-1] - FIRST
        np.testing.assert_array_equal(np.diff(words), 1)
        assert min(words) >= 0
        assert not ((borders > words[0]) & (borders <= words[-1])).any()
        if len(ids) < LENGTH:  # Not truncated.
            assert words[0] in sentences
            assert words[-1] + 1 in sentences
        seen |= set(words.tolist())
    # All text except what was truncated in every round.
    assert len(seen) > 0.8 * max(sentences)


@pytest.mark.parametrize("nsp", ["sop", "none"])
def test_only_the_last_sequence_of_a_document_is_short(inputs, tmp_path, nsp):
    directory, borders, _ = inputs
    make(directory, tmp_path / "long", nsp=nsp, short_seq_prob=0.0)
    ids = [ids for ids, _, _ in instances(tmp_path / "long")]
    last_words = {max(i) - FIRST for i in ids if len(i) < LENGTH}
    assert {word + 1 for word in last_words} <= set(borders)
    make(directory, tmp_path / "short", nsp=nsp, short_seq_prob=1.0)
    short = [len(ids) for ids, _, _ in instances(tmp_path / "short")]
    assert np.mean(short) < 0.85 * np.mean([*map(len, ids)])


@pytest.mark.parametrize("nsp", ["sop", "none"])
def test_records_do_not_depend_on_the_number_of_workers(inputs, tmp_path, nsp):
    directory, _, _ = inputs
    serial, one, two = (
        make(directory, tmp_path / "out", nsp=nsp, num_workers=number)
        for number in (0, 1, 2)
    )
    assert one == two
    assert one != serial


@both_modes
@pytest.mark.parametrize("nsp", ["sop", "none"])
def test_packed_rows_contain_the_same_instances(
    inputs, tmp_path, nsp, num_workers
):
    directory, _, _ = inputs
    counts = {}
    for packed in (None, 16):
        make(
            directory,
            tmp_path / "out",
            nsp=nsp,
            num_workers=num_workers,
            pack_sequences=bool(packed),
        )
        rows = pretraining_records.parse(tmp_path / "out", LENGTH, 5, packed)
        counts[packed] = (
            len(rows["input_ids"]),
            np.count_nonzero(rows["input_mask"]),
            np.count_nonzero(rows["masked_lm_weights"]),
            rows["segment_ids"].sum(),
            rows["next_sentence_labels"].sum(),
        )
    assert counts[16][1:] == counts[None][1:]
    assert counts[16][0] < counts[None][0]


@both_modes
def test_sop_without_an_orderable_document_is_an_error(tmp_path, num_workers):
    out = tmp_path / "out"
    how = {"dupe_factor": 3, "num_workers": num_workers}
    pretraining_records.write_inputs(tmp_path, "a\n\nb\n", "ab")
    out.write_bytes(b"before")
    with pytest.raises(InputError, match="--nsp=sop"):
        make(tmp_path, out, nsp="sop", **how)
    assert out.read_bytes() == b"before"
    make(tmp_path, out, nsp="none", **how)
    assert len(list(instances(out))) == 6
    (tmp_path / "text.txt").write_text("a\n\na b\n\na\nb\n")
    make(tmp_path, out, nsp="sop", **how)
    assert len(list(instances(out))) == 6  # Two documents, three rounds.
