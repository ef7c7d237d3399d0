"""Which pieces the model must guess, and what it sees in their place.

Section 3.1, task 1 of the paper: 15% of the pieces are chosen; of these 80% are
replaced by [MASK], 10% by a random piece, and 10% left as they are::

    tokens: [CLS] my   dog is hairy  [SEP]
    masked: [CLS] my   dog is [MASK] [SEP]     80%
            [CLS] my   dog is apple  [SEP]     10%
            [CLS] my   dog is hairy  [SEP]     10%

Other shares are another `Mix`: appendix C.2.

Here one sequence is masked, drawing as the 2018 release draws. `array_masking`
does the same for many at once, drawing otherwise.
"""

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# What a piece is replaced by that is left as it is.
KEEP = -1


class Mix(NamedTuple):
    """What is seen in place of the chosen pieces: shares, 1 together.

    Attributes:
        mask: Of [MASK].
        random: Of random pieces.
        same: Of those left as they are.
    """

    mask: float = 0.8
    random: float = 0.1
    same: float = 0.1


PAPERS_MIX = Mix()


class Masks(NamedTuple):
    """What to mask in a sequence.

    Attributes:
        positions: Where the model must guess, ascending.
        replacements: The ids that it sees there; or `KEEP`.
    """

    positions: list[int]
    replacements: list[int]


def choose_masks(
    candidates: list[Sequence[int]],
    num_to_predict: int,
    mask_id: int,
    piece_ids: Sequence[int],
    rng: random.Random,
    mix: Mix = PAPERS_MIX,
) -> Masks:
    """Chooses from the candidates, drawing as the 2018 release draws.

    Args:
        candidates: Positions that are masked together; shuffled in place.
        num_to_predict: At most how many positions to choose.
        mask_id: The id of [MASK].
        piece_ids: What random pieces are taken from.
        rng: The random stream, which is moved on.
        mix: What the model sees there.
    """
    shuffle(candidates, rng)
    # Of what is not masked. The default gives 0.5 exactly, as it was drawn.
    same_share = mix.same / ((mix.same + mix.random) or 1.0)
    chosen: dict[int, int] = {}
    for word in candidates:
        if len(chosen) >= num_to_predict:
            break
        # A word that is too long is passed over for shorter ones behind it.
        if len(chosen) + len(word) > num_to_predict:
            continue
        for position in word:
            is_mask = rng.random() < mix.mask
            chosen[position] = (
                mask_id if is_mask else _other(piece_ids, same_share, rng)
            )
    positions = sorted(chosen)
    return Masks(positions, [chosen[position] for position in positions])


def num_to_predict(
    num_tokens: int, masked_lm_prob: float, max_predictions_per_seq: int
) -> int:
    """Returns how many of the tokens, special ones counted, are masked.

    At least one is; rounding is Python's, half to even.
    """
    wanted = max(1, round(num_tokens * masked_lm_prob))
    return min(max_predictions_per_seq, wanted)


def words(
    positions: Iterable[int], is_continuation: Iterable[bool]
) -> list[Sequence[int]]:
    """Returns the positions of each word.

    A piece that continues a word joins the one before it. That may be a word of
    the other segment, where B was cut inside a word: so the original.

    Args:
        positions: Of the pieces, without [CLS] and [SEP]s.
        is_continuation: Whether each of them starts with "##".
    """
    found: list[list[int]] = []
    for position, continues in zip(positions, is_continuation, strict=True):
        if continues and found:
            found[-1].append(position)
        else:
            found.append([position])
    return list(found)


def shuffle(x: list[Any], rng: random.Random) -> None:
    """Does what `rng.shuffle(x)` does, twice as fast.

    That draws a number up to `last` by drawing as many bits as `last + 1` has,
    again while it is too large. Here it is done without its calls.
    """
    draw_bits = rng.getrandbits
    last = len(x) - 1
    while last > 0:
        num_bits = (last + 1).bit_length()
        end = max(0, 2 ** (num_bits - 1) - 2)  # As long as it has as many.
        for place in range(last, end, -1):
            other = draw_bits(num_bits)
            while other > place:
                other = draw_bits(num_bits)
            x[place], x[other] = x[other], x[place]
        last = end


def _other(
    piece_ids: Sequence[int], same_share: float, rng: random.Random
) -> int:
    if rng.random() < same_share:
        return KEEP
    return piece_ids[rng.randint(0, len(piece_ids) - 1)]
