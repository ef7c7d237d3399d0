"""Tokens that stay whole wherever they occur in a text."""

import re
from collections.abc import Container, Iterator

from official_bert.errors import InputError


class NeverSplit:
    """Sets some tokens of a text apart from what stands around them.

    ```
    "a [MASK]. b" -> ("a ", False), ("[MASK]", True), (". b", False)
    ```

    Args:
        tokens: The tokens, case and all. Where one is the start of another,
            the longer one is found.

    Raises:
        InputError: `tokens` is a single string, or one of them is empty or has
            whitespace in it.
    """

    def __init__(self, tokens: tuple[str, ...] = ()):
        if isinstance(tokens, str) or any(t.split() != [t] for t in tokens):
            raise InputError(
                "`never_split` must be a sequence of tokens without "
                f"whitespace. Received: {tokens!r}. "
                "Write it as in ('[MASK]',)."
            )
        self.tokens = tuple(tokens)
        by_length = sorted(self.tokens, key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(map(re.escape, by_length))})")

    def check(self, vocab: Container[str]) -> None:
        """Raises `InputError` unless all tokens are in the vocabulary."""
        missing = [token for token in self.tokens if token not in vocab]
        if missing:
            raise InputError(
                "The tokens of `never_split` must be in the vocabulary. "
                f"Received: {', '.join(missing)}, which are not. "
                "Leave them out, or add them to the vocabulary file."
            )

    def split(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yields the parts of `text`, and whether each is such a token."""
        if not self.tokens:
            yield text, False
            return
        # With a group in its pattern, `re.split` returns text and matches in
        # turn, beginning and ending with text.
        for index, part in enumerate(self._pattern.split(text)):
            yield part, index % 2 == 1

    def find(self, text: str) -> list[int]:
        """Returns where in `text` such tokens begin."""
        if not self.tokens:
            return []
        return [match.start() for match in self._pattern.finditer(text)]
