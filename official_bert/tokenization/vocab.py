"""Vocabulary files: one token per line; the line number is the token's id.

```
[PAD]      0
[UNK]      1
the        2     a whole word, or the start of one
##s        3     the continuation of a word
```
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io import files

# Tokens that every input needs.
REQUIRED_TOKENS = ("[UNK]", "[CLS]", "[SEP]")
# Tokens that pre-training needs.
SPECIAL_TOKENS = ("[PAD]", *REQUIRED_TOKENS, "[MASK]")

# Larger shares of [UNK] give a warning, in pre-training and in other commands.
MAX_SHARE_UNKNOWN = 0.02
_MAX_SHARE_UNKNOWN_IN_TASKS = 0.1

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def load_vocab(vocab_file: str | os.PathLike[str]) -> dict[str, int]:
    """Returns {token: id} of a vocabulary file, in the order of the file.

    A blank line is the token "". The id of a repeated token is its last line
    number. Both are as in the 2018 release. Raises `InputError` if the file is
    missing or not UTF-8.
    """
    lines = files.read_lines(os.fspath(vocab_file))
    return {token.strip(): index for index, token in enumerate(lines)}


def num_tokens(vocab: Mapping[str, int]) -> int:
    """Returns the largest id + 1; blank lines at the end do not count."""
    return 1 + max(number for token, number in vocab.items() if token)


def require_tokens(
    vocab: Collection[str],
    vocab_file: str,
    tokens: Iterable[str] = REQUIRED_TOKENS,
) -> None:
    """Raises `InputError` if a vocabulary lacks one of `tokens`."""
    missing = [token for token in tokens if token not in vocab]
    if missing:
        raise InputError(
            f"{vocab_file}: the vocabulary must contain {listed(tokens)}. "
            f"Received: {len(vocab)} tokens without {listed(missing)}. "
            "Use the vocabulary of the model, with one token per line."
        )


def warn_of_unknown(share: str, words: Collection[str] = ()) -> None:
    """Warns that a share of the tokens, such as these words, is [UNK]."""
    examples = f", most often {listed(words)}" if words else ""
    logging.warning(
        f"{share} are [UNK], words that the vocabulary lacks{examples}. Choose "
        "a model or a vocabulary for the language of the text. If the "
        "vocabulary has these words in another Unicode form, NFC or NFD, "
        "convert the text to that form"
    )


def warn_if_unknown(num_unknown: int, num_tokens: int, tokens: str) -> bool:
    """Warns if more than a tenth of the tokens of texts in a task is [UNK].

    `tokens` names them, such as "the tokens". Returns whether it warns. For
    pre-training, see `MAX_SHARE_UNKNOWN`.
    """
    if are_many := num_unknown > _MAX_SHARE_UNKNOWN_IN_TASKS * num_tokens:
        warn_of_unknown(f"{num_unknown / num_tokens:.1%} of {tokens}")
    return are_many


def warn_if_unknown_ids(
    texts: Sequence[Sequence[int]], unknown: int, tokens: str
) -> bool:
    """Does the same as `warn_if_unknown`; `unknown` is the id of [UNK]."""
    num_unknown = sum(ids.count(unknown) for ids in texts)
    return warn_if_unknown(num_unknown, sum(map(len, texts)), tokens)


def convert_by_vocab(
    vocab: Mapping[_Key, _Value], items: Iterable[_Key]
) -> list[_Value]:
    """Returns the values of `items`; raises `KeyError` if one is missing."""
    return [vocab[item] for item in items]


def convert_tokens_to_ids(
    vocab: Mapping[str, int], tokens: Iterable[str]
) -> list[int]:
    """Converts tokens to ids; raises `KeyError` if one is unknown."""
    if isinstance(tokens, str):  # Its characters may be tokens.
        raise TypeError(f"`tokens` must be a list, not the text {tokens!r}.")
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(
    inv_vocab: Mapping[int, str], ids: Iterable[int]
) -> list[str]:
    """Converts ids to tokens; raises `KeyError` if one is unknown."""
    return convert_by_vocab(inv_vocab, ids)
