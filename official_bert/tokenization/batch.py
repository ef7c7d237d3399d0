"""The fast tokenizer: whole lines at once, and every word only once."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from official_bert.tokenization.alignment import Span
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.memo import AlignedPiecesOfChunk, PiecesOfWord
from official_bert.tokenization.normalize import normalize
from official_bert.tokenization.text import convert_to_unicode

if TYPE_CHECKING:
    from official_bert.tokenization.vectorized import Encoded, LineEncoder

# What stands between two spaces. The characters are those that `str.split`
# takes for spaces, less its control characters (VT, FF, U+001C to U+001F and
# U+0085): `BasicTokenizer` removes these before it splits.
_CHUNK = re.compile(
    "[^\t\n\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+"
)


class BatchTokenizer(FullTokenizer):
    """A `FullTokenizer` for large amounts of text.

    It gives the same pieces about ten times faster, because it

    * normalises a whole text in a few calls (see `normalize.py`),
    * knows at once which words are tokens, and
    * remembers the pieces of those that it had to cut (see `memo.py`).

    It also knows where in the text its pieces come from. `encode_lines` gives
    ids and places as arrays, and is some three times faster again (see
    `vectorized.py`). The vocabulary must not be changed afterwards.

    Args:
        vocab_file: A text file with one token per line.
        do_lower_case: Whether to lower-case words and to drop their accents.
        never_split: Tokens that are kept whole wherever they occur in a text.
    """

    def __init__(
        self,
        vocab_file: str,
        do_lower_case: bool = True,
        never_split: tuple[str, ...] = (),
    ):
        super().__init__(vocab_file, do_lower_case, never_split)
        self._do_lower_case = do_lower_case
        longest = self.wordpiece_tokenizer.max_input_chars_per_word
        self._whole_words = frozenset(
            t for t in self.vocab if len(t) <= longest
        )
        self._pieces_of_word = PiecesOfWord(self.wordpiece_tokenizer)
        self._pieces_of_chunk = AlignedPiecesOfChunk(
            self._pieces_of_word, do_lower_case
        )

    def tokenize(self, text: str | bytes) -> list[str]:
        """Returns the pieces of `text`."""
        pieces: list[str] = []
        for word in self._words(convert_to_unicode(text)):
            # Nineteen of twenty words are tokens. Looking these up in a small
            # set that the processor's cache can hold is faster than in a memo.
            if word in self._whole_words:
                pieces.append(word)
            else:
                pieces += self._pieces_of_word[word]
        return pieces

    def tokenize_lines_to_ids(
        self, lines: Iterable[str | bytes]
    ) -> Iterator[list[int]]:
        """Yields the ids of every line, reading a block ahead."""
        for block in self._line_encoder.encode(lines):
            ids = block.ids.tolist()
            for start, end in itertools.pairwise(block.row_splits.tolist()):
                yield ids[start:end]

    def encode_lines(self, lines: Iterable[str | bytes]) -> Encoded:
        """Tokenizes many lines at once, several times faster than one by one.

        ```
        "Ça coûte", "", "5$" -> ids         6187 2522 10421  1019 1002
                                starts         0    3     5     0    1
                                ends           2    5     8     1    2
                                row_splits  0 3 3 5
        ```

        Args:
            lines: Strings, or bytes in UTF-8.

        Returns:
            NumPy arrays with the ids and places of the pieces that
            `tokenize_with_offsets` gives for each line, one after the other.

        Raises:
            KeyError: A word is unknown, and the vocabulary has no "[UNK]".
        """
        from official_bert.tokenization import vectorized

        return vectorized.concatenate(self._line_encoder.encode(lines))

    @functools.cached_property
    def _line_encoder(self) -> LineEncoder:
        # Imported here because the commands' --help does without NumPy.
        from official_bert.tokenization import vectorized

        return vectorized.LineEncoder(self)

    def tokenize_with_offsets(
        self, text: str | bytes
    ) -> tuple[list[str], list[Span]]:
        """Returns the pieces of `text`, and where in it they stand.

        ```
        "Ça coûte" -> ["ca", "co", "##ute"], [(0, 2), (3, 5), (5, 8)]
        ```

        Args:
            text: A string. The offsets into bytes are those once decoded.

        Returns:
            The pieces, and for each its (start, end) in characters of `text`.
            `text[start:end]` is what became the piece; of "[UNK]", the whole
            unknown word. Pieces of a single character share its span.
            `alignment.py` has all the rules.
        """
        pieces: list[str] = []
        spans: list[Span] = []
        text = convert_to_unicode(text)
        offset = 0
        for part, is_token in self.basic_tokenizer.never_split.split(text):
            if is_token:
                pieces += self._pieces_of_word[part]
                spans.append((offset, offset + len(part)))
            else:
                self._add_aligned(part, offset, pieces, spans)
            offset += len(part)
        return pieces, spans

    def _add_aligned(
        self, text: str, offset: int, pieces: list[str], spans: list[Span]
    ) -> None:
        """Adds the pieces and spans of a text that begins at `offset`."""
        for match in _CHUNK.finditer(text):
            chunk_pieces, chunk_spans = self._pieces_of_chunk[match.group()]
            shift = offset + match.start()
            pieces += chunk_pieces
            spans += [
                (start + shift, end + shift) for start, end in chunk_spans
            ]

    def _words(self, text: str) -> list[str]:
        """Returns what `BasicTokenizer.tokenize` does."""
        never_split = self.basic_tokenizer.never_split
        if not never_split.tokens:
            return normalize(text, self._do_lower_case).split()
        words: list[str] = []
        for part, is_token in never_split.split(text):
            if is_token:
                words.append(part)
            else:
                words += normalize(part, self._do_lower_case).split()
        return words
