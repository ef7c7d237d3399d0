"""A tokenized corpus as three arrays.

```
text         The cat sat .   It slept .        A dog .
ids          1996 4937 ...   2009 7771 1012    1037 3899 1012
sentences    0               4                 7                 10
documents    0                                 2                 3
```

`sentences` are indices into `ids`, `documents` are indices into `sentences`;
both end with the end of the last one. The arrays are in memory, or in files of
which only the requested parts are read.
"""

import atexit
import bisect
import contextlib
import functools
import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert import files
from official_bert.errors import InputError
from official_bert.tokenization import BatchTokenizer

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

# The limits of a block of lines. A line may be a whole article.
_LINES_PER_BLOCK = 2048
_CHARACTERS_PER_BLOCK = 2**19
_FILES = ("ids", "sentences", "documents")


class Block(NamedTuple):
    """The tokens of consecutive lines.

    Attributes:
        ids: int32 [tokens], of all sentences.
        lengths: int64 [sentences], in tokens, at least one each.
        num_blank_before: int64 [sentences], number of blank lines before each.
        num_blank: The number of all blank lines.
    """

    ids: Ints
    lengths: Offsets
    num_blank_before: Offsets
    num_blank: int


class Corpus(NamedTuple):
    """Consecutive documents.

    Attributes:
        ids: int32 [tokens]; or the descriptor of an open file with them.
        sentences: int64 [sentences + 1], where each starts in `ids`.
        documents: int64 [documents + 1], where each starts in `sentences`.
    """

    ids: Ints | int
    sentences: Offsets
    documents: Offsets

    @property
    def num_documents(self) -> int:
        """The number of documents."""
        return len(self.documents) - 1

    def document(self, index: int) -> Offsets:
        """Returns where the sentences of a document start, and its end."""
        first, last = self.documents[index : index + 2].tolist()
        return self.sentences[first : last + 1]

    def parts(self, num_tokens: int) -> Iterator[tuple[int, int]]:
        """Yields ranges of documents (first, end) with about `num_tokens`."""

        def start_of(document: int) -> int:
            return int(self.sentences[self.documents[document]])

        indices = range(self.num_documents)
        first = 0
        while first < self.num_documents:
            wanted = start_of(first) + num_tokens
            end = bisect.bisect_left(indices, wanted, first + 1, key=start_of)
            yield first, end
            first = end

    def tokens(self, starts: Offsets, ends: Offsets) -> Ints:
        """Returns the ids of spans, one span after the other."""
        sizes = ends - starts
        if isinstance(self.ids, int):
            # Unlike a memory map, reading keeps only these parts in memory.
            places = np.stack([4 * sizes, 4 * starts], axis=1).tolist()
            parts = [os.pread(self.ids, size, at) for size, at in places]
            return np.frombuffer(b"".join(parts), np.int32)
        shifts = starts - (np.cumsum(sizes) - sizes)
        return self.ids[np.arange(sizes.sum()) + np.repeat(shifts, sizes)]


def blocks_of_lines(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yields lines in blocks for `tokenize_block`."""
    block: list[str] = []
    room = _CHARACTERS_PER_BLOCK
    for line in lines:
        block.append(line)
        room -= len(line)
        if len(block) == _LINES_PER_BLOCK or room <= 0:
            yield block
            block, room = [], _CHARACTERS_PER_BLOCK
    if block:
        yield block


def tokenize_block(tokenizer: BatchTokenizer, lines: Sequence[str]) -> Block:
    """Tokenizes lines of one sentence each.

    As in the original implementation, a line of characters that the tokenizer
    removes is not a blank line; it is left out.
    """
    texts = [line.strip() for line in lines]
    ids, row_splits = tokenizer.encode_lines(texts)
    lengths = np.diff(row_splits)
    num_blank = np.cumsum([not text for text in texts])
    is_sentence = lengths > 0
    lengths, num_before = lengths[is_sentence], num_blank[is_sentence]
    return Block(ids, lengths, num_before, int(num_blank[-1]))


def write_blocks(
    blocks: Iterable[Block],
    ids: BinaryIO,
    sentences: BinaryIO,
    documents: BinaryIO,
) -> None:
    """Writes the three arrays; documents are separated by blank lines.

    As in the original implementation, the end of a file does not end a
    document.
    """
    num_tokens = num_sentences = num_blank = 0
    last = -1
    for block in blocks:
        ids.write(block.ids.astype(np.int32).tobytes())
        ends = num_tokens + np.cumsum(block.lengths)
        sentences.write((ends - block.lengths).astype(np.int64).tobytes())
        before = block.num_blank_before + num_blank
        is_first = np.diff(before, prepend=last) > 0
        first = num_sentences + np.flatnonzero(is_first)
        documents.write(first.astype(np.int64).tobytes())
        num_tokens += len(block.ids)
        num_sentences += len(block.lengths)
        num_blank += block.num_blank
        last = before[-1] if len(before) else last
    sentences.write(np.int64(num_tokens).tobytes())
    documents.write(np.int64(num_sentences).tobytes())


def in_memory(blocks: Iterable[Block]) -> Corpus:
    """Returns the corpus of consecutive blocks."""
    ids, *offsets = buffers = [io.BytesIO() for _ in _FILES]
    write_blocks(blocks, *buffers)
    return Corpus(
        np.frombuffer(ids.getbuffer(), np.int32),
        *(np.frombuffer(o.getbuffer(), np.int64) for o in offsets),
    )


def store(blocks: Iterable[Block], directory: str) -> None:
    """Writes the corpus of consecutive blocks to files in a directory."""
    with contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(files.writing(os.path.join(directory, name)))
            for name in _FILES
        ]
        write_blocks(blocks, *opened)


@contextlib.contextmanager
def stored(directory: str) -> Iterator[Corpus]:
    """Opens a corpus written by `store`.

    The offsets are memory-mapped: the parts that are used count as memory of
    the process until the context ends.
    """
    if files.is_remote(directory):
        directory = _local_copy(directory)
    ids, *offsets = (os.path.join(directory, name) for name in _FILES)
    with open(ids, "rb") as file:
        yield Corpus(
            file.fileno(),
            *(np.asarray(np.memmap(name, np.int64, "r")) for name in offsets),
        )


@functools.lru_cache(maxsize=1)
def _local_copy(directory: str) -> str:
    """Copies a remote corpus once; the copy is removed when Python exits."""
    copy = tempfile.mkdtemp(prefix="pretraining-")
    atexit.register(files.remove_directory, copy)
    for name in _FILES:
        with (
            files.open_binary(os.path.join(directory, name)) as source,
            open(os.path.join(copy, name), "wb") as target,
        ):
            shutil.copyfileobj(source, target, 2**20)
    return copy


def require_text(corpus: Corpus, names: Sequence[str]) -> None:
    """Raises `InputError` if the corpus of files has no documents."""
    if not corpus.num_documents:
        raise InputError(
            f"{', '.join(names)}: the input must contain text, one sentence "
            "per line. Received: no text."
        )
