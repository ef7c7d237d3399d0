"""Adds [CLS] and [SEP] to one or two texts and numbers their segments.

The layout is that of the paper, section 3::

    tokens:      [CLS] is this jack ##son ##ville ? [SEP] no it is not . [SEP]
    segment_ids:  0    0  0    0    0     0       0  0    1  1  1  1   1  1
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from official_bert.errors import InputError, quoted
from official_bert.inputs import padding, schemas
from official_bert.tokenization import Tokenizer


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


def kept_lengths(length_a: int, length_b: int, room: int) -> tuple[int, int]:
    """Returns how many tokens of A and B to keep, at most `room` together.

    As in the original implementation, the longer text is shortened, or B if
    both have the same length.
    """
    while length_a + length_b > room:
        if length_a > length_b:
            length_a -= 1
        else:
            length_b -= 1
    return length_a, length_b


def encode(
    tokenizer: Tokenizer,
    texts: Sequence[str | tuple[str, str]],
    *,
    max_seq_length: int = 512,
) -> dict[str, np.ndarray]:
    """Returns the inputs of `Bert` for texts or pairs of texts.

    ```
    bert(**encode(tokenizer, ["Hello!", ("Who was it?", "It was the cat.")]))
    ```

    Args:
        tokenizer: The tokenizer of the model.
        texts: N texts, or tuples or lists of two texts.
        max_seq_length: Maximum number of tokens, including [CLS] and [SEP]; at
            least 3. Longer sequences are truncated.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, int32 [N, S], padded to the
        longest sequence with zeros.

    Raises:
        InputError: `texts` is a single text or contains something else, or
            `max_seq_length` is below 3.
    """
    if max_seq_length < 3:
        raise InputError(
            f"`max_seq_length` must be at least 3. Received: {max_seq_length}."
        )
    is_table = isinstance(texts, Mapping) or hasattr(texts, "columns")
    if is_table or isinstance(texts, str | bytes):
        raise InputError(
            "`texts` must be a list of texts, such as [text] or a column of a "
            f"table. Received: {quoted(texts)}."
        )
    special = special_ids(tokenizer.vocab)
    rows = []
    for text in texts:
        pair = (text, "") if isinstance(text, str | bytes) else text
        is_pair = isinstance(pair, Sequence | np.ndarray) and len(pair) == 2
        if not is_pair or not all(isinstance(p, str | bytes) for p in pair):
            raise InputError(
                "`texts` must contain texts or pairs of texts. Received: "
                f"{quoted(text)}."
            )
        ids_a, ids_b = tokenizer.tokenize_lines_to_ids(pair)
        room = max_seq_length - (3 if ids_b else 2)
        length_a, length_b = kept_lengths(len(ids_a), len(ids_b), room)
        rows.append(text_features(ids_a[:length_a], ids_b[:length_b], special))
    length = max(map(padding.row_length, rows), default=2)
    schema = schemas.text_schema(length)
    return padding.pad_batch(schema, rows, length, len(rows))
