"""Chooses the masked tokens and their replacements.

Section 3.1, task 1 of the BERT paper: 15% of the tokens are chosen. A chosen
token becomes [MASK] (80%) or a random token (10%), or is kept (10%)::

    tokens: [CLS] my   dog is hairy  [SEP]
    masked: [CLS] my   dog is [MASK] [SEP]     80%
            [CLS] my   dog is apple  [SEP]     10%
            [CLS] my   dog is hairy  [SEP]     10%

`mask_sequence` draws random numbers in the order of the original
implementation. In `mask_sequences`, they depend only on the key of a sequence
and on the position, so that any sequences can be masked together.
"""

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# The replacement of a token that is kept.
KEEP = -1

_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]
_Keys = npt.NDArray[np.uint64]

# Sorts after all random numbers.
_LAST = np.uint64(2**64 - 1)


class Replacements(NamedTuple):
    """The replacements of chosen tokens; the shares add up to 1."""

    mask_id: int
    token_ids: npt.NDArray[np.int32]  # Random tokens are drawn from these.
    mask: float
    random: float
    keep: float


class MaskedTokens(NamedTuple):
    """The masked tokens of n sequences, sorted by sequence and position."""

    rows: _Ints  # The sequence of each token, from 0 to n - 1.
    positions: _Ints  # Its position in the sequence.
    replacements: _Ints  # The id that replaces it, or `KEEP`.


def mask_sequence(
    candidates: list[Sequence[int]],
    num_to_predict: int,
    replacements: Replacements,
    rng: random.Random,
    max_ngram: int = 1,
) -> tuple[list[int], list[int]]:
    """Masks at most `num_to_predict` tokens of a sequence.

    `candidates` are groups of positions that are masked together; with
    `max_ngram=1`, they are shuffled in place. Returns the masked positions,
    ascending, and their replacements: ids or `KEEP`.
    """
    mask_id, token_ids, mask_share, random_share, keep_share = replacements
    if max_ngram > 1:
        ngrams = divide_into_ngrams(candidates, max_ngram, rng)
        rng.shuffle(ngrams)
        candidates = [*itertools.chain(*ngrams)]
    else:
        rng.shuffle(candidates)
    # The share of kept tokens among those that [MASK] does not replace: by
    # default exactly 0.5, as in the original.
    keep_share /= (keep_share + random_share) or 1.0
    chosen: dict[int, int] = {}
    for group in candidates:
        if len(chosen) >= num_to_predict:
            break
        # A word that is too long is skipped; a shorter one may follow.
        if len(chosen) + len(group) > num_to_predict:
            continue
        for position in group:
            if rng.random() < mask_share:
                chosen[position] = mask_id
            elif rng.random() < keep_share:
                chosen[position] = KEEP
            else:
                index = rng.randint(0, len(token_ids) - 1)
                chosen[position] = int(token_ids[index])
    positions = sorted(chosen)
    return positions, [chosen[position] for position in positions]


def whole_words(
    positions: Iterable[int], is_continuation: Iterable[bool]
) -> list[Sequence[int]]:
    """Groups the positions of tokens by words, without [CLS] and [SEP].

    A continuation ("##...") joins the token before it. As in the original
    implementation, that token is in segment A if B starts with a continuation.
    """
    words: list[list[int]] = []
    for position, continues in zip(positions, is_continuation, strict=True):
        if continues and words:
            words[-1].append(position)
        else:
            words.append([position])
    return [*words]


def ngram_probabilities(max_ngram: int) -> npt.NDArray[np.float64]:
    """Returns the probabilities of n-grams of 1 to `max_ngram` words.

    They are proportional to 1/n: section 4.1 of Lan et al., 2019 (ALBERT).
    """
    weights = 1 / np.arange(1, max_ngram + 1)
    return weights / weights.sum()


def divide_into_ngrams(
    words: list[Sequence[int]], max_ngram: int, rng: random.Random
) -> list[list[Sequence[int]]]:
    """Divides the words of a sequence into consecutive n-grams.

    An n-gram can contain the end of A and the start of B, as in ALBERT's code.
    The last n-gram may be cut off. N-grams do not overlap, as in section 3.1 of
    Joshi et al., 2019 (SpanBERT).
    """
    weights = ngram_probabilities(max_ngram).tolist()
    lengths = rng.choices(range(1, max_ngram + 1), weights, k=len(words))
    ends = [*itertools.accumulate(lengths)]
    parts = itertools.pairwise([0, *ends])
    return [words[start:end] for start, end in parts if start < len(words)]


