"""From words to pieces that the vocabulary has."""

from collections.abc import Collection

from official_bert.tokenization.text import (
    convert_to_unicode,
    whitespace_tokenize,
)


class WordpieceTokenizer:
    """Cuts words into the longest pieces that are in the vocabulary.

    ```
    "typewriters" -> ["type", "##writer", "##s"]
    ```

    The first piece is the longest token that the word starts with, the second
    the longest "##" token that the rest starts with, and so on. There is no
    going back: a word whose rest has no such token is unknown as a whole, even
    if another way of cutting it would have worked.

    Args:
        vocab: The known tokens, such as {token: id}.
        unk_token: What stands for a word that cannot be cut.
        max_input_chars_per_word: The longest word that is tried.
    """

    def __init__(
        self,
        vocab: Collection[str],
        unk_token: str = "[UNK]",
        max_input_chars_per_word: int = 200,
    ):
        self.vocab = vocab
        self.unk_token = unk_token
        self.max_input_chars_per_word = max_input_chars_per_word

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the pieces of the words of `text`.

        Args:
            text: Words with whitespace between them, best made by
                `BasicTokenizer`.
        """
        pieces: list[str] = []
        for word in whitespace_tokenize(convert_to_unicode(text)):
            pieces.extend(self._cut(word))
        return pieces

    def _cut(self, word: str) -> list[str]:
        """Returns the pieces of one word."""
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        pieces: list[str] = []
        start = 0
        while start < len(word):
            piece = self._longest_piece(word, start)
            if piece is None:
                return [self.unk_token]
            pieces.append(piece)
            start += len(piece) - (len("##") if start > 0 else 0)
        return pieces

    def _longest_piece(self, word: str, start: int) -> str | None:
        """Returns the longest token found at `start`, None without any."""
        prefix = "##" if start > 0 else ""
        for end in range(len(word), start, -1):
            piece = prefix + word[start:end]
            if piece in self.vocab:
                return piece
        return None
