"""Adds [CLS] and [SEP] to one or two texts and numbers their segments.

The layout follows section 3 of the paper::

    tokens:      [CLS] is this jack ##son ##ville ? [SEP] no it is not . [SEP]
    segment_ids:  0    0  0    0    0     0       0  0    1  1  1  1   1  1
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from official_bert.errors import InputError, quoted, require_count
from official_bert.inputs.padding import pad_batch, row_length
from official_bert.inputs.schemas import text_schema
from official_bert.io import frames
from official_bert.tokenization import Tokenizer


def special_ids(vocab: Mapping[str, int]) -> tuple[int, int]:
    """Returns the ids of [CLS] and [SEP] in a vocabulary."""
    return vocab["[CLS]"], vocab["[SEP]"]


def text_features(
    ids_a: Sequence[int], ids_b: Sequence[int], vocab: Mapping[str, int]
) -> dict[str, list[int]]:
    """Returns the features of a text or pair of texts, without padding."""
    cls, sep = special_ids(vocab)
    segment_a = [cls, *ids_a, sep]
    segment_b = [*ids_b, sep] if ids_b else []
    input_ids = segment_a + segment_b
    return {
        "input_ids": input_ids,
        "input_mask": [1] * len(input_ids),
        "segment_ids": [0] * len(segment_a) + [1] * len(segment_b),
    }


def truncate(
    ids_a: Sequence[int], ids_b: Sequence[int], max_seq_length: int
) -> tuple[Sequence[int], Sequence[int]]:
    """Removes tokens from the ends of texts, to leave room for [CLS] and [SEP].

    The original implementation removes one token after another from the longer
    text, or from B if both are equally long. The result is the same.
    """
    room = max_seq_length - (3 if ids_b else 2)
    length_a = min(len(ids_a), max(room - len(ids_b), (room + 1) // 2))
    return ids_a[:length_a], ids_b[: room - length_a]


def pair_features(
    tokenizer: Tokenizer, texts: Iterable[str | bytes], max_seq_length: int
) -> Iterator[tuple[dict[str, list[int]], bool]]:
    """Yields the features of pairs of texts, and whether they are truncated.

    The two texts of each pair follow each other; the second may be empty.
    """
    ids = tokenizer.tokenize_lines_to_ids(texts)
    for ids_a, ids_b in zip(ids, ids, strict=True):
        kept = truncate(ids_a, ids_b, max_seq_length)
        yield text_features(*kept, tokenizer.vocab), kept != (ids_a, ids_b)


def encode(
    tokenizer: Tokenizer,
    texts: Sequence[str | tuple[str, str]],
    *,
    max_seq_length: int = 512,
    padding: Literal["longest", "max_length"] = "longest",
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
        padding: Whether to pad to the longest sequence, or to `max_seq_length`.

    Returns:
        `input_ids`, `input_mask` and `segment_ids`, int32 [N, S], padded with
        zeros.

    Raises:
        InputError: `texts` is a single text or contains something else,
            `max_seq_length` is below 3, or `padding` has another value.
        TypeError: `tokenizer` is not a `Tokenizer`.
    """
    require_tokenizer(tokenizer)
    require_length(max_seq_length)
    if padding not in ("longest", "max_length"):
        raise InputError(
            "`padding` must be 'longest' or 'max_length'. Received: "
            f"{padding!r}."
        )
    pairs = itertools.chain.from_iterable(as_pairs(texts))
    rows = [row for row, _ in pair_features(tokenizer, pairs, max_seq_length)]
    length = max_seq_length
    if padding == "longest":
        length = max(map(row_length, rows), default=2)
    return pad_batch(text_schema(length), rows, length, len(rows))


def require_tokenizer(tokenizer: Any) -> None:
    """Raises `TypeError` for other objects, such as the name of a model."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            "`tokenizer` must be a Tokenizer, such as "
            f"Tokenizer.from_pretrained(name). Received: {quoted(tokenizer)}."
        )


def require_length(max_seq_length: int) -> None:
    """Raises `InputError` unless [CLS], a token and [SEP] fit."""
    require_count("max_seq_length", max_seq_length, 3)


def as_pairs(texts: Any) -> list[Sequence[str]]:
    """Returns pairs; the second text of a single text is empty.

    Raises `InputError` if there is anything but texts and pairs of texts.
    """
    if hasattr(texts, "columns") or not frames.is_list(texts):
        raise InputError(
            "`texts` must be a list of texts, such as [text] or a column of a "
            f"table. Received: {quoted(texts)}."
        )
    pairs: list[Any] = []
    for number, text in enumerate(texts):
        pair = text.tolist() if isinstance(text, np.ndarray) else text
        pair = (pair, "") if isinstance(pair, str | bytes) else pair
        is_pair = isinstance(pair, Sequence) and len(pair) == 2
        if not is_pair or not all(isinstance(p, str | bytes) for p in pair):
            raise InputError(
                "`texts` must contain texts or pairs of texts. Received: "
                f"texts[{number}] = {quoted(text)}. Convert tensors to strings "
                "and missing values to empty strings."
            )
        pairs.append(pair)
    return pairs
