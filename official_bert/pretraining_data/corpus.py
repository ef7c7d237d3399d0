"""A tokenized corpus as three arrays.

```
text         The cat sat .   It slept .        A dog .
ids          1996 4937 ...   2009 7771 1012    1037 3899 1012
sentences    0               4                 7                 10
documents    0                                 2                 3
```

`sentences` are indices into `ids`, `documents` are indices into `sentences`;
their last entries are the ends of the last sentence and document. The arrays
are in memory, or in files of which only the requested parts are read.
"""

import bisect
import contextlib
import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from official_bert.io import files
from official_bert.pretraining_data.job import Job
from official_bert.tokenization.tokenizer import EncodedLines

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

# The ids of consecutive lines, and the length of each line in tokens, -1 for
# blank lines.
Block = tuple[Ints, Offsets]

# The limits of a block. A line may be a whole article.
_LINES_PER_BLOCK = 2048
_CHARACTERS_PER_BLOCK = 2**19
# Blocks of whole documents are larger by this factor. A cluster scatters the
# instances of each block over all buckets, in parts that should not be tiny.
_WHOLE_DOCUMENTS = 8

_SPACES = re.compile("[ \t\xa0\u3000]")

_FILES = ("ids", "sentences", "documents")


@dataclasses.dataclass(frozen=True)
class Corpus:
    """A sequence of documents; the module's docstring describes the arrays.

    A document is an array: where its sentences start in `ids`, and its end.
    """

    ids: Ints | int  # An array, or the descriptor of an open file.
    sentences: Offsets
    documents: Offsets

    def __len__(self) -> int:
        return len(self.documents) - 1

    def __getitem__(self, index: int) -> Offsets:
        first, last = self.documents[index], self.documents[index + 1]
        return self.sentences[first : last + 1]

    def __iter__(self) -> Iterator[Offsets]:
        return (self[index] for index in range(len(self)))

    @property
    def num_tokens(self) -> int:
        """The number of tokens."""
        return int(self.sentences[-1])

    def parts(self, num_sentences: int) -> Iterator[tuple[int, int]]:
        """Yields ranges of documents with about `num_sentences` sentences."""
        first = 0
        while first < len(self):
            target = self.documents[first] + num_sentences
            end = bisect.bisect_left(self.documents[:-1], target, first + 1)
            yield first, end
            first = end

    def part(self, first: int, end: int) -> "Corpus":
        """Returns a range of documents of a corpus in memory."""
        documents = self.documents[first : end + 1]
        sentences = self.sentences[documents[0] : documents[-1] + 1]
        assert not isinstance(self.ids, int)
        return Corpus(
            self.ids[sentences[0] : sentences[-1]],
            sentences - sentences[0],
            documents - documents[0],
        )

    def tokens(self, starts: Offsets, ends: Offsets) -> Ints:
        """Returns the ids of spans, one span after the other."""
        sizes = ends - starts
        if isinstance(self.ids, int):
            # Unlike a memory map, this keeps only these parts in memory.
            ranges = np.stack([4 * sizes, 4 * starts], axis=1).tolist()
            spans = [os.pread(self.ids, size, at) for size, at in ranges]
            return np.frombuffer(b"".join(spans), np.int32)
        shifts = starts - (np.cumsum(sizes) - sizes)
        return self.ids[np.arange(sizes.sum()) + np.repeat(shifts, sizes)]


def blocks_of_lines(
    lines: Iterable[str], whole_documents: bool = False
) -> Iterator[list[str]]:
    """Yields lines in blocks of limited size.

    With `whole_documents`, blocks are larger and end at blank lines.
    """
    scale = _WHOLE_DOCUMENTS if whole_documents else 1
    block: list[str] = []
    room = scale * _CHARACTERS_PER_BLOCK
    for line in lines:
        block.append(line)
        room -= len(line)
        is_full = len(block) >= scale * _LINES_PER_BLOCK or room <= 0
        if is_full and not (whole_documents and line.strip()):
            yield block
            block, room = [], scale * _CHARACTERS_PER_BLOCK
    if block:
        yield block


def tokenize(job: Job, lines: Sequence[str]) -> Block:
    """Tokenizes lines of one sentence each.

    As in the original implementation, a line is omitted if the tokenizer
    removes all its characters. Unlike a blank line, it ends no document.
    """
    texts = [line.strip() for line in lines]
    if job.options.words_are_separated:
        ids, row_splits = _tokenize_words(job, texts)
    else:
        ids, row_splits = job.tokenizer.encode_lines(texts)
    is_blank = [text == "" for text in texts]
    return ids, np.where(is_blank, -1, np.diff(row_splits))


def _tokenize_words(job: Job, texts: list[str]) -> EncodedLines:
    """Tokenizes lines; marks tokens that continue a word.

    ```
    使用 语言 ，     使 用 语 言 ，   ids of 用 and 言 + `job.num_tokens`
    ```
    """
    words = [_SPACES.split(text) for text in texts]
    ids, splits = job.tokenizer.encode_lines(itertools.chain(*words))
    word = np.repeat(np.arange(len(splits) - 1), np.diff(splits))
    continues = np.diff(word, prepend=-1) == 0
    ids = np.where(continues, ids + job.num_tokens, ids)
    num_words = np.cumsum([0, *map(len, words)])
    return EncodedLines(ids, splits[num_words])


def _arrays(blocks: Iterable[Block]) -> Iterator[tuple[Ints, Offsets, Offsets]]:
    """Yields consecutive parts of the three arrays.

    As in the original implementation, blank lines separate documents, and the
    end of a file does not end a document.
    """
    num_tokens = num_sentences = num_blank = 0
    last = -1  # The number of blank lines before the last sentence.
    for ids, lengths in blocks:
        is_sentence = lengths > 0
        before = num_blank + np.cumsum(lengths < 0)
        is_first = np.diff(before[is_sentence], prepend=last) > 0
        lengths = lengths[is_sentence]
        starts = num_tokens + np.cumsum(lengths) - lengths
        yield ids, starts, num_sentences + np.flatnonzero(is_first)
        num_tokens += len(ids)
        num_sentences += len(lengths)
        num_blank = before[-1]
        last = before[is_sentence].max(initial=last)
    ends = np.array([num_tokens]), np.array([num_sentences])
    yield np.zeros(0, np.int32), *ends


def in_memory(blocks: Iterable[Block]) -> Corpus:
    """Returns the corpus of consecutive blocks."""
    columns = zip(*_arrays(blocks), strict=True)
    return Corpus(*(np.concatenate(parts) for parts in columns))


def store(blocks: Iterable[Block], directory: str) -> None:
    """Writes the corpus of consecutive blocks to files in a directory."""
    paths = [os.path.join(directory, name) for name in _FILES]
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(files.writing(path)) for path in paths]
        for arrays in _arrays(blocks):
            for i, file in enumerate(opened):
                file.write(arrays[i].tobytes())


@contextlib.contextmanager
def stored(directory: str) -> Iterator[Corpus]:
    """Opens a corpus written by `store`; its offsets are memory-mapped."""
    ids, sentences, documents = [os.path.join(directory, f) for f in _FILES]
    with open(ids, "rb") as file:
        yield Corpus(
            file.fileno(),
            np.asarray(np.memmap(sentences, np.int64, "r")),
            np.asarray(np.memmap(documents, np.int64, "r")),
        )