def mask_sequences(
    is_maskable: _Bools,
    is_continuation: _Bools,
    num_to_predict: _Ints,
    replacements: Replacements,
    keys: _Keys,
    max_ngram: int = 1,
) -> MaskedTokens:
    """Masks at most `num_to_predict` [n] tokens in each of n sequences.

    `is_maskable` [n, S] is false for [CLS], [SEP] and padding;
    `is_continuation` [n, S] marks tokens that are masked with the token before
    them. The keys [n] are random numbers.
    """
    length = is_maskable.shape[1]
    order = random_numbers(keys[:, np.newaxis], np.arange(length))
    is_start = word_starts(is_maskable, is_continuation)
    if max_ngram > 1:
        drawn = random_numbers(
            keys[:, np.newaxis], 2 * length + np.arange(length)
        )
        ngram = _number_ngrams(is_start, drawn, max_ngram)
        order = np.take_along_axis(order, ngram, axis=1)
    rows, positions = np.nonzero(
        _choose(order, is_maskable, is_start, num_to_predict)
    )
    drawn = random_numbers(keys[rows], length + ranks(rows))
    return MaskedTokens(rows, positions, _draw(replacements, drawn))


def ranks(rows: _Ints) -> _Ints:
    """Returns how many equal numbers precede each number of a sorted array."""
    return np.arange(len(rows)) - np.searchsorted(rows, rows)


def random_numbers(keys: _Keys, indices: _Ints) -> _Keys:
    """Returns the numbers at indices of the SplitMix64 streams of keys.

    Steele et al., 2014: Fast splittable pseudorandom number generators.
    """
    z = keys + (indices + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def word_starts(is_maskable: _Bools, is_continuation: _Bools) -> _Bools:
    """Marks the first token of each word, [n, S]; see `mask_sequences`."""
    is_first = np.cumsum(is_maskable, axis=1) <= 1
    return is_maskable & (is_first | ~is_continuation)


def _number_ngrams(is_start: _Bools, drawn: _Keys, max_ngram: int) -> _Ints:
    """Returns the number [n, S] of each token's n-gram in its sequence."""
    shares = (drawn >> np.uint64(11)) * 2.0**-53
    limits = np.cumsum(ngram_probabilities(max_ngram))[:-1]
    ends = np.cumsum(1 + np.searchsorted(limits, shares, "right"), axis=1)
    word = np.maximum(np.cumsum(is_start, axis=1) - 1, 0)
    # The number of n-grams that end before the word, for all rows at once.
    row, last = np.arange(len(ends))[:, np.newaxis], ends.max(initial=0) + 1
    ends, word = ends + row * last, word + row * last
    before = np.searchsorted(ends.ravel(), word.ravel(), "right")
    return before.reshape(word.shape) - row * word.shape[1]


def _choose(
    order: _Keys, is_maskable: _Bools, is_start: _Bools, num_to_predict: _Ints
) -> _Bools:
    """Marks the tokens of whole words, in a given order, while they fit."""
    word_of_place = np.cumsum(is_start, axis=1) - 1  # [n, S]
    n, length = is_maskable.shape
    rows = np.arange(n)
    words = (rows[:, np.newaxis] * length + word_of_place)[is_maskable]
    sizes = np.bincount(words, minlength=n * length).reshape(n, length)
    order = np.where(is_start, order, _LAST)
    is_taken = np.zeros(is_maskable.shape, np.bool_)  # One entry per word.
    room = num_to_predict.copy()
    ranked = np.argsort(order, axis=1, kind="stable").T
    for places in ranked[: is_start.sum(axis=1).max(initial=0)]:
        word = word_of_place[rows, places]
        size = sizes[rows, word]
        # A word that is too long is skipped; a shorter one may follow.
        fits = is_start[rows, places] & (size <= room)
        is_taken[rows[fits], word[fits]] = True
        room -= np.where(fits, size, 0)
        if not room.any():
            break
    return is_maskable & np.take_along_axis(is_taken, word_of_place, axis=1)


def _draw(replacements: Replacements, drawn: _Keys) -> _Ints:
    mask_id, token_ids, mask_share, random_share, _ = replacements
    share = (drawn >> np.uint64(32)).astype(np.float64) / 2**32
    # The remainder of 32 bits favors no token by more than V / 2**32.
    index = (drawn & np.uint64(2**32 - 1)) % np.uint64(len(token_ids))
    is_random = share >= 1 - random_share
    unmasked = np.where(is_random, token_ids[index.astype(np.intp)], KEEP)
    return np.where(share < mask_share, mask_id, unmasked)
