"""Records are masked segments of the text, as --nsp asks.

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
        num_masked = int(rows["masked_lm_weights"][number].sum())
        assert num_masked == min(5, max(1, round(0.15 * length)))
        assert not rows["masked_lm_positions"][number, num_masked:].any()
        segments = rows["segment_ids"][number]
        assert not ids[number, length:].any()
        assert not segments[length:].any()
        yield ids[number, :length], segments[:length], labels[number]


def words_of(ids):
    """Returns where the words of a segment, ended by [SEP], are in the text."""
    words = ids[:-1] - FIRST
    assert ids[-1] == SEP
    assert min(words) >= 0
    np.testing.assert_array_equal(np.diff(words), 1)
    return words


both_modes = pytest.mark.parametrize("num_workers", [0, 1])


@both_modes
@pytest.mark.parametrize("nsp", ["next", "sop"])
def test_pairs_are_spans_of_documents(inputs, tmp_path, nsp, num_workers):
    directory, borders, _ = inputs
    out = tmp_path / "out"
    make(directory, out, nsp=nsp, num_workers=num_workers, dupe_factor=3)
    labels = []
    num_touching = num_short = 0
    for ids, segments, label in instances(out):
        assert ids[0] == CLS
        a, b = (words_of(ids[segments == n][1 - n :]) for n in (0, 1))
        labels.append(label)
        spans = [np.concatenate([a, b])]
        if nsp == "sop":
            spans = [np.concatenate([b, a] if label else [a, b])]
        elif label:
            spans = [a, b]  # Of any two documents.
        for span in spans:
            assert (np.diff(span) > 0).all()
            assert not ((borders > span[0]) & (borders <= span[-1])).any()
        if len(spans) == 1:
            # There is a gap only if a segment was truncated.
            is_touching = (np.diff(spans[0]) == 1).all()
            assert is_touching or len(ids) == LENGTH
            num_touching += is_touching
            num_short += len(ids) < LENGTH
    # Most pairs of "next" are of two documents.
    assert num_touching > num_short > (500 if nsp == "sop" else 300)
    if nsp == "sop":
        counts = np.bincount(labels, minlength=2)
        assert scipy.stats.chisquare(counts).pvalue > 1e-3
    else:
        assert 0.5 < np.mean(labels) < 0.8


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
        assert ids[0] == CLS
        words = words_of(ids[1:])
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
