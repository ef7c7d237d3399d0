"""Instances of --num_workers have the distribution of the original's.

The original implementation was run with 24 seeds on the same text. The
recordings have the distances between its runs (chi-square of histograms), and
means and standard deviations of numbers. Random segments B are compared with
those of the default mode.
"""

import json
import random
from collections import Counter

import numpy as np
import pytest
import scipy.stats
from support import pretraining_records

from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import parallel, segment_pairs
from official_bert.pretraining_data.corpus import Corpus

VOCAB_SIZE = 30522
MASK = 103
NUM_SEEDS = 6
# In standard errors. With a probability of 0.1%, one of 16 numbers exceeds it.
TOLERANCE = 4


def statistics(rows, continues):
    """Returns the histograms and numbers that are also recorded."""

    def histogram(values, num_bins, width=1):
        return np.bincount(values // width, minlength=num_bins)

    lengths = rows["input_mask"].sum(1)
    length_b = rows["segment_ids"].sum(1) - 1
    counts = rows["masked_lm_weights"].sum(1).astype(int)
    used = rows["masked_lm_weights"] > 0
    labels = rows["masked_lm_ids"][used]
    places = rows["masked_lm_positions"]
    seen = np.take_along_axis(rows["input_ids"], places, axis=1)[used]
    is_mask, is_kept = seen == MASK, seen == labels
    is_random = ~is_mask & ~is_kept
    labels_next = rows["next_sentence_labels"]
    return {
        "length_hist": histogram(lengths, 17, 8),
        "tokens_a_hist": histogram(lengths - length_b - 3, 17, 8),
        "tokens_b_hist": histogram(length_b, 17, 8),
        "masked_count_hist": histogram(counts, 21),
        "masked_first_continuation": np.bincount(continues[labels]),
        "mask_keep_random": [is_mask.sum(), is_kept.sum(), is_random.sum()],
        "random_token_id_hist": histogram(seen[is_random] * 10, 10, VOCAB_SIZE),
        "nsp_actual_random": np.bincount(labels_next[:, 0]),
        "n_instances": len(lengths),
        "n_tokens": lengths.sum(),
        "n_masked": counts.sum(),
        "masked_fraction": counts.sum() / lengths.sum(),
        "fraction_mask": is_mask.mean(),
        "fraction_keep": is_kept.mean(),
        "fraction_random": is_random.mean(),
        "random_next_fraction": labels_next.mean(),
    }


def chi_square(ours, theirs):
    """Returns the two-sample statistic of histograms of different totals."""
    ours, theirs = (np.array(a, np.float64) for a in (ours, theirs))
    scale = np.sqrt(theirs.sum() / ours.sum())
    is_used = ours + theirs > 0
    ours, theirs = ours[is_used], theirs[is_used]
    return np.sum((ours * scale - theirs / scale) ** 2 / (ours + theirs))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "wwm"])
def test_statistics_of_several_runs_equal_the_original(
    golden, shared_data, tmp_path, kind
):
    vocab_file = shared_data / "vocab" / "uncased.txt"
    tokens = vocab_file.read_text("utf-8").split("\n")
    continues = np.array([token.startswith("##") for token in tokens])
    directory = golden / "pretraining_data"
    ours = []
    for seed in range(NUM_SEEDS):
        pretraining_records.make(
            golden,
            tmp_path / "out",
            input_file=str(directory / "corpus_large.txt"),
            vocab_file=str(vocab_file),
            max_seq_length=128,
            max_predictions_per_seq=20,
            do_whole_word_mask=kind == "wwm",
            dupe_factor=2,
            random_seed=seed,
            num_workers=1,
        )
        rows = pretraining_records.parse(tmp_path / "out", 128, 20)
        ours.append(statistics(rows, continues))
    recorded = json.loads((directory / "tolerance.json").read_text())[kind]
    histograms = recorded["mean_histograms"]
    for name in ours[0]:
        found = [run[name] for run in ours]
        if name in histograms:
            worst = max(chi_square(run, histograms[name]) for run in found)
            assert worst < recorded["pairwise_chi2"][name]["p99"], name
        else:
            mean, std = recorded[name]["mean"], recorded[name]["std"]
            error = std * np.sqrt(1 / 24 + 1 / NUM_SEEDS)
            deviation = (np.mean(found) - mean) / error
            assert abs(deviation) < TOLERANCE, (name, deviation)


@pytest.mark.parametrize(
    "pair", [(100, 119, 1, 13), (100, 130, 1, 2), (100, 105, 1, 27)]
)
def test_segments_of_many_pairs_are_drawn_like_those_of_one(tmp_path, pair):
    number = 5000
    (tmp_path / "in").touch()
    options = CreatePretrainingData(
        input_file=str(tmp_path / "in"),
        vocab_file=str(tmp_path / "in"),
        output_file=str(tmp_path / "out"),
        max_seq_length=35,
    )
    sentences = np.cumsum([0, 3, 20, 7, 40, 1, 12])
    text = Corpus(np.arange(83, dtype=np.int32), sentences, np.array([0, 1, 6]))
    rng = random.Random(1)
    drawn = np.array([(*pair, 1, rng.getrandbits(63)) for _ in range(number)])
    parallel.add_random_segments(drawn, text, options)
    documents = [document.tolist() for document in text]
    ours = Counter(map(tuple, drawn[:, :4].tolist()))
    theirs = Counter(
        segment_pairs.add_random_segment(
            segment_pairs.IncompletePair(*pair), documents, options, rng
        )[:4]
        for _ in range(number)
    )
    counts = np.array([(ours[key], theirs[key]) for key in ours | theirs])
    frequent = counts[counts.sum(axis=1) >= 20]
    others = (counts.sum(axis=0) - frequent.sum(axis=0) + 1)[np.newaxis]
    result = scipy.stats.chi2_contingency(np.concatenate([frequent, others]))
    assert result.pvalue > 1e-3
