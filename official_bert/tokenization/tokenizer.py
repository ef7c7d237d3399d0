"""Finds token ids of many lines, and the positions of tokens in the text."""

from __future__ import annotations

import array
import functools
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from official_bert.tokenization.alignment import Span, align
from official_bert.tokenization.full_tokenizer import (
    FullTokenizer,
    convert_to_unicode,
)

if TYPE_CHECKING:  # `--help` does not need NumPy.
    import numpy as np
    import numpy.typing as npt

# The cache is cleared when it has this many words, which take about 40 MB.
# Frequent words are soon in it again.
MAX_ENTRIES = 2**18

# Longer words rarely recur and are not cached.
MAX_REMEMBERED_LENGTH = 64


class EncodedLines(NamedTuple):
    """The token ids of many lines.

    Line i has the ids `ids[row_splits[i]:row_splits[i + 1]]`.
    """

    ids: npt.NDArray[np.int32]
    row_splits: npt.NDArray[np.int64]


class Tokenizer(FullTokenizer):
    """A `FullTokenizer` for large amounts of text, and with offsets.

    It caches the token ids of words, so the vocabulary must not change after
    construction.
    """

    @functools.cached_property
    def _ids_of_word(self) -> _PackedIds:
        return _PackedIds(self)

    def tokenize_lines_to_ids(
        self, lines: Iterable[str | bytes]
    ) -> Iterator[list[int]]:
        """Yields the token ids of each line; errors as in `encode_lines`."""
        for line in lines:
            yield memoryview(self._pack(line)).cast("i").tolist()

    def encode_lines(self, lines: Iterable[str | bytes]) -> EncodedLines:
        """Returns the token ids of many lines as arrays.

        ```
        "Ça coûte", "", "5$" -> ids         6187 2522 10421 1019 1002
                                row_splits  0 3 3 5
        ```

        Raises `KeyError` if a word is unknown and the vocabulary has no
        "[UNK]".
        """
        import numpy as np

        packed = [self._pack(line) for line in lines]
        ids = np.frombuffer(b"".join(packed), np.int32)
        row_splits = np.zeros(len(packed) + 1, np.int64)
        lengths = np.fromiter(map(len, packed), np.int64, len(packed))
        np.cumsum(lengths // ids.itemsize, out=row_splits[1:])
        return EncodedLines(ids, row_splits)

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> tuple[list[str], list[Span]]:
        """Returns the tokens of `text` and their positions.

        ```
        "Ça coûte" -> ["ca", "co", "##ute"], [(0, 2), (3, 5), (5, 8)]
        ```

        Returns:
            The tokens, and the (start, end) of each in characters of the
            decoded text. [UNK] spans its whole word. See `alignment.py`.
        """
        tokens: list[str] = []
        spans: list[Span] = []
        for word, char_spans, is_added in align(
            convert_to_unicode(text), self.basic_tokenizer
        ):
            word_tokens = [word]
            if not is_added:
                word_tokens = self.wordpiece_tokenizer.tokenize(word)
            tokens += word_tokens
            spans += _token_spans(word_tokens, char_spans)
        return tokens, spans

    def _pack(self, text: str | bytes) -> bytes:
        """Returns the token ids of a text as the bytes of int32."""
        packed: list[bytes] = []
        for words, is_added in self.basic_tokenizer.split(text):
            if is_added:
                ids = self.convert_tokens_to_ids(words)
                packed.append(array.array("i", ids).tobytes())
            else:
                packed += map(self._ids_of_word.__getitem__, words)
        return b"".join(packed)


class _PackedIds(dict[str, bytes]):
    """A bounded cache {word: its token ids, as the bytes of int32}.

    Bytes are fast to join, and Python's garbage collector ignores them. Cached
    words are looked up in C.
    """

    def __init__(self, tokenizer: FullTokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    def __missing__(self, word: str) -> bytes:
        tokens = self.tokenizer.wordpiece_tokenizer.tokenize(word)
        ids = self.tokenizer.convert_tokens_to_ids(tokens)
        packed = array.array("i", ids).tobytes()
        if len(word) <= MAX_REMEMBERED_LENGTH:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[word] = packed
        return packed


def _token_spans(tokens: list[str], char_spans: list[Span]) -> list[Span]:
    """Divides the character spans of a word among its tokens."""
    if len(tokens) == 1:  # Possibly [UNK], which stands for the whole word.
        return [(char_spans[0][0], char_spans[-1][1])]
    lengths = [len(tokens[0]), *(len(t) - len("##") for t in tokens[1:])]
    ends = [*itertools.accumulate(lengths)]
    return [
        (char_spans[end - length][0], char_spans[end - 1][1])
        for end, length in zip(ends, lengths, strict=True)
    ]
