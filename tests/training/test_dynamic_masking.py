"""Masking on the device follows the rules of the static generator."""

import collections
import functools
import itertools
import random

import numpy as np
import pytest
import scipy.stats
import tensorflow as tf

from official_bert.inputs.schemas import Masking
from official_bert.pretraining_data import masking
from official_bert.training.dynamic_masking import mask_batch

CLS, SEP, MASK, VOCAB_SIZE = 2, 3, 4, 50
DEFAULT = Masking(4, 1, MASK, VOCAB_SIZE, 0.8, 0.1)
REPLACEMENTS = masking.Replacements(MASK, np.arange(VOCAB_SIZE), 0.8, 0.1, 0.1)

# The sizes of the words of A and B.
SEQUENCES = {
    "tokens": ((1, 1, 1), (1, 1)),
    "words": ((1, 3, 2), (1, 1)),
    "long words": ((3, 1, 2), (2, 1)),
    "one segment": ((2, 1, 1, 2), ()),
}


def text(sizes_a, sizes_b):
    """Returns input ids and word starts of `[CLS] a [SEP] b [SEP]`."""
    ids, starts = [CLS], [0]
    for sizes in filter(None, (sizes_a, sizes_b)):
        for size in sizes:
            starts += [len(starts)] * size
        ids += range(10 + len(ids), 10 + len(starts))
        ids, starts = [*ids, SEP], [*starts, 0]
    return ids, starts


def unmasked(ids, starts, budget, num_rows, length=16):
    def rows(values):
        values = [*values, *[0] * (length - len(values))]
        return tf.constant([values] * num_rows, tf.int32)

    return {
        "input_ids": rows(ids),
        "input_mask": rows([1] * len(ids)),
        "word_starts": rows(starts),
        "num_to_predict": tf.constant([[budget]] * num_rows, tf.int32),
    }


@functools.cache
def compiled(jit_compile):
    """Returns a compiled `mask_batch`, traced once per shape and settings."""
    return tf.function(mask_batch, autograph=False, jit_compile=jit_compile)


def mask(batch, settings, seed=0, jit_compile=False):
    masked = compiled(jit_compile)(batch, settings, tf.constant([seed, 1]))
    return {name: values.numpy() for name, values in masked.items()}


def chosen_on_device(sizes, budget, max_ngram, number):
    batch = unmasked(*text(*sizes), budget, number)
    masked = mask(batch, DEFAULT._replace(max_ngram=max_ngram))
    used = masked["masked_lm_weights"] > 0
    places = masked["masked_lm_positions"]
    return [tuple(p[u]) for p, u in zip(places, used, strict=True)]


@functools.cache
def chosen_one_by_one(sizes, budget, max_ngram, number):
    _, starts = text(*sizes)
    places = [p for p, start in enumerate(starts) if start]
    words = [[*g] for _, g in itertools.groupby(places, lambda p: starts[p])]
    rng = random.Random(1)
    masked = (
        masking.mask_sequence([*words], budget, REPLACEMENTS, rng, max_ngram)
        for _ in range(number)
    )
    return [tuple(positions) for positions, _ in masked]


def chosen_by_worker(sizes, budget, max_ngram, number):
    _, starts = text(*sizes)
    starts = np.tile(starts, (number, 1))
    is_maskable = starts > 0
    continues = starts != np.arange(starts.shape[1])
    masked = masking.mask_sequences(
        is_maskable,
        continues,
        np.full(number, budget),
        REPLACEMENTS,
        np.random.default_rng(1).integers(2**63, size=number, dtype=np.uint64),
        max_ngram,
    )
    parts = np.split(
        masked.positions, np.searchsorted(masked.rows, np.arange(1, number))
    )
    return [tuple(part) for part in parts]


@pytest.mark.parametrize("choose", [chosen_on_device, chosen_by_worker])
@pytest.mark.parametrize("max_ngram", [1, 3])
@pytest.mark.parametrize("budget", [1, 4])
@pytest.mark.parametrize("sizes", SEQUENCES.values(), ids=list(SEQUENCES))
def test_sets_of_masked_positions_have_the_distribution_of_the_generator(
    choose, sizes, budget, max_ngram
):
    arguments = sizes, budget, max_ngram, 10_000
    ours = collections.Counter(choose(*arguments))
    theirs = collections.Counter(chosen_one_by_one(*arguments))
    sets = sorted({*ours, *theirs})
    table = np.array([[found[s] for s in sets] for found in (ours, theirs)])
    rare = table.sum(0) < 20
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(1)])
    table = table[:, table.sum(0) > 0]
    if table.shape[1] > 1:
        assert scipy.stats.chi2_contingency(table).pvalue > 1e-4


