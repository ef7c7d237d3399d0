"""The fast tokenizer: words are tokenized once and remembered."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from official_bert.tokenization.alignment import Aligned, Span, align
from official_bert.tokenization.full_tokenizer import FullTokenizer
from official_bert.tokenization.normalize import normalize

if TYPE_CHECKING:  # `--help` does not need NumPy.
    import numpy as np
    import numpy.typing as npt

# The memo is cleared when it has this many words, which take some 40 MB.
# Frequent words return quickly.
MAX_ENTRIES = 2**18

# Longer words rarely recur and are not remembered.
MAX_REMEMBERED_LENGTH = 64

# The packed id of unknown words if the vocabulary lacks [UNK].
_NO_ID = -1


class EncodedLines(NamedTuple):
    """The token ids of many lines.

    Line i has the ids `ids[row_splits[i]:row_splits[i + 1]]`.
    """

    ids: npt.NDArray[np.int32]
    row_splits: npt.NDArray[np.int64]


class Tokenizer(FullTokenizer):
    """A `FullTokenizer` for large amounts of text, with the same output.

    It normalizes whole texts at once (`normalize.py`) and remembers the token
    ids of words. The vocabulary must not change after construction.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        never_split: tuple[str, ...] = (),
    ):
        super().__init__(vocab_file, do_lower_case, never_split)
        self._lowers_case = do_lower_case
        self._ids_of_word = _PackedIds(self)
        unk_token = self.wordpiece_tokenizer.unk_token
        self._token_of_id = {_NO_ID: unk_token, **self.inv_vocab}

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the tokens of `text`."""
        return self._unpack(self._pack(text))

    def tokenize_lines_to_ids(
        self, lines: Iterable[str | bytes]
    ) -> Iterator[list[int]]:
        """Yields the token ids of each line; `KeyError` without [UNK]."""
        for line in lines:
            ids = memoryview(self._pack(line)).cast("i").tolist()
            self._require_known(min(ids, default=0))
            yield ids

    def encode_lines(self, lines: Iterable[str | bytes]) -> EncodedLines:
        """Returns the token ids of many lines as arrays.

        ```
        "Ça coûte", "", "5$" -> ids         6187 2522 10421 1019 1002
                                row_splits  0 3 3 5
        ```

        `KeyError` if a word is unknown and the vocabulary has no "[UNK]".
        """
        import numpy as np

        packed = [self._pack(line) for line in lines]
        ids = np.frombuffer(b"".join(packed), np.int32)
        self._require_known(ids.min(initial=0))
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
            decoded text. [UNK] has that of its word. See `alignment.py`.
        """
        tokens: list[str] = []
        spans: list[Span] = []
        offset = 0
        for part, is_token in self.basic_tokenizer.split(text):
            end = offset + len(part)
            words: Iterable[Aligned] = [(part, [(offset, end)])]
            if not is_token:
                words = align(part, offset, self._lowers_case)
            for word, char_spans in words:
                of_word = self._unpack(self._ids_of_word[word])
                tokens += of_word
                spans += _token_spans(of_word, char_spans)
            offset = end
        return tokens, spans

    def _pack(self, text: str | bytes) -> bytes:
        """Returns the token ids of a text as the bytes of int32."""
        words: list[str] = []
        for part, is_token in self.basic_tokenizer.split(text):
            if is_token:
                words.append(part)
            else:
                words += normalize(part, self._lowers_case).split()
        return b"".join(map(self._ids_of_word.__getitem__, words))

    def _unpack(self, packed: bytes) -> list[str]:
        ids = memoryview(packed).cast("i")
        return [*map(self._token_of_id.__getitem__, ids)]

    def _require_known(self, smallest_id: int) -> None:
        if smallest_id == _NO_ID:
            raise KeyError(self.wordpiece_tokenizer.unk_token)


class _PackedIds(dict[str, bytes]):
    """A bounded memo {word: its token ids, as the bytes of int32}.

    Bytes are fast to join, and Python's garbage collector ignores them. Words
    that are in the memo are looked up in C.
    """

    def __init__(self, tokenizer: FullTokenizer):
        super().__init__()
        wordpiece = tokenizer.wordpiece_tokenizer
        self.max_length = wordpiece.max_input_chars_per_word
        vocab = tokenizer.vocab
        self.unknown = _pack_id(vocab.get(wordpiece.unk_token, _NO_ID))
        # The vocabulary as seen at the start of a word and inside it.
        self.first = {token: _pack_id(index) for token, index in vocab.items()}
        self.later = {
            token.removeprefix("##"): packed
            for token, packed in self.first.items()
            if token.startswith("##")
        }
        self.longest = max(map(len, self.first), default=0)

    def __missing__(self, word: str) -> bytes:
        packed = self._split(word)
        if len(word) <= MAX_REMEMBERED_LENGTH:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[word] = packed
        return packed

    def _split(self, word: str) -> bytes:
        """Splits a word as `WordpieceTokenizer` does."""
        if len(word) > self.max_length:
            return self.unknown
        packed = []
        known = self.first
        while word:
            head = word[: self.longest]  # No token is longer.
            while head and head not in known:
                head = head[:-1]
            if not head:
                return self.unknown
            packed.append(known[head])
            word = word[len(head) :]
            known = self.later
        return b"".join(packed)


def _pack_id(index: int) -> bytes:
    return index.to_bytes(4, sys.byteorder, signed=True)


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
