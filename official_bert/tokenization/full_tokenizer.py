"""The tokenizer of the 2018 release."""

import os
import re
from collections.abc import Collection, Iterable
from typing import Any

from official_bert.errors import InputError, listed
from official_bert.tokenization import vocab
from official_bert.tokenization.normalize import normalize


class FullTokenizer:
    """Splits text into words, and words into WordPiece tokens.

    ```
    text                  "Dürer's typewriters"
    BasicTokenizer        durer     '  s  typewriters
    WordpieceTokenizer    du ##rer  '  s  type ##writer ##s
    ```

    Args:
        vocab_file: A text file with one token per line.
        do_lower_case: Whether to lower-case text and strip accents; True for
            uncased models.
        never_split: Tokens that are kept whole wherever they occur in a text.
            By default there are none, as in the 2018 release, which splits
            "[MASK]" into "[", "mask", "]".

    Attributes:
        vocab_file, do_lower_case: The arguments.
        vocab: {token: id}.
        inv_vocab: {id: token}.
        basic_tokenizer: Splits text into words.
        wordpiece_tokenizer: Splits words into tokens.

    Raises:
        InputError: The vocabulary cannot be read, or lacks a token of
            `never_split`.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike[str],
        do_lower_case: bool = True,
        never_split: tuple[str, ...] = (),
    ):
        self.vocab_file = os.fspath(vocab_file)
        self.do_lower_case = do_lower_case
        self.vocab = vocab.load_vocab(vocab_file)
        self.inv_vocab = {index: token for token, index in self.vocab.items()}
        self.basic_tokenizer = BasicTokenizer(do_lower_case, never_split)
        self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab)
        missing = [token for token in never_split if token not in self.vocab]
        if missing:
            raise InputError(
                "The tokens of `never_split` must be in the vocabulary. "
                f"Received: {listed(missing)}, which are not. "
                "Remove them, or add them to the vocabulary file."
            )

    @classmethod
    def from_pretrained(
        cls, model: str | os.PathLike[str], **kwargs: Any
    ) -> "FullTokenizer":
        """Returns the tokenizer of a model; for `model` see `pretrained.find`.

        `kwargs` are arguments of the constructor. Raises `InputError` if there
        is no such model, or it has no vocabulary.
        """
        from official_bert.sources import pretrained

        model_files = pretrained.find(model)
        if not model_files.vocab_file:
            raise InputError(
                f"{model} has neither vocab.txt nor tokenizer.json. Use "
                "`FullTokenizer(vocab_file)`."
            )
        defaults = {"do_lower_case": model_files.do_lower_case}
        return cls(model_files.vocab_file, **(defaults | kwargs))

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of `text`."""
        tokens: list[str] = []
        for word in self.basic_tokenizer.tokenize(text):
            tokens.extend(self.wordpiece_tokenizer.tokenize(word))
        return tokens

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of `tokens`; raises `KeyError` if one is unknown."""
        return vocab.convert_tokens_to_ids(self.vocab, tokens)

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens of `ids`; raises `KeyError` if one is unknown."""
        return vocab.convert_ids_to_tokens(self.inv_vocab, ids)


class BasicTokenizer:
    """Splits text into words and punctuation.

    ```
    "Ça coûte 5$, 北京!" -> ["ca", "coute", "5", "$", ",", "北", "京", "!"]
    ```

    For the arguments, see `FullTokenizer`. Tokens of `never_split` are
    case-sensitive and contain no whitespace. If one is the start of another,
    the longer one is matched.
    """

    def __init__(
        self, do_lower_case: bool = True, never_split: tuple[str, ...] = ()
    ):
        if isinstance(never_split, str) or any(
            token.split() != [token] for token in never_split
        ):
            raise InputError(
                "`never_split` must be a sequence of tokens without "
                f"whitespace. Received: {never_split!r}. "
                "Pass a tuple such as ('[MASK]',)."
            )
        self.do_lower_case = do_lower_case
        self.never_split = tuple(never_split)
        by_length = sorted(map(re.escape, never_split), key=len, reverse=True)
        self._pattern = re.compile(f"({'|'.join(by_length)})")

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of `text`."""
        words: list[str] = []
        for part, is_token in self.split(text):
            if is_token:
                words.append(part)
            else:
                words += normalize(part, self.do_lower_case).split()
        return words

    def split(self, text: str | bytes) -> list[tuple[str, bool]]:
        """Returns the parts of a text, and whether each is in `never_split`.

        ```
        "a [MASK]. b" -> ("a ", False), ("[MASK]", True), (". b", False)
        ```
        """
        text = convert_to_unicode(text)
        parts = self._pattern.split(text) if self.never_split else [text]
        return [(part, part in self.never_split) for part in parts]


class WordpieceTokenizer:
    """Splits words into the longest tokens in the vocabulary, left to right.

    ```
    "typewriters" -> ["type", "##writer", "##s"]
    ```

    The first token is the longest one that the word starts with. Each following
    token is the longest "##" token that the rest of the word starts with. If
    there is none, the whole word is unknown, even if another split would have
    worked.

    Args:
        vocab: The known tokens, such as {token: id}.
        unk_token: The token for words that cannot be split.
        max_input_chars_per_word: Longer words are unknown.
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
        self._longest_token = max(map(len, vocab), default=0)

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of whitespace-separated words."""
        tokens: list[str] = []
        for word in whitespace_tokenize(convert_to_unicode(text)):
            tokens.extend(self._split_word(word))
        return tokens

    def _split_word(self, word: str) -> list[str]:
        if len(word) > self.max_input_chars_per_word:
            return [self.unk_token]
        tokens: list[str] = []
        start = 0
        while start < len(word):
            prefix = "##" if start > 0 else ""
            longest_end = min(len(word), start + self._longest_token)
            for end in range(longest_end, start, -1):
                token = prefix + word[start:end]
                if token in self.vocab:
                    break
            else:
                return [self.unk_token]
            tokens.append(token)
            start = end
        return tokens


def convert_to_unicode(text: str | bytes) -> str:
    """Decodes UTF-8, dropping invalid bytes; returns strings unchanged."""
    if isinstance(text, str):
        return text
    if isinstance(text, bytes):
        return text.decode("utf-8", "ignore")
    raise ValueError(f"Unsupported string type: {type(text)}")


def printable_text(text: str | bytes) -> str:
    """Returns `text` in a form that can be printed or logged."""
    return convert_to_unicode(text)


def whitespace_tokenize(text: str) -> list[str]:
    """Splits `text` at whitespace."""
    return text.split()
