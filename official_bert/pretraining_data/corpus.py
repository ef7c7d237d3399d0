"""Text as three arrays: pieces, where sentences start, where documents start.

```
text         The cat sat .   It slept .        A dog .
ids          1996 4937 ...   2009 7771 1012    1037 3899 1012
sentences    0               4                 7                 10
documents    0                                 2                 3
```

`sentences` counts pieces, `documents` counts sentences, and both end with the
end of the last one. The arrays are in memory or, for corpora beyond it, in
files, of which only what is asked for is read.
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

# A block is as long as either allows: lines may be whole articles.
_LINES_AT_ONCE = 2048
_CHARACTERS_AT_ONCE = 2**19
_FILES = ("ids", "sentences", "documents")


class Block(NamedTuple):
    """The pieces of some lines that follow each other.

    Attributes:
        ids: int32 [pieces], of all sentences.
        lengths: int64 [sentences], how many pieces each has, at least one.
        groups: int64 [sentences], how many blank lines come before each.
        num_blank: How many blank lines there are in all.
    """

    ids: Ints
    lengths: Offsets
    groups: Offsets
    num_blank: int


class Corpus(NamedTuple):
    """Documents, one after the other.

    Attributes:
        ids: int32 [pieces]; or the number of an open file of them.
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

    @property
    def num_sentences(self) -> int:
        """The number of sentences, S."""
        return len(self.sentences) - 1

    @property
    def num_pieces(self) -> int:
        """The number of pieces, N."""
        return int(self.sentences[-1])

    def document(self, index: int) -> Offsets:
        """Returns where the sentences of a document start, and its end."""
        first, last = self.documents[index : index + 2].tolist()
        return self.sentences[first : last + 1]

    def parts(self, num_pieces: int) -> Iterator[tuple[int, int]]:
        """Yields documents (first, end) that have some `num_pieces` each."""
        first = 0
        while first < self.num_documents:
            wanted = self._start(first) + num_pieces
            every = range(self.num_documents)
            end = bisect.bisect_left(every, wanted, first + 1, key=self._start)
            yield first, end
            first = end

    def _start(self, document: int) -> int:
        return int(self.sentences[self.documents[document]])

    def pieces(self, starts: Offsets, ends: Offsets) -> Ints:
        """Returns the pieces of spans, one span after the other."""
        sizes = ends - starts
        if isinstance(self.ids, int):
            # Reading keeps no more of the file in memory than is asked for,
            # mapping it would.
            places = zip(
                (4 * sizes).tolist(), (4 * starts).tolist(), strict=True
            )
            read = [os.pread(self.ids, size, at) for size, at in places]
            return np.frombuffer(b"".join(read), np.int32)
        shifts = starts - (np.cumsum(sizes) - sizes)
        return self.ids[np.arange(sizes.sum()) + np.repeat(shifts, sizes)]


def blocks_of_lines(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yields the lines in portions fit for `tokenize_block`."""
    block: list[str] = []
    num_characters = 0
    for line in lines:
        block.append(line)
        num_characters += len(line)
        if (
            len(block) == _LINES_AT_ONCE
            or num_characters >= _CHARACTERS_AT_ONCE
        ):
            yield block
            block, num_characters = [], 0
    if block:
        yield block


def tokenize_block(tokenizer: BatchTokenizer, lines: Sequence[str]) -> Block:
    """Cuts lines of one sentence each into pieces.

    As in the 2018 release, a line that holds nothing but characters the
    tokenizer drops is no blank line, but left out.
    """
    texts = [line.strip() for line in lines]
    encoded = tokenizer.encode_lines(texts)
    lengths = np.diff(encoded.row_splits)
    blanks = np.cumsum([not text for text in texts])
    is_sentence = lengths > 0
    return Block(
        encoded.ids, lengths[is_sentence], blanks[is_sentence], int(blanks[-1])
    )


def write_blocks(
    blocks: Iterable[Block],
    ids: BinaryIO,
    sentences: BinaryIO,
    documents: BinaryIO,
) -> None:
    """Writes the three arrays, blank lines between documents.

    As in the 2018 release, the end of a file does not end a document.
    """
    num_pieces = num_sentences = num_blank = 0
    last_group = -1
    for block in blocks:
        ids.write(block.ids.astype(np.int32).tobytes())
        ends = num_pieces + np.cumsum(block.lengths)
        sentences.write((ends - block.lengths).astype(np.int64).tobytes())
        groups = block.groups + num_blank
        is_first = np.diff(groups, prepend=last_group) > 0
        first = num_sentences + np.flatnonzero(is_first)
        documents.write(first.astype(np.int64).tobytes())
        num_pieces += len(block.ids)
        num_sentences += len(block.lengths)
        num_blank += block.num_blank
        last_group = groups[-1] if len(groups) else last_group
    sentences.write(np.int64(num_pieces).tobytes())
    documents.write(np.int64(num_sentences).tobytes())


def in_memory(blocks: Iterable[Block]) -> Corpus:
    """Returns the corpus of blocks that follow each other."""
    ids, sentences, documents = (io.BytesIO() for _ in _FILES)
    write_blocks(blocks, ids, sentences, documents)
    return Corpus(
        np.frombuffer(ids.getbuffer(), np.int32),
        np.frombuffer(sentences.getbuffer(), np.int64),
        np.frombuffer(documents.getbuffer(), np.int64),
    )


def store(blocks: Iterable[Block], folder: str) -> None:
    """Writes the corpus of blocks to files in a folder."""
    names = (os.path.join(folder, name) for name in _FILES)
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(files.writing(name)) for name in names]
        write_blocks(blocks, *opened)


@contextlib.contextmanager
def stored(folder: str) -> Iterator[Corpus]:
    """Opens what `store` wrote, for a piece of work.

    What that touches of the offsets counts as its memory until it is done.
    """
    if files.is_remote(folder):
        folder = _local_copy(folder)
    ids, *offsets = (os.path.join(folder, name) for name in _FILES)
    with open(ids, "rb") as file:
        yield Corpus(
            file.fileno(),
            *(np.asarray(np.memmap(name, np.int64, "r")) for name in offsets),
        )


@functools.lru_cache(maxsize=1)
def _local_copy(folder: str) -> str:
    """Copies a remote folder once, until the process ends."""
    copy = tempfile.mkdtemp(prefix="pretraining-")
    atexit.register(files.remove_directory, copy)
    for name in _FILES:
        with (
            files.open_binary(os.path.join(folder, name)) as source,
            open(os.path.join(copy, name), "wb") as target,
        ):
            shutil.copyfileobj(source, target, 2**20)
    return copy


def require_text(corpus: Corpus, names: Sequence[str]) -> None:
    """Raises `InputError` if the corpus of files has no documents."""
    if not corpus.num_documents:
        raise InputError(
            "The input must hold text, one sentence a line. Received: none in "
            f"{', '.join(names)}."
        )
