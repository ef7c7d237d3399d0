"""The tokenizer of the 2018 release."""

import dataclasses
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.tokenization import vocab
from official_bert.tokenization.normalize import ISOLATE, fold, normalize
from official_bert.tokenization.settings import TokenFinder, TokenizerSettings


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
        settings: All settings of the tokenizer, in place of `do_lower_case`.

    Attributes:
        vocab_file, do_lower_case: The arguments.
        settings: The settings, with the added tokens of `never_split`.
        vocab: {token: id}.
        inv_vocab: {id: token}.
        basic_tokenizer: Splits text into words.
        wordpiece_tokenizer: Splits words into tokens.

    Raises:
        InputError: The vocabulary cannot be read, or lacks a token of
            `never_split` or an added token.
    """

    def __init__(
        self,
        vocab_file: str | os.PathLike[str],
        do_lower_case: bool = True,
        never_split: Sequence[str] = (),
        *,
        settings: TokenizerSettings | None = None,
    ):
        self.vocab_file = os.fspath(vocab_file)
        if not files.is_file(self.vocab_file):
            raise InputError(
                "`vocab_file` must be an existing file. Received: "
                f"{self.vocab_file!r}. For the tokenizer of a model, use "
                "`from_pretrained(name)`."
            )
        self.vocab = vocab.load_vocab(vocab_file)
        self.inv_vocab = {index: token for token, index in self.vocab.items()}
        self.basic_tokenizer = BasicTokenizer(
            do_lower_case, never_split, settings=settings
        )
        self.settings = settings = self.basic_tokenizer.settings
        self.do_lower_case = settings.is_uncased
        settings.require_in(self.vocab, self.vocab_file)
        words, limit = self.vocab, settings.num_wordpieces
        if limit is not None:
            words = {token: i for token, i in words.items() if i < limit}
        self.wordpiece_tokenizer = WordpieceTokenizer(words)

    @classmethod
    def from_pretrained(
        cls, model: str | os.PathLike[str], **kwargs: Any
    ) -> "FullTokenizer":
        """Returns the tokenizer of a model; for `model` see `pretrained.find`.

        `kwargs` may contain `never_split`, and fields of `TokenizerSettings`
        that differ from the model's. Raises `InputError` if there is no such
        model, or it has no vocabulary.
        """
        from official_bert.sources import pretrained

        model_files = pretrained.find(model)
        if not model_files.vocab_file:
            raise InputError(
                f"{model} has neither vocab.txt nor tokenizer.json. Use "
                "`FullTokenizer(vocab_file)`."
            )
        never_split = kwargs.pop("never_split", ())
        settings = dataclasses.replace(model_files.settings, **kwargs)
        return cls(
            model_files.vocab_file, never_split=never_split, settings=settings
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of `text`."""
        tokens: list[str] = []
        split_word = self.wordpiece_tokenizer.tokenize
        for words, is_added in self.basic_tokenizer.split(text):
            for word in words:
                tokens += [word] if is_added else split_word(word)
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
        self,
        do_lower_case: bool = True,
        never_split: Sequence[str] = (),
        *,
        settings: TokenizerSettings | None = None,
    ):
        settings = settings or TokenizerSettings(do_lower_case)
        self.settings = settings = settings.keeping(never_split)
        self.do_lower_case = settings.is_uncased
        tokens = settings.added_tokens
        # Added tokens are first looked for in the text, then in what remains of
        # it after normalization.
        self.in_text = TokenFinder(
            (token.content, token) for token in tokens if not token.normalized
        )
        self.in_normalized = TokenFinder(
            (fold(token.content, settings), token)
            for token in tokens
            if token.normalized
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the words of `text`."""
        return [word for words, _ in self.split(text) for word in words]

    def split(self, text: str | bytes) -> Iterator[tuple[list[str], bool]]:
        """Yields the words of the parts of a text.

        The second value says whether the only word is an added token.

        ```
        "a [MASK]. b" -> ["a"], False; ["[MASK]"], True; [".", "b"], False
        ```
        """
        text = convert_to_unicode(text)
        for start, end, token in self.in_text.split(text):
            part = text[start:end]
            if token:
                yield [token.content], True
                continue
            if not self.in_normalized.tokens:
                yield normalize(part, self.settings).split(), False
                continue
            folded = fold(part, self.settings)
            for first, last, token in self.in_normalized.split(folded):
                words = folded[first:last].translate(ISOLATE).split()
                yield ([token.content], True) if token else (words, False)


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
