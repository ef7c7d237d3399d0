import collections
import random
import types

import numpy as np
import pytest
import scipy.stats
from support import SPECIAL, pretraining_records

from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import masking
from official_bert.pretraining_data.job import Job
from official_bert.pretraining_data.masking import KEEP, Replacements

MASK = 4
TOKEN_IDS = np.arange(100, 200)
DEFAULT = Replacements(MASK, TOKEN_IDS, 0.8, 0.1, 0.1)


def mask_one(continues, number, seed, whole_words, replacements=DEFAULT):
    """Masks a sequence of len(continues) tokens between [CLS] and [SEP]."""
    places = range(1, len(continues) + 1)
    starts = continues if whole_words else [False] * len(continues)
    candidates = masking.whole_words(places, starts)
    return masking.mask_sequence(
        candidates, number, replacements, random.Random(seed)
    )


def mask_many(continues, number, seed, whole_words, replacements=DEFAULT):
    key = np.random.default_rng(seed).integers(2**63, size=1, dtype=np.uint64)
    flags = np.array([[False, *continues, False]])
    _, positions, ids = masking.mask_sequences(
        np.array([[False, *[True] * len(continues), False]]),
        flags & whole_words,
        np.array([number]),
        replacements,
        key,
    )
    return positions.tolist(), ids.tolist()


with_both_functions = pytest.mark.parametrize("choose", [mask_one, mask_many])


@pytest.mark.parametrize(("prob", "limit"), [(0.15, 20), (0.0, 20), (0.15, 2)])
def test_number_of_predictions_is_rounded_half_to_even(prob, limit):
    options = types.SimpleNamespace(
        max_seq_length=511, masked_lm_prob=prob, max_predictions_per_seq=limit
    )
    counts = Job(options).num_to_predict
    assert counts.tolist() == [  # As in the original implementation.
        min(limit, max(1, round(length * prob))) for length in range(512)
    ]


@with_both_functions
def test_positions_and_their_replacements_are_independent(choose):
    chosen, masked = collections.Counter(), collections.Counter()
    for seed in range(2000):
        positions, replacements = choose([False] * 4, 2, seed, False)
        assert positions == sorted(set(positions))
        for number, replacement in enumerate(replacements):
            chosen[(*positions, number)] += 1
            masked[(*positions, number)] += replacement == MASK
    # Six standard deviations of 2000 draws of 1 / 6, and of 333 draws of 0.8.
    assert list(chosen.values()) == pytest.approx([333] * 12, abs=100)
    shares = [masked[case] / number for case, number in chosen.items()]
    assert shares == pytest.approx([0.8] * 12, abs=0.13)
    assert choose([False] * 5, 7, 0, False)[0] == [1, 2, 3, 4, 5]


# Table 8 of the paper and the remaining corner cases: mask, keep, random.
SHARES = "80/10/10 100/0/0 80/0/20 80/20/0 0/20/80 0/0/100 0/100/0 34/33/33"


@with_both_functions
@pytest.mark.parametrize("percentages", SHARES.split())
def test_replacements_have_the_requested_shares(choose, percentages):
    mask, keep, draw = map(int, percentages.split("/"))
    wanted = Replacements(MASK, TOKEN_IDS, mask / 100, draw / 100, keep / 100)
    counts, drawn = collections.Counter(), set()
    for seed in range(400):
        for replacement in choose([False] * 100, 15, seed, True, wanted)[1]:
            if replacement in (MASK, KEEP):
                counts[replacement] += 1
            else:
                counts["random"] += 1
                drawn.add(replacement)
    shares = {MASK: mask, KEEP: keep, "random": draw}
    shares = {kind: share for kind, share in shares.items() if share}
    assert counts.keys() == shares.keys()
    if len(shares) > 1:
        found = [counts[kind] for kind in shares]
        expected = [60 * share for share in shares.values()]
        assert scipy.stats.chisquare(found, expected).pvalue > 1e-3
    assert drawn <= set(TOKEN_IDS.tolist())
    if draw:
        assert len(drawn) > 95


@with_both_functions
@pytest.mark.parametrize(
    ("continues", "number", "expected"),
    [
        # The words 1-3, 4 and 5-6, of which 4 tokens are masked.
        ([0, 1, 1, 0, 0, 1], 4, {(1, 2, 3, 4), (4, 5, 6)}),
        # A word that is too long is skipped.
        ([0, 1, 1, 0], 1, {(4,)}),
        # A continuation at the start counts as a word.
        ([1, 1, 0], 2, {(1, 2), (3,)}),
    ],
)
def test_whole_words_are_masked_together(choose, continues, number, expected):
    flags = [bool(flag) for flag in continues]
    seen = {tuple(choose(flags, number, seed, True)[0]) for seed in range(60)}
    assert seen == expected


def test_random_numbers_equal_the_reference_splitmix64():
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    key = np.array([1234567], np.uint64)
    assert masking.random_numbers(key, np.arange(5)).tolist() == expected


def test_blank_lines_at_the_end_of_a_vocabulary_are_not_drawn(tmp_path):
    inputs = pretraining_records.write_inputs(tmp_path, "a b", ["a", "b", ""])
    options = CreatePretrainingData(
        input_file=str(inputs / "text.txt"),
        vocab_file=str(inputs / "vocab.txt"),
        output_file=str(inputs / "out"),
    )
    job = Job(options)
    size = len(SPECIAL) + 2
    assert job.replacements.token_ids.tolist() == [*range(size)]
    assert job.dynamic_masking.vocab_size == size
