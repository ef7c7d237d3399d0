"""Tokens as BERT reads them: one sequence out of one or two.

The convention is that of section 3 of the paper::

    tokens:      [CLS] is this jack ##son ##ville ? [SEP] no it is not . [SEP]
    segment_ids:  0    0  0    0    0     0       0  0    1  1  1  1   1  1
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


def pack(tokens_a: Sequence[str], tokens_b: Sequence[str] = ()) -> list[str]:
    """Returns `[CLS] a [SEP]`, or `[CLS] a [SEP] b [SEP]` if there is a b."""
    tokens = ["[CLS]", *tokens_a, "[SEP]"]
    if tokens_b:
        tokens += [*tokens_b, "[SEP]"]
    return tokens


def segment_ids(num_tokens: int, num_tokens_a: int) -> list[int]:
    """Returns the segment of each of `num_tokens` packed tokens.

    Args:
        num_tokens: How many there are, special ones included.
        num_tokens_a: How many of them are text A's own. [CLS] and the first
            [SEP] belong to A as well.
    """
    length_a = num_tokens_a + 2
    return [0] * length_a + [1] * (num_tokens - length_a)


class Marks(NamedTuple):
    """The ids of what frames every text."""

    cls: int
    sep: int


def find_marks(vocab: Mapping[str, int]) -> Marks:
    """Returns the ids of [CLS] and [SEP]."""
    return Marks(vocab["[CLS]"], vocab["[SEP]"])


def text_row(
    ids_a: Sequence[int], ids_b: Sequence[int], marks: Marks
) -> dict[str, list[int]]:
    """Returns the features of a text or a pair, not padded.

    Args:
        ids_a: Pieces of text A.
        ids_b: Of text B, or none.
        marks: What to put between.
    """
    input_ids = [marks.cls, *ids_a, marks.sep]
    if ids_b:
        input_ids += [*ids_b, marks.sep]
    return {
        "input_ids": input_ids,
        "input_mask": [1] * len(input_ids),
        "segment_ids": segment_ids(len(input_ids), len(ids_a)),
    }
