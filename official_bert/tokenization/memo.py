"""Dictionaries that compute what they lack, and remember it for a while."""

from typing import TypeVar

from official_bert.tokenization.alignment import Span, align
from official_bert.tokenization.text import whitespace_tokenize
from official_bert.tokenization.wordpiece import WordpieceTokenizer

# A memo is emptied when it has this many entries, which take some 50 MB, or 120
# MB with spans. Those that matter are soon back.
MAX_ENTRIES = 2**18

# Longer strings hardly ever come again, and are not remembered.
MAX_REMEMBERED_LENGTH = 64

_Value = TypeVar("_Value")


class Memo(dict[str, _Value]):
    """A bounded memo of a function of strings, which subclasses give.

    A look-up that hits runs in C alone, which makes this faster than
    `functools.lru_cache`, whose look-ups also have to keep an order.
    """

    def compute(self, key: str) -> _Value:
        """Returns the value for `key`, which is not in the memo."""
        raise NotImplementedError

    def __missing__(self, key: str) -> _Value:
        value = self.compute(key)
        if len(key) <= MAX_REMEMBERED_LENGTH:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[key] = value
        return value


class PiecesOfWord(Memo[tuple[str, ...]]):
    """{word: its pieces}, as `WordpieceTokenizer` cuts it.

    Args:
        wordpiece_tokenizer: Gives the vocabulary and the limits.
    """

    def __init__(self, wordpiece_tokenizer: WordpieceTokenizer):
        super().__init__()
        tokens = wordpiece_tokenizer.vocab
        self.max_length = wordpiece_tokenizer.max_input_chars_per_word
        self.unknown = (wordpiece_tokenizer.unk_token,)
        # What pieces look like in a word. The values are the vocabulary's own
        # strings, so that millions of equal pieces share their memory.
        self.first = {token: token for token in tokens}
        self.later = {t[2:]: t for t in tokens if t.startswith("##")}
        self.longest_first = max(map(len, self.first), default=0)
        self.longest_later = max(map(len, self.later), default=0)

    def compute(self, word: str) -> tuple[str, ...]:
        """Cuts a word into the longest pieces there are."""
        if len(word) > self.max_length:
            return self.unknown
        pieces = []
        known, longest = self.first, self.longest_first
        rest = word
        while rest:
            head = rest[:longest]  # No piece is longer.
            while head and head not in known:
                head = head[:-1]
            if not head:
                return self.unknown
            pieces.append(known[head])
            rest = rest[len(head) :]
            known, longest = self.later, self.longest_later
        return tuple(pieces)


class AlignedPiecesOfChunk(Memo[tuple[tuple[str, ...], tuple[Span, ...]]]):
    """{text without whitespace: its pieces and their spans in it}.

    Args:
        pieces_of_word: Cuts words into pieces.
        do_lower_case: Whether to lower-case words and to drop their accents.
    """

    def __init__(self, pieces_of_word: PiecesOfWord, do_lower_case: bool):
        super().__init__()
        self.pieces_of_word = pieces_of_word
        self.do_lower_case = do_lower_case

    def compute(self, chunk: str) -> tuple[tuple[str, ...], tuple[Span, ...]]:
        """Tokenizes a chunk and finds out where its pieces stand."""
        normalized, char_spans = align(chunk, self.do_lower_case)
        pieces: list[str] = []
        spans: list[Span] = []
        end = 0
        for word in whitespace_tokenize(normalized):
            start = normalized.index(word, end)
            end = start + len(word)
            pieces_of_word = self.pieces_of_word[word]
            pieces += pieces_of_word
            spans += _spans_of_pieces(pieces_of_word, char_spans[start:end])
        return tuple(pieces), tuple(spans)


def _spans_of_pieces(
    pieces: tuple[str, ...], char_spans: list[Span]
) -> list[Span]:
    """Divides the characters of a word among its pieces.

    Args:
        pieces: The pieces of a word, or one that stands for all of it.
        char_spans: The spans of the word's characters.
    """
    if len(pieces) == 1:
        return [(char_spans[0][0], char_spans[-1][1])]
    spans = []
    start = 0
    for piece in pieces:
        end = start + len(piece) - (len("##") if start > 0 else 0)
        spans.append((char_spans[start][0], char_spans[end - 1][1]))
        start = end
    return spans