def test_ngrams_have_probabilities_proportional_to_1_over_n():
    rng, found = random.Random(0), collections.Counter()
    for _ in range(2000):
        ngrams = masking.divide_into_ngrams([(i,) for i in range(30)], 4, rng)
        assert [i for ngram in ngrams for (i,) in ngram] == [*range(30)]
        found.update(len(ngram) for ngram in ngrams[:5])  # None is cut off.
    expected = 10_000 * np.array([12, 6, 4, 3]) / 25
    counts = [found[n] for n in range(1, 5)]
    assert scipy.stats.chisquare(counts, expected).pvalue > 1e-4


@pytest.mark.parametrize(
    ("mask_share", "random_share"), [(0.8, 0.1), (0.34, 0.33), (0, 1), (1, 0)]
)
def test_replacements_have_the_requested_shares(mask_share, random_share):
    ids, starts = text([1] * 12, [])
    settings = DEFAULT._replace(
        mask_share=mask_share, random_share=random_share, vocab_size=9
    )
    masked = mask(unmasked(ids, starts, 4, 3000), settings)
    places = masked["masked_lm_positions"]
    np.testing.assert_array_equal(masked["masked_lm_weights"], 1)
    np.testing.assert_array_equal(masked["masked_lm_ids"], places + 10)
    seen = np.take_along_axis(masked["input_ids"], places, 1)
    # The ids 0 to 8 are replacements; 9 stands for tokens that are kept.
    is_kept = seen == masked["masked_lm_ids"]
    counts = np.bincount(np.where(is_kept, 9, seen).ravel(), minlength=10)
    shares = np.full(10, random_share / 9)
    shares[MASK] += mask_share
    shares[9] = 1 - mask_share - random_share
    is_possible = shares > 1e-9
    assert np.array_equal(counts > 0, is_possible)
    counts, expected = counts[is_possible], seen.size * shares[is_possible]
    statistic = (counts - expected) ** 2 / expected
    assert statistic.sum() < scipy.stats.chi2.isf(1e-4, 9)


def packed_batch(num_rows):
    """Returns rows of two instances, of which 2 and 3 tokens are masked."""
    (ids, starts), others = text([1, 3, 2], [1]), text([2, 2, 1], [1])
    length = len(ids)
    moved = [start + length if start else 0 for start in others[1]]
    batch = unmasked([*ids, *others[0]], [*starts, *moved], 0, num_rows, 32)
    numbers = [1] * length + [2] * len(others[0])
    numbers += [0] * (32 - len(numbers))
    batch["input_mask"] = tf.constant([numbers] * num_rows)
    batch["num_to_predict"] = tf.constant([[2, 3, 0]] * num_rows)
    return batch


@pytest.mark.slow
@pytest.mark.parametrize("max_ngram", [1, 3])
def test_packed_instances_are_masked_separately(max_ngram):
    batch = packed_batch(2000)
    settings = DEFAULT._replace(max_predictions_per_seq=8, max_ngram=max_ngram)
    masked = mask(batch, settings)
    places = masked["masked_lm_positions"]
    used = masked["masked_lm_weights"] > 0
    found = [set(), set()]
    for row in np.where(used, places, 0):
        found[0].add(tuple(row[(row > 0) & (row < 10)]))
        found[1].add(tuple(row[row > 10] - 10))
    # The words are 1, 2-4, 5-6 and 8; in the second instance 1-2, 3-4, 5 and 7.
    assert found[0] == {(1, 8), (5, 6)}
    pairs, singles = [(1, 2), (3, 4)], [5, 7]
    assert found[1] == {(5, 7)} | {
        (*pair, single) for pair in pairs for single in singles
    }


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_masks_depend_on_the_seed_only(jit_compile):
    settings = DEFAULT._replace(max_ngram=2)

    def masks(seed):
        batch = packed_batch(8)
        return mask(batch, settings, seed=seed, jit_compile=jit_compile)

    first, again, other = masks(1), masks(1), masks(2)
    np.testing.assert_equal(again, first)
    assert np.any(first["input_ids"] != other["input_ids"])


def test_more_predictions_than_tokens_mask_all_tokens():
    ids, starts = text([2, 1], [1])
    batch = unmasked(ids, starts, 20, 3, length=8)
    masked = mask(batch, DEFAULT._replace(max_predictions_per_seq=20))
    assert masked["masked_lm_positions"].shape == (3, 8)
    expected = [[1, 2, 3, 5, 0, 0, 0, 0]] * 3
    np.testing.assert_array_equal(masked["masked_lm_positions"], expected)
    np.testing.assert_array_equal(masked["masked_lm_weights"].sum(1), 4)
