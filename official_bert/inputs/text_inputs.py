"""Adds [CLS] and [SEP] to one or two texts and numbers their segments.

The layout is that of the paper, section 3::

    tokens:      [CLS] is this jack ##son ##ville ? [SEP] no it is not . [SEP]
    segment_ids:  0    0  0    0    0     0       0  0    1  1  1  1   1  1
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


def add_special_tokens(
    tokens_a: Sequence[str], tokens_b: Sequence[str] = ()
) -> list[str]:
    """Returns ``[CLS] a [SEP]``, or ``[CLS] a [SEP] b [SEP]`` for a pair."""
    end = [*tokens_b, "[SEP]"] if tokens_b else []
    return ["[CLS]", *tokens_a, "[SEP]", *end]


def make_segment_ids(num_tokens: int, num_tokens_a: int) -> list[int]:
    """Returns 0 for [CLS], the tokens of text A and [SEP], 1 for the others."""
    length_a = num_tokens_a + 2
    return [0] * length_a + [1] * (num_tokens - length_a)


class SpecialIds(NamedTuple):
    """The vocabulary ids of [CLS] and [SEP]."""

    cls: int
    sep: int


def special_ids(vocab: Mapping[str, int]) -> SpecialIds:
    """Returns the ids of [CLS] and [SEP] in a vocabulary."""
    return SpecialIds(vocab["[CLS]"], vocab["[SEP]"])


def text_features(
    ids_a: Sequence[int], ids_b: Sequence[int], special: SpecialIds
) -> dict[str, list[int]]:
    """Returns the features of a text or pair of texts, without padding."""
    end = [*ids_b, special.sep] if ids_b else []
    input_ids = [special.cls, *ids_a, special.sep, *end]
    return {
        "input_ids": input_ids,
        "input_mask": [1] * len(input_ids),
        "segment_ids": make_segment_ids(len(input_ids), len(ids_a)),
    }
