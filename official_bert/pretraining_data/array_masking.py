"""The masking of many sequences at once.

It chooses as `masking` does but for where chance comes from: each sequence has
a key, and what happens at a place depends on the key and the place alone. So
the masks of a sequence are the same whichever others are masked with it.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.pretraining_data.masking import KEEP, PAPERS_MIX, Mix

_Bools = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int32]
_Keys = npt.NDArray[np.uint64]

# The largest sorts behind all others.
_NEVER = np.uint64(2**64 - 1)


class MaskArrays(NamedTuple):
    """What to mask in n sequences.

    Attributes:
        positions: int32 [n, P], ascending, and zeros behind them.
        replacements: int32 [n, P], ids, or `masking.KEEP`.
        counts: int64 [n], how many of each row count.
    """

    positions: _Ints
    replacements: _Ints
    counts: npt.NDArray[np.int64]


def choose_masks(
    is_piece: _Bools,
    continues: _Bools | None,
    num_to_predict: npt.NDArray[np.int64],
    max_predictions_per_seq: int,
    mask_id: int,
    piece_ids: npt.NDArray[np.int32],
    keys: _Keys,
    mix: Mix = PAPERS_MIX,
) -> MaskArrays:
    """Chooses what to mask.

    Args:
        is_piece: bool [n, S], what may be masked: neither [CLS], [SEP] nor
            padding.
        continues: bool [n, S], what starts with "##"; or None to mask single
            pieces rather than whole words.
        num_to_predict: [n], at most how many pieces to choose.
        max_predictions_per_seq: P, none of them is above.
        mask_id: The id of [MASK].
        piece_ids: What random pieces are taken from.
        keys: uint64 [n], a random number for each sequence.
        mix: What the model sees where it must guess.
    """
    num_rows, length = is_piece.shape
    order = random_words(keys, length)
    if continues is None:
        order[~is_piece] = _NEVER
        is_chosen = _first_places(
            order, num_to_predict, max_predictions_per_seq
        )
    else:
        is_chosen = _first_words(order, is_piece, continues, num_to_predict)
    rows, places = np.nonzero(is_chosen)
    counts = is_chosen.sum(axis=1)
    slots = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    positions = np.zeros((num_rows, max_predictions_per_seq), np.int32)
    positions[rows, slots] = places
    drawn = random_words(keys, max_predictions_per_seq, skip=length)
    return MaskArrays(
        positions, _replacements(drawn, mask_id, piece_ids, mix), counts
    )


def num_to_predict(
    num_tokens: npt.NDArray[np.int64],
    masked_lm_prob: float,
    max_predictions_per_seq: int,
) -> npt.NDArray[np.int64]:
    """Returns what `masking.num_to_predict` does, of each sequence."""
    wanted = np.rint(num_tokens * masked_lm_prob).astype(np.int64)
    return np.clip(wanted, 1, max_predictions_per_seq)


def random_words(
    keys: _Keys, number: int, skip: int = 0
) -> npt.NDArray[np.uint64]:
    """Returns uint64 [n, number], the numbers of SplitMix64 from each key on.

    See Steele, Lea and Flood: Fast splittable pseudorandom number generators.

    Args:
        keys: uint64 [n], seeds.
        number: How many to draw from each.
        skip: How many to leave out before.
    """
    steps = np.arange(skip + 1, skip + number + 1, dtype=np.uint64)
    z = keys[:, np.newaxis] + steps * np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _first_places(
    order: _Keys, num_to_predict: npt.NDArray[np.int64], at_most: int
) -> _Bools:
    """Marks in each row the places of the lowest numbers but `_NEVER`."""
    lowest = np.sort(
        np.partition(order, min(at_most, order.shape[1]) - 1)[:, :at_most]
    )
    last = lowest[
        np.arange(len(order)), np.minimum(num_to_predict, lowest.shape[1]) - 1
    ]
    return (order <= last[:, np.newaxis]) & (order != _NEVER)


def _first_words(
    order: _Keys,
    is_piece: _Bools,
    continues: _Bools,
    num_to_predict: npt.NDArray[np.int64],
) -> _Bools:
    """Marks whole words in random order, as many as there is room for."""
    is_start = is_piece & ~(continues & (np.cumsum(is_piece, axis=1) > 1))
    word_of_place = np.cumsum(is_start, axis=1) - 1  # [n, S]
    num_rows, length = is_piece.shape
    rows = np.arange(num_rows)
    sizes = np.zeros((num_rows, length), np.int64)  # By word.
    np.add.at(sizes, (np.nonzero(is_piece)[0], word_of_place[is_piece]), 1)
    order = np.where(is_start, order, _NEVER)
    is_taken = np.zeros((num_rows, length), np.bool_)  # By word.
    room = num_to_predict.copy()
    ranked = np.argsort(order, axis=1, kind="stable").T
    for places in ranked[: is_start.sum(axis=1).max(initial=0)]:
        word = word_of_place[rows, places]
        size = sizes[rows, word]
        # A word that is too long is passed over for shorter ones behind it.
        fits = is_start[rows, places] & (size <= room)
        is_taken[rows[fits], word[fits]] = True
        room -= np.where(fits, size, 0)
        if not room.any():
            break
    return is_piece & np.take_along_axis(is_taken, word_of_place, axis=1)


def _replacements(
    drawn: _Keys, mask_id: int, piece_ids: npt.NDArray[np.int32], mix: Mix
) -> _Ints:
    share = (drawn >> np.uint64(32)).astype(np.float64) / 2**32
    # The remainder of 32 bits favours no piece by more than V / 2**32.
    which = (drawn & np.uint64(2**32 - 1)) % np.uint64(len(piece_ids))
    is_random = share >= 1 - mix.random
    other = np.where(is_random, piece_ids[which.astype(np.intp)], KEEP)
    return np.where(share < mix.mask, mask_id, other).astype(np.int32)
