"""Masking: shares, limits and whole words, one by one and many at once."""

import collections
import random

import numpy as np
import pytest
import scipy.stats

from official_bert.pretraining_data import array_masking, masking
from official_bert.pretraining_data.masking import KEEP, PAPERS_MIX, Mix

MASK = 4
PIECE_IDS = list(range(100, 200))


def one_by_one(continues, wanted, seed, whole_words, mix=PAPERS_MIX):
    """Masks [CLS] and len(continues) pieces, as `many_at_once`."""
    places = range(1, len(continues) + 1)
    candidates = [(place,) for place in places]
    if whole_words:
        candidates = masking.words(places, continues)
    return masking.choose_masks(
        candidates, wanted, MASK, PIECE_IDS, random.Random(seed), mix
    )


def many_at_once(continues, wanted, seed, whole_words, mix=PAPERS_MIX):
    is_piece = np.zeros((1, len(continues) + 2), np.bool_)
    is_piece[0, 1:-1] = True
    arrays = array_masking.choose_masks(
        is_piece,
        np.array([[False, *continues, False]]) if whole_words else None,
        np.array([wanted]),
        wanted + 3,
        MASK,
        np.array(PIECE_IDS, np.int32),
        np.array([hash(("key", seed)) % 2**63], np.uint64),
        mix,
    )
    [count] = arrays.counts
    assert not arrays.positions[0, count:].any()
    return masking.Masks(
        arrays.positions[0, :count].tolist(),
        arrays.replacements[0, :count].tolist(),
    )


both = pytest.mark.parametrize("choose", [one_by_one, many_at_once])


def test_the_number_is_rounded_half_to_even_with_special_tokens_counted():
    def both_ways(num_tokens, prob, at_most):
        [many] = array_masking.num_to_predict(
            np.array([num_tokens]), prob, at_most
        )
        assert many == masking.num_to_predict(num_tokens, prob, at_most)
        return many

    assert both_ways(30, 0.15, 20) == 4  # 4.5, which Python rounds to 4.
    assert both_ways(50, 0.15, 20) == 8  # 7.5
    assert both_ways(30, 0.0, 20) == 1
    assert both_ways(30, 0.15, 2) == 2


@both
def test_positions_ascend_and_only_pieces_are_masked(choose):
    for seed in range(20):
        positions, replacements = choose([False] * 60, 9, seed, False)
        assert positions == sorted(set(positions))
        assert len(positions) == len(replacements) == 9
    everything, _ = choose([False] * 5, 7, 0, False)
    assert everything == [1, 2, 3, 4, 5]


@both
def test_every_place_is_as_likely(choose):
    counts = collections.Counter()
    for seed in range(2000):
        counts.update(choose([False] * 20, 3, seed, False).positions)
    assert sorted(counts) == list(range(1, 21))
    # Six standard deviations of 2000 draws of 0.15.
    assert all(abs(count - 300) < 96 for count in counts.values())


@both
def test_80_10_10(choose):
    kinds = collections.Counter()
    pieces = collections.Counter()
    for seed in range(400):
        for replacement in choose([False] * 100, 15, seed, False).replacements:
            if replacement in (MASK, KEEP):
                kinds[replacement] += 1
            else:
                kinds["random"] += 1
                pieces[replacement] += 1
    total = kinds.total()
    # Four standard errors of a share of 6000.
    assert abs(kinds[MASK] / total - 0.8) < 0.021
    assert abs(kinds[KEEP] / total - 0.1) < 0.016
    assert abs(kinds["random"] / total - 0.1) < 0.016
    assert set(pieces) <= set(PIECE_IDS)
    assert len(pieces) > 95


@both
def test_what_a_piece_becomes_does_not_depend_on_the_places(choose):
    """80% [MASK], whichever two of four places are masked."""
    masked, chosen = collections.Counter(), collections.Counter()
    for seed in range(2000):
        places, replacements = choose([False] * 4, 2, seed, False)
        for number, replacement in enumerate(replacements):
            chosen[(*places, number)] += 1
            masked[(*places, number)] += replacement == MASK
    shares = [masked[case] / number for case, number in chosen.items()]
    # Six standard deviations of 333 draws of 0.8.
    assert shares == pytest.approx([0.8] * 12, abs=0.13)


# Table 8 of the paper, and what it leaves out: mask, same, random.
MIXES = [
    (80, 10, 10),
    (100, 0, 0),
    (80, 0, 20),
    (80, 20, 0),
    (0, 20, 80),
    (0, 0, 100),
    (0, 100, 0),
    (34, 33, 33),
]


@both
@pytest.mark.parametrize(("mask", "same", "rest"), MIXES)
def test_the_mix_is_what_was_asked_for(choose, mask, same, rest):
    mix = Mix(mask=mask / 100, random=rest / 100, same=same / 100)
    counts = collections.Counter()
    for seed in range(400):
        for replacement in choose([False] * 100, 15, seed, True, mix)[1]:
            known = replacement in (MASK, KEEP)
            counts[replacement if known else "random"] += 1
    shares = {MASK: mask, KEEP: same, "random": rest}
    wanted = {kind: share for kind, share in shares.items() if share}
    assert counts.keys() == wanted.keys()
    if len(wanted) > 1:
        found = [counts[kind] for kind in wanted]
        expected = [60 * share for share in wanted.values()]
        assert scipy.stats.chisquare(found, expected).pvalue > 1e-3


@both
def test_whole_words_are_masked_together(choose):
    words = [{1, 2, 3}, {4}, {5, 6}]
    seen = set()
    for seed in range(60):
        continues = [False, True, True, False, False, True]
        positions = set(choose(continues, 4, seed, True).positions)
        assert positions
        for word in words:
            assert word <= positions or not word & positions
        seen.add(tuple(sorted(positions)))
    assert seen == {(1, 2, 3, 4), (4, 5, 6)}


@both
def test_a_word_too_long_is_passed_over(choose):
    for seed in range(20):
        assert choose([False, True, True, False], 1, seed, True).positions == [
            4
        ]


@both
def test_a_first_piece_that_continues_a_word_is_one(choose):
    for seed in range(20):
        chosen = choose([True, True, False], 2, seed, True).positions
        assert chosen in ([1, 2], [3])


def test_a_sequence_is_masked_alike_in_any_company():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**63, 50).astype(np.uint64)
    is_piece = rng.random((50, 40)) < 0.8
    continues = rng.random((50, 40)) < 0.3
    wanted = rng.integers(1, 8, 50)

    def choose(rows, whole_words):
        return array_masking.choose_masks(
            is_piece[rows],
            continues[rows] if whole_words else None,
            wanted[rows],
            8,
            MASK,
            np.array(PIECE_IDS, np.int32),
            keys[rows],
        )

    for whole_words in (False, True):
        everybody = choose(slice(None), whole_words)
        for row in range(50):
            alone = choose(slice(row, row + 1), whole_words)
            for one, many in zip(alone, everybody, strict=True):
                np.testing.assert_array_equal(one[0], many[row])


def test_splitmix64():
    """The first numbers of seed 1234567 that its author's code prints."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    key = np.array([1234567], np.uint64)
    assert array_masking.random_words(key, 5)[0].tolist() == expected
    assert (
        array_masking.random_words(key, 3, skip=2)[0].tolist() == (expected[2:])
    )
