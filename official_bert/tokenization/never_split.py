"""Tokens that are kept whole wherever they occur in a text."""

import re
from collections.abc import Container, Iterator

from official_bert.errors import InputError


class NeverSplit:
    """Separates some tokens from the text around them.

    ```
    "a [MASK]. b" -> ("a ", False), ("[MASK]", True), (". b", False)
    ```

    Args:
        tokens: The tokens, case-sensitive. If one is the start of another, the
            longer one is matched.

    Raises:
        InputError: `tokens` is a single string, or a token is empty or contains
            whitespace.
    """

    def __init__(self, tokens: tuple[str, ...] = ()):
        if isinstance(tokens, str) or any(t.split() != [t] for t in tokens):
            raise InputError(
                "`never_split` must be a sequence of tokens without "
                f"whitespace. Received: {tokens!r}. "
                "Pass a tuple such as ('[MASK]',)."
            )
        self.tokens = tuple(tokens)
        by_length = sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, by_length))})")

    def require_in(self, vocab: Container[str]) -> None:
        """Raises `InputError` if a token is not in the vocabulary."""
        missing = [token for token in self.tokens if token not in vocab]
        if missing:
            raise InputError(
                "The tokens of `never_split` must be in the vocabulary. "
                f"Received: {', '.join(missing)}, which are not. "
                "Remove them, or add them to the vocabulary file."
            )

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yields the parts of `text`, and whether each is such a token."""
        if not self.tokens:
            yield text, False
            return
        # As the pattern has a group, `re.split` returns text and matches
        # alternately, starting and ending with text.
        for index, part in enumerate(self._pattern.split(text)):
            yield part, index % 2 == 1
