"""The vocabulary: a file with one token per line, whose line number is its id.

```
[PAD]      0
[UNK]      1
the        2     a whole word, or the start of one
##s        3     the continuation of a word
```
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from official_bert import files
from official_bert.errors import InputError

# What every text needs: for words that are not there, and around it.
NEEDED = ("[UNK]", "[CLS]", "[SEP]")

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def load_vocab(vocab_file: str) -> dict[str, int]:
    """Reads a vocabulary file.

    Blank lines count: they are tokens without characters, and keep the line
    numbers of those below right. Where a token stands twice, the later line
    gives its id.

    Args:
        vocab_file: A text file with one token per line.

    Returns:
        {token: id}, in the order of the file.

    Raises:
        InputError: The file is missing or not UTF-8.
    """
    lines = files.read_lines(vocab_file)
    return {token.strip(): index for index, token in enumerate(lines)}


def require_tokens(
    vocab: Collection[str], vocab_file: str, tokens: Iterable[str] = NEEDED
) -> None:
    """Raises `InputError` unless a vocabulary has all of `tokens`."""
    missing = [token for token in tokens if token not in vocab]
    if missing:
        raise InputError(
            f"{vocab_file}: a vocabulary must have {', '.join(tokens)}, one "
            f"piece a line. Received: {len(vocab)} pieces without "
            f"{', '.join(missing)}. Use the vocabulary the model was made for."
        )


def convert_by_vocab(
    vocab: Mapping[_Key, _Value], items: Iterable[_Key]
) -> list[_Value]:
    """Looks up a sequence of tokens or ids.

    Args:
        vocab: {token: id} or {id: token}.
        items: The keys to look up.

    Returns:
        Their values.

    Raises:
        KeyError: An item is not in `vocab`.
    """
    return [vocab[item] for item in items]


def convert_tokens_to_ids(
    vocab: Mapping[str, int], tokens: Iterable[str]
) -> list[int]:
    """Returns the ids of `tokens`; `KeyError` if `vocab` lacks one."""
    return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(
    inv_vocab: Mapping[int, str], ids: Iterable[int]
) -> list[str]:
    """Returns the tokens with these `ids`; `KeyError` if there is none."""
    return convert_by_vocab(inv_vocab, ids)
