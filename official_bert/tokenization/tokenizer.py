"""The fast tokenizer: words are tokenized once and remembered."""

from __future__ import annotations

import array
import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from official_bert.tokenization.alignment import Aligned, Span, align
from official_bert.tokenization.full_tokenizer import FullTokenizer

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

    It remembers the token ids of words, so the vocabulary must not change after
    construction.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        never_split: tuple[str, ...] = (),
    ):
        super().__init__(vocab_file, do_lower_case, never_split)
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
                do_lower_case = self.basic_tokenizer.do_lower_case
                words = align(part, offset, do_lower_case)
            for word, char_spans in words:
                of_word = self._unpack(self._ids_of_word[word])
                tokens += of_word
                spans += _token_spans(of_word, char_spans)
            offset = end
        return tokens, spans

    def _pack(self, text: str | bytes) -> bytes:
        """Returns the token ids of a text as the bytes of int32."""
        words = self.basic_tokenizer.tokenize(text)
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
        self.split = tokenizer.wordpiece_tokenizer.tokenize
        self.vocab = tokenizer.vocab

    def __missing__(self, word: str) -> bytes:
        ids = [self.vocab.get(token, _NO_ID) for token in self.split(word)]
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
