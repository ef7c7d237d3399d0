"""--nsp=sop makes ordered or swapped pairs, --nsp=none single segments.

Every word of the text is different and numbered by position, so the records
show where the segments come from.
"""

import random

import numpy as np
import pytest
import scipy.stats

import create_pretraining_data
from official_bert.errors import InputError
from official_bert.inputs import records, schemas
from official_bert.options import CreatePretrainingData

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CLS, SEP = 2, 3
FIRST = len(SPECIAL)  # The id of the first word.
LENGTH = 32


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Returns a directory, document boundaries and sentence boundaries."""
    directory = tmp_path_factory.mktemp("inputs")
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
    (directory / "text.txt").write_text("\n\n".join(documents))
    (directory / "vocab.txt").write_text("\n".join([*SPECIAL, *words]))
    ends = [len(words)]
    return directory, np.array(starts + ends), {*sentences, *ends}


def make(inputs, tmp_path, **changes):
    directory, _, _ = inputs
    options = CreatePretrainingData(
        **{
            "input_file": str(directory / "text.txt"),
            "output_file": str(tmp_path / "out"),
            "vocab_file": str(directory / "vocab.txt"),
            "max_seq_length": LENGTH,
            "max_predictions_per_seq": 5,
            "dupe_factor": 3,
            **changes,
        }
    )
    create_pretraining_data.main(options)
    return (tmp_path / "out").read_bytes()


def read(tmp_path):
    """Yields the unmasked ids, the segments and the label of each record."""
    schema = schemas.pretraining_schema(LENGTH, 5)
    dataset = records.read(str(tmp_path / "out")).batch(100_000)
    [batch] = dataset.as_numpy_iterator()
    parsed = {k: v.numpy() for k, v in records.parse(schema, batch).items()}
    ids = parsed["input_ids"].copy()
    rows, slots = np.nonzero(parsed["masked_lm_weights"])
    places = parsed["masked_lm_positions"][rows, slots]
    ids[rows, places] = parsed["masked_lm_ids"][rows, slots]
    lengths = parsed["input_mask"].sum(1)
    labels = parsed["next_sentence_labels"][:, 0]
    for number, length in enumerate(lengths):
        segments = parsed["segment_ids"][number]
        assert not ids[number, length:].any()
        assert not segments[length:].any()
        yield ids[number, :length], segments[:length], labels[number]


def split(ids, segments):
    """Returns the positions of the words of a pair."""
    num_a = int((segments == 0).sum())
    assert ids[0] == CLS
    assert ids[num_a - 1] == ids[-1] == SEP
    a, b = ids[1 : num_a - 1] - FIRST, ids[num_a:-1] - FIRST
    assert min(a) >= 0
    assert min(b) >= 0
    for segment in (a, b):
        np.testing.assert_array_equal(np.diff(segment), 1)
    return a, b


both_modes = pytest.mark.parametrize("num_workers", [0, 2])


@both_modes
def test_sop_pairs_are_neighbors_in_either_order(inputs, tmp_path, num_workers):
    _, borders, _ = inputs
    make(inputs, tmp_path, nsp="sop", num_workers=num_workers)
    labels = []
    num_touching = num_short = 0
    for ids, segments, label in read(tmp_path):
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
    _, borders, sentences = inputs
    make(inputs, tmp_path, nsp="none", num_workers=num_workers)
    seen = set()
    for ids, segments, label in read(tmp_path):
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
    _, borders, _ = inputs
    make(inputs, tmp_path, nsp=nsp, short_seq_prob=0.0)
    made = list(read(tmp_path))
    last_words = {max(ids) - FIRST for ids, _, _ in made if len(ids) < LENGTH}
    assert {word + 1 for word in last_words} <= set(borders)
    make(inputs, tmp_path, nsp=nsp, short_seq_prob=1.0)
    short = [len(ids) for ids, _, _ in read(tmp_path)]
    assert np.mean(short) < 0.85 * np.mean([len(ids) for ids, _, _ in made])


@pytest.mark.parametrize("nsp", ["sop", "none"])
def test_records_do_not_depend_on_the_number_of_workers(inputs, tmp_path, nsp):
    one = make(inputs, tmp_path, nsp=nsp, num_workers=1)
    assert one == make(inputs, tmp_path, nsp=nsp, num_workers=2)
    assert one != make(inputs, tmp_path, nsp=nsp)


@both_modes
@pytest.mark.parametrize("nsp", ["sop", "none"])
def test_packed_rows_contain_the_same_instances(
    inputs, tmp_path, nsp, num_workers
):
    def count(**changes):
        make(inputs, tmp_path, nsp=nsp, num_workers=num_workers, **changes)
        names = records.read(str(tmp_path / "out")).batch(100_000)
        [batch] = names.as_numpy_iterator()
        if changes:
            schema = schemas.packed_schema(LENGTH, 5, 16)
        else:
            schema = schemas.pretraining_schema(LENGTH, 5)
        rows = {k: v.numpy() for k, v in records.parse(schema, batch).items()}
        return (
            len(batch),
            np.count_nonzero(rows["input_mask"]),
            np.count_nonzero(rows["masked_lm_weights"]),
            rows["segment_ids"].sum(),
            rows["next_sentence_labels"].sum(),
        )

    num_plain, *plain = count()
    num_packed, *packed = count(pack_sequences=True)
    assert packed == plain
    assert num_packed < num_plain


def test_sop_without_an_orderable_document_is_an_error(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "a", "b"]))
    (tmp_path / "text.txt").write_text("a\n\nb\n")
    (tmp_path / "out").write_bytes(b"before")
    inputs = tmp_path, None, None
    for num_workers in (0, 1):
        with pytest.raises(InputError, match="--nsp=sop"):
            make(inputs, tmp_path, nsp="sop", num_workers=num_workers)
        assert (tmp_path / "out").read_bytes() == b"before"
    make(inputs, tmp_path, nsp="none")
    assert len(list(read(tmp_path))) == 6
    (tmp_path / "text.txt").write_text("a\n\na b\n\na\nb\n")
    make(inputs, tmp_path, nsp="sop")
    assert len(list(read(tmp_path))) == 6  # Of two documents, in three rounds.
