"""Chooses the masked tokens and their replacements.

Section 3.1, task 1 of the BERT paper: 15% of the tokens are chosen; of these
80% are replaced by [MASK], 10% by a random token, and 10% are kept::

    tokens: [CLS] my   dog is hairy  [SEP]
    masked: [CLS] my   dog is [MASK] [SEP]     80%
            [CLS] my   dog is apple  [SEP]     10%
            [CLS] my   dog is hairy  [SEP]     10%

Other shares (appendix C.2) are another `Replacements`.

`mask_sequence` masks one sequence and draws random numbers in the order of the
original implementation. `mask_sequences` masks many at once; its random numbers
depend only on the key of a sequence and the position, so the result does not
depend on which sequences are masked together.
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

# The replacement of a token that is kept.
KEEP = -1

_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int32]
_Keys = npt.NDArray[np.uint64]

# Sorts after all other random numbers.
_LAST = np.uint64(2**64 - 1)


class Replacements(NamedTuple):
    """What replaces chosen tokens: [MASK], random tokens or `KEEP`.

    Attributes:
        mask_id: The id of [MASK].
        token_ids: int32 [V], from which random tokens are drawn.
        mask: The share replaced by [MASK]. The three shares add up to 1.
        random: The share replaced by random tokens.
        keep: The share that is kept.
    """

    mask_id: int
    token_ids: _Ints
    mask: float = 0.8
    random: float = 0.1
    keep: float = 0.1


class Masks(NamedTuple):
    """The masked positions of a sequence.

    Attributes:
        positions: The positions to predict, ascending.
        replacements: The ids at these positions, or `KEEP`.
    """

    positions: list[int]
    replacements: list[int]


class MaskArrays(NamedTuple):
    """The masked positions of n sequences.

    Attributes:
        positions: int32 [n, P], ascending, padded with zeros.
        replacements: int32 [n, P], ids or `KEEP`.
        counts: int64 [n], the number of masked positions.
    """

    positions: _Ints
    replacements: _Ints
    counts: npt.NDArray[np.int64]


def num_to_predict(
    num_tokens: npt.NDArray[np.int64],
    masked_lm_prob: float,
    max_predictions_per_seq: int,
) -> npt.NDArray[np.int64]:
    """Returns how many tokens to mask in sequences of `num_tokens`, at least 1.

    [CLS] and [SEP] count as tokens; numbers are rounded half to even.
    """
    wanted = np.rint(num_tokens * masked_lm_prob).astype(np.int64)
    return np.clip(wanted, 1, max_predictions_per_seq)


def mask_sequence(
    candidates: list[Sequence[int]],
    num_to_predict: int,
    replacements: Replacements,
    rng: random.Random,
) -> Masks:
    """Masks one sequence, drawing as the original implementation does.

    `candidates` are groups of positions that are masked together, at most
    `num_to_predict` positions in all. They are shuffled in place.
    """
    mask_id, token_ids, mask_share, random_share, keep_share = replacements
    shuffle(candidates, rng)
    # The share among tokens that are not replaced by [MASK]: exactly 0.5 by
    # default, as in the original.
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
    return Masks(positions, [chosen[position] for position in positions])


def whole_words(
    positions: Iterable[int], is_continuation: Iterable[bool]
) -> list[Sequence[int]]:
    """Groups the positions of tokens by words, without [CLS] and [SEP].

    A continuation ("##...") joins the token before it. If segment B starts with
    one, that token is in segment A, as in the original implementation.
    """
    words: list[list[int]] = []
    for position, continues in zip(positions, is_continuation, strict=True):
        if continues and words:
            words[-1].append(position)
        else:
            words.append([position])
    return [*words]


def shuffle(x: list[Any], rng: random.Random) -> None:
    """Equals `rng.shuffle(x)`, but takes half the time.

    `shuffle` draws a number up to `last` by drawing as many bits as `last + 1`
    has, again while the number is too large. Here that is done inline.
    """
    draw_bits = rng.getrandbits
    last = len(x) - 1
    while last > 0:
        num_bits = (last + 1).bit_length()
        end = max(0, 2 ** (num_bits - 1) - 2)  # Fewer bits from here on.
        for place in range(last, end, -1):
            other = draw_bits(num_bits)
            while other > place:
                other = draw_bits(num_bits)
            x[place], x[other] = x[other], x[place]
        last = end


def mask_sequences(
    is_maskable: _Bools,
    is_continuation: _Bools | None,
    num_to_predict: npt.NDArray[np.int64],
    max_predictions_per_seq: int,
    replacements: Replacements,
    keys: _Keys,
) -> MaskArrays:
    """Masks n sequences at once.

    Args:
        is_maskable: bool [n, S], false for [CLS], [SEP] and padding.
        is_continuation: bool [n, S], whether a token starts with "##"; None to
            mask single tokens instead of whole words.
        num_to_predict: int64 [n], maximum numbers of tokens to choose.
        max_predictions_per_seq: P, at least the largest `num_to_predict`.
        replacements: What replaces chosen tokens.
        keys: uint64 [n], a random number for each sequence.
    """
    num_sequences, length = is_maskable.shape
    order = random_numbers(keys, length)
    if is_continuation is None:
        order[~is_maskable] = _LAST
        is_chosen = _choose_tokens(
            order, num_to_predict, max_predictions_per_seq
        )
    else:
        is_chosen = _choose_words(
            order, is_maskable, is_continuation, num_to_predict
        )
    rows, places = np.nonzero(is_chosen)
    counts = is_chosen.sum(axis=1)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.zeros((num_sequences, max_predictions_per_seq), np.int32)
    positions[rows, slots] = places
    drawn = random_numbers(keys, max_predictions_per_seq, skip=length)
    return MaskArrays(positions, _replace(drawn, replacements), counts)


def random_numbers(
    keys: _Keys, number: int, skip: int = 0
) -> npt.NDArray[np.uint64]:
    """Returns uint64 [n, number], a SplitMix64 stream for each of n keys.

    See Steele, Lea and Flood: Fast splittable pseudorandom number generators.
    The first `skip` numbers of each stream are left out.
    """
    steps = np.arange(skip + 1, skip + number + 1, dtype=np.uint64)
    z = keys[:, np.newaxis] + steps * np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _choose_tokens(
    order: _Keys, num_to_predict: npt.NDArray[np.int64], at_most: int
) -> _Bools:
    """Marks the lowest numbers of each row, except `_LAST`."""
    lowest = np.sort(
        np.partition(order, min(at_most, order.shape[1]) - 1)[:, :at_most]
    )
    last = lowest[
        np.arange(len(order)), np.minimum(num_to_predict, lowest.shape[1]) - 1
    ]
    return (order <= last[:, np.newaxis]) & (order != _LAST)


def _choose_words(
    order: _Keys,
    is_maskable: _Bools,
    is_continuation: _Bools,
    num_to_predict: npt.NDArray[np.int64],
) -> _Bools:
    """Marks whole words in random order while there is room."""
    is_first = np.cumsum(is_maskable, axis=1) <= 1
    is_start = is_maskable & (is_first | ~is_continuation)
    word_of_place = np.cumsum(is_start, axis=1) - 1  # [n, S]
    rows = np.arange(len(is_maskable))
    sizes = np.zeros(is_maskable.shape, np.int64)  # By word.
    np.add.at(
        sizes, (np.nonzero(is_maskable)[0], word_of_place[is_maskable]), 1
    )
    order = np.where(is_start, order, _LAST)
    is_taken = np.zeros(is_maskable.shape, np.bool_)  # By word.
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


def _replace(drawn: _Keys, replacements: Replacements) -> _Ints:
    mask_id, token_ids, mask_share, random_share, _ = replacements
    share = (drawn >> np.uint64(32)).astype(np.float64) / 2**32
    # The remainder of 32 bits favors no token by more than V / 2**32.
    index = (drawn & np.uint64(2**32 - 1)) % np.uint64(len(token_ids))
    is_random = share >= 1 - random_share
    other = np.where(is_random, token_ids[index.astype(np.intp)], KEEP)
    return np.where(share < mask_share, mask_id, other).astype(np.int32)
