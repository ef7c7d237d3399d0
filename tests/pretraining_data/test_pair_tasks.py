"""Records are masked segments of the text, paired as --nsp says.

Every word of the text is different and numbered by position, so the records
show where the segments come from.
"""

import random

import numpy as np
import pytest
import scipy.stats
from support import SPECIAL, pretraining_records
from support.pretraining_records import make

from official_bert.errors import InputError

CLS, SEP = 2, 3
FIRST = len(SPECIAL)  # The id of the first word.
LENGTH = 32


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Returns a directory, document boundaries and sentence boundaries."""
    rng = random.Random(0)
    words, lines, documents, sentences = [], [], [0], {0}
    for _ in range(300):
        for _ in range(rng.choice([1, 2, 3, 8, 20])):
            new = [f"w{len(words) + n}" for n in range(rng.randint(1, 14))]
            lines.append(" ".join(new))
            words += new
            sentences.add(len(words))
        lines.append("")
        documents.append(len(words))
    directory = pretraining_records.write_inputs(
        tmp_path_factory.mktemp("inputs"), "\n".join(lines), words
    )
    return directory, np.array(documents), sentences


def instances(path):
    """Yields the unmasked ids, the segments and the label of each record."""
    rows = pretraining_records.parse(path, LENGTH, 5)
    for number, length in enumerate(rows["input_mask"].sum(1)):
        row = {name: column[number] for name, column in rows.items()}
        ids, segments = row["input_ids"].copy(), row["segment_ids"]
        num_masked = int(row["masked_lm_weights"].sum())
        assert num_masked == min(5, max(1, round(0.15 * length)))
        places = row["masked_lm_positions"]
        ids[places[:num_masked]] = row["masked_lm_ids"][:num_masked]
        for padding in (places[num_masked:], ids[length:], segments[length:]):
            assert not padding.any()
        yield ids[:length], segments[:length], row["next_sentence_labels"][0]


def words_of(ids):
    """Returns the positions in the text of a segment that ends with [SEP]."""
    words = ids[:-1] - FIRST
    assert ids[-1] == SEP
    assert min(words) >= 0
    np.testing.assert_array_equal(np.diff(words), 1)
    return words


def is_in_one_document(words, borders):
    return not ((borders > words[0]) & (borders <= words[-1])).any()


both_modes = pytest.mark.parametrize("num_workers", [0, 1])


@pytest.mark.slow
@both_modes
@pytest.mark.parametrize("nsp", ["next", "sop"])
def test_pairs_are_spans_of_documents(inputs, tmp_path, nsp, num_workers):
    directory, borders, _ = inputs
    out = tmp_path / "out"
    make(directory, out, nsp=nsp, num_workers=num_workers, dupe_factor=3)
    labels, other_documents = [], []
    num_touching = num_short = 0
    for ids, segments, label in instances(out):
        assert ids[0] == CLS
        a, b = words_of(ids[segments == 0][1:]), words_of(ids[segments == 1])
        labels.append(label)
        if nsp == "next" and label:
            assert is_in_one_document(a, borders)
            assert is_in_one_document(b, borders)
            assert not is_in_one_document(sorted([*a, *b]), borders)
            other_documents.append(np.searchsorted(borders, b[-1], "right"))
            continue
        span = np.concatenate([b, a] if label else [a, b])
        assert is_in_one_document(span, borders)
        steps = np.diff(span)
        assert (steps > 0).all()
        # There is a gap only if a segment was truncated.
        is_touching = (steps == 1).all()
        assert is_touching or len(ids) == LENGTH
        num_touching += is_touching
        num_short += len(ids) < LENGTH
    # With "next", most pairs come from two documents.
    assert num_touching > num_short > (500 if nsp == "sop" else 300)
    if nsp == "sop":
        counts = np.bincount(labels, minlength=2)
        assert scipy.stats.chisquare(counts).pvalue > 1e-3
    else:
        assert 0.5 < np.mean(labels) < 0.8
        counts = np.histogram(other_documents, 20, (1, 301))[0]
        assert scipy.stats.chisquare(counts).pvalue > 1e-3


@both_modes
def test_nsp_none_segments_are_whole_sentences(inputs, tmp_path, num_workers):
    directory, borders, sentences = inputs
    out = tmp_path / "out"
    make(directory, out, nsp="none", num_workers=num_workers, dupe_factor=3)
    seen = set()
    for ids, segments, label in instances(out):
        assert (label, segments.any(), ids[0]) == (0, False, CLS)
        words = words_of(ids[1:])
        assert is_in_one_document(words, borders)
        if len(ids) < LENGTH:  # Not truncated.
            assert words[0] in sentences
            assert words[-1] + 1 in sentences
        seen |= set(words.tolist())
    # All text except words that were truncated in every round.
    assert len(seen) > 0.8 * max(sentences)


@pytest.mark.slow
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
def test_sop_needs_a_document_of_two_tokens(tmp_path, num_workers):
    out = tmp_path / "out"
    flags = {"dupe_factor": 3, "num_workers": num_workers}
    pretraining_records.write_inputs(tmp_path, "a\n\nb\n", "ab")
    out.write_bytes(b"before")
    with pytest.raises(InputError, match="--nsp=sop"):
        make(tmp_path, out, nsp="sop", **flags)
    assert out.read_bytes() == b"before"
    make(tmp_path, out, nsp="none", **flags)
    assert len(list(instances(out))) == 6
    (tmp_path / "text.txt").write_text("a\n\na b\n\na\nb\n")
    make(tmp_path, out, nsp="sop", **flags)
    assert len(list(instances(out))) == 6  # Two documents, three rounds.
