"""Which pieces the model must guess, and what it sees in their place.

Section 3.1, task 1 of the paper: 15% of the pieces are chosen; of these 80% are
replaced by [MASK], 10% by a random piece, and 10% left as they are::

    tokens: [CLS] my   dog is hairy  [SEP]
    masked: [CLS] my   dog is [MASK] [SEP]     80%
            [CLS] my   dog is apple  [SEP]     10%
            [CLS] my   dog is hairy  [SEP]     10%
"""

import random
from collections.abc import Sequence
from typing import NamedTuple


class MaskedTokens(NamedTuple):
    """A sequence after masking.

    Attributes:
        tokens: What the model sees.
        positions: Where it must guess, ascending.
        labels: What stood there.
    """

    tokens: list[str]
    positions: list[int]
    labels: list[str]


def mask_tokens(
    tokens: Sequence[str],
    *,
    masked_lm_prob: float,
    max_predictions_per_seq: int,
    whole_words: bool,
    vocab_words: Sequence[str],
    rng: random.Random,
) -> MaskedTokens:
    """Masks a packed sequence, drawing as the 2018 release draws.

    Args:
        tokens: With [CLS] and [SEP]s, which are never masked but count when
            the number to mask is worked out.
        masked_lm_prob: The share to mask; at least one piece is.
        max_predictions_per_seq: At most how many to mask.
        whole_words: Whether the pieces of a word are masked together.
        vocab_words: What random pieces are taken from.
        rng: The random stream, which is moved on.
    """
    candidates = _candidates(tokens, whole_words)
    rng.shuffle(candidates)
    # Rounding is Python's, half to even.
    num_to_predict = min(
        max_predictions_per_seq,
        max(1, round(len(tokens) * masked_lm_prob)),
    )
    chosen: list[int] = []
    masked = list(tokens)
    for word in candidates:
        if len(chosen) >= num_to_predict:
            break
        # A word that is too long is passed over for shorter ones behind it.
        if len(chosen) + len(word) > num_to_predict:
            continue
        for position in word:
            masked[position] = _replacement(tokens[position], vocab_words, rng)
            chosen.append(position)
    chosen.sort()
    return MaskedTokens(masked, chosen, [tokens[i] for i in chosen])


def _candidates(tokens: Sequence[str], whole_words: bool) -> list[list[int]]:
    """Returns the positions that are masked together, piece by piece or word.

    A piece that continues a word joins the candidate before it. That may be a
    word of the other segment, where B was cut inside a word: so the original.
    """
    candidates: list[list[int]] = []
    for position, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole_words and candidates and token.startswith("##"):
            candidates[-1].append(position)
        else:
            candidates.append([position])
    return candidates


def _replacement(
    token: str, vocab_words: Sequence[str], rng: random.Random
) -> str:
    if rng.random() < 0.8:
        return "[MASK]"
    if rng.random() < 0.5:
        return token
    return vocab_words[rng.randint(0, len(vocab_words) - 1)]
