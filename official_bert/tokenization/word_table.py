"""A hash table that looks up whole arrays of words at once."""

from typing import Any

import numpy as np
import numpy.typing as npt

from official_bert.tokenization.alphabet import (
    FIRST_LETTER,
    PADDING,
    Alphabet,
    Codes,
    code_points,
)

# A word of up to 15 codes is its own key, of two numbers with 64 bits. Its last
# byte is left to tell continuations ("##s") from words ("s").
MAX_LENGTH = 15

Ints = npt.NDArray[np.int32]
Indices = npt.NDArray[np.intp]
Keys = npt.NDArray[np.uint64]  # [N, 2]

_IS_LATER = np.uint64(1 << 56)
_MULTIPLIERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)

# By length, the bits of a key that are the word's. None if it is too long.
_MASKS: Keys = np.zeros((MAX_LENGTH + 2, PADDING), np.uint8).view("<u8")
for _length in range(MAX_LENGTH + 1):
    _MASKS.view(np.uint8)[_length, :_length] = 255


def keys_at(
    codes: Codes, starts: Indices, lengths: Indices, is_later: bool = False
) -> Keys:
    """Returns the keys of words that stand in `codes`.

    Args:
        codes: Codes with padding, as `Alphabet` makes them.
        starts: Where the words start.
        lengths: How long they are. Those longer than `MAX_LENGTH` get a key
            that no token has.
        is_later: Whether they continue a word.
    """
    # All stretches of 16 bytes, which overlap; this copies nothing.
    size = len(codes) - PADDING + 1
    stretches: Any = np.ndarray(size, f"V{PADDING}", codes, strides=(1,))
    keys = stretches[starts].view("<u8").reshape(-1, 2)
    # `np.take` is ten times faster here than `_MASKS[...]`.
    keys &= np.take(_MASKS, np.minimum(lengths, MAX_LENGTH + 1), axis=0)
    if is_later:
        keys[:, 1] |= _IS_LATER
    return keys


class WordTable:
    """{key: id} for arrays, of a set of keys that is given once.

    ```
    hash of "the"  ->  first row  5   "the"    next 9   id 1996
                                  9   "ocean"  next 0   id 4153
    ```

    Row 0 stands for none. There are eight times as many hashes as keys, so that
    few share one. A table takes 2.5 MB for a vocabulary of 30,000 tokens.

    Args:
        keys: Different keys. Those that come first are found fastest.
        ids: What to find for them, none below 0.
    """

    def __init__(self, keys: Keys, ids: Ints):
        self._shift = np.uint64(64 - max(8, (8 * len(keys)).bit_length()))
        self._keys = np.concatenate([np.zeros((1, 2), np.uint64), keys])
        self._ids = np.concatenate([np.array([-1], np.int32), ids])
        hashes = self._hash(keys)
        order = np.argsort(hashes, kind="stable")
        hashes, rows = hashes[order], order + 1
        is_first = np.diff(hashes, prepend=-1) > 0
        self._first_row = np.zeros(2 ** (64 - int(self._shift)), np.int32)
        self._first_row[hashes[is_first]] = rows[is_first]
        self._next_row = np.zeros(len(self._keys), np.int32)
        follows = np.flatnonzero(~is_first)
        self._next_row[rows[follows - 1]] = rows[follows]

    def find(self, keys: Keys) -> Ints:
        """Returns the ids of keys, -1 for those that are not in the table."""
        rows = np.take(self._first_row, self._hash(keys))
        wrong = np.flatnonzero(self._is_other(rows, keys))
        while len(wrong):
            rows[wrong] = self._next_row[rows[wrong]]
            wrong = wrong[self._is_other(rows[wrong], keys[wrong])]
        return np.take(self._ids, rows)

    def _hash(self, keys: Keys) -> Indices:
        mixed = keys[:, 0] * _MULTIPLIERS[0] + keys[:, 1] * _MULTIPLIERS[1]
        return (mixed >> self._shift).astype(np.intp)

    def _is_other(self, rows: Ints, keys: Keys) -> npt.NDArray[np.bool_]:
        """Whether there is a row, and its key is another."""
        found = np.take(self._keys, rows, axis=0)
        is_equal = (found[:, 0] == keys[:, 0]) & (found[:, 1] == keys[:, 1])
        return (rows > 0) & ~is_equal


def table_of_tokens(vocab: dict[str, int], alphabet: Alphabet) -> WordTable:
    """Returns the table of the tokens that words of up to 15 codes can have.

    Args:
        vocab: {token: id}.
        alphabet: One that has not yet seen other text.
    """
    points = code_points("\n".join([*vocab, ""]))
    codes = alphabet.encode_seen(points)
    ids = np.fromiter(vocab.values(), np.int32, len(vocab))
    lengths = np.fromiter(map(len, vocab), np.intp, len(vocab))
    ends = np.cumsum(lengths + 1) - 1
    starts = ends - lengths
    is_later = np.fromiter((t.startswith("##") for t in vocab), np.bool_)
    starts[is_later] += len("##")
    num_others = np.append(0, np.cumsum(codes < FIRST_LETTER))
    is_possible = num_others[starts] == num_others[ends]
    is_possible &= (starts < ends) & (ends - starts <= MAX_LENGTH)
    first = np.flatnonzero(is_possible & ~is_later)
    later = np.flatnonzero(is_possible & is_later)
    lengths = ends - starts
    keys = [
        keys_at(codes, starts[first], lengths[first]),
        keys_at(codes, starts[later], lengths[later], is_later=True),
    ]
    return WordTable(np.concatenate(keys), ids[np.append(first, later)])
