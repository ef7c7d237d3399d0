"""Tokens that stay whole wherever they occur in a text."""

import re
from collections.abc import Container, Iterable

from official_bert.errors import InputError


def compile_never_split(never_split: Iterable[str]) -> re.Pattern[str]:
    """Returns a pattern whose `split` sets tokens apart from the text around.

    ```
    compile_never_split(["[MASK]"]).split("a [MASK]. b [MASK]")
        -> ["a ", "[MASK]", ". b ", "[MASK]", ""]
    ```

    Every second part, from the one at index 1, is a token. Where one token is
    the start of another, the longer one is found.

    Args:
        never_split: The tokens, case and all.

    Raises:
        InputError: `never_split` is a single string, or a token in it is empty
            or has whitespace in it.
    """
    tokens = [never_split] if isinstance(never_split, str) else never_split
    tokens = sorted(tokens, key=len, reverse=True)
    if isinstance(never_split, str) or any(t.split() != [t] for t in tokens):
        raise InputError(
            "`never_split` must be a sequence of tokens without whitespace. "
            f"Received: {never_split!r}. Write it as in ('[MASK]',)."
        )
    # An empty alternative would match everywhere; "(?!)" matches nowhere.
    return re.compile(f"({'|'.join(map(re.escape, tokens)) or '(?!)'})")


def check_never_split(
    never_split: Iterable[str], vocab: Container[str]
) -> None:
    """Raises `InputError` unless all tokens in `never_split` have an id."""
    missing = [token for token in never_split if token not in vocab]
    if missing:
        raise InputError(
            "Tokens of `never_split` must be in the vocabulary. "
            f"Received: {missing}, which are not. "
            "Leave them out, or add them to the vocabulary file."
        )
