"""The fast tokenizer: remembers what it has seen."""

import functools
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, TypeVar
import re

from official_bert.tokenization import characters
from official_bert.tokenization.full import FullTokenizer
from official_bert.tokenization.normalize import CHUNK, normalize, split_chunks
from official_bert.tokenization.text import convert_to_unicode

_Value = TypeVar("_Value")
Pieces = tuple[str, ...]

MAX_ENTRIES = 2**18
MAX_KEY_LENGTH = 48


class _Memo(dict[str, _Value]):
    def __missing__(self, key: str) -> _Value:
        value = self.compute(key)
        if len(key) <= MAX_KEY_LENGTH:
            if len(self) >= MAX_ENTRIES:
                self.clear()
            self[key] = value
        return value


class _PiecesOfWord(_Memo[Pieces]):
    def __init__(self, wp):
        self.unk = (wp.unk_token,)
        self.max_chars = wp.max_input_chars_per_word
        self.heads = {t: t for t in wp.vocab}
        self.tails = {t[2:]: t for t in wp.vocab if t.startswith("##")}
        self.longest_head = max(map(len, self.heads), default=0)
        self.longest_tail = max(map(len, self.tails), default=0)

    def compute(self, word):
        if len(word) > self.max_chars:
            return self.unk
        pieces = []
        tokens, longest = self.heads, self.longest_head
        start, length = 0, len(word)
        while start < length:
            end = min(length, start + longest)
            while end > start and word[start:end] not in tokens:
                end -= 1
            if end == start:
                return self.unk
            pieces.append(tokens[word[start:end]])
            start = end
            tokens, longest = self.tails, self.longest_tail
        return tuple(pieces)


_ASCII_WORDS = re.compile("[0-9A-Za-z]+|[!-~]")

class _PiecesOfChunk(_Memo[Pieces]):
    def __init__(self, words, do_lower_case):
        self.words = words
        self.do_lower_case = do_lower_case

    def compute(self, chunk):
        if chunk.isascii() and chunk.isprintable():
            if self.do_lower_case:
                chunk = chunk.lower()
            if chunk.isalnum():
                return self.words[chunk]
            words = _ASCII_WORDS.findall(chunk)
        else:
            words = normalize(chunk, self.do_lower_case).split()
        if len(words) == 1:
            return self.words[words[0]]
        return tuple(chain.from_iterable(map(self.words.__getitem__, words)))


class BatchTokenizer(FullTokenizer):
    def __init__(self, vocab_file, do_lower_case=True):
        super().__init__(vocab_file, do_lower_case)
        self.words = _PiecesOfWord(self.wordpiece_tokenizer)
        self.chunks = _PiecesOfChunk(self.words, do_lower_case)

    def tokenize(self, text):
        if not isinstance(text, str):
            text = convert_to_unicode(text)
        return list(chain.from_iterable(map(self.chunks.__getitem__, split_chunks(text))))
