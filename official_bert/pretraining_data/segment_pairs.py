"""Divides documents into pairs of segments A and B, or single segments.

Segment B depends on `--nsp`::

    next  next sentence: B follows A, or comes from another document
    sop   sentence order: B follows A, or precedes it
    none  there is no B

A random B is added in a second step, which needs only the other document. To
draw random numbers in the order of the original implementation, use one stream
for both steps, and run the second step before the next pair is made.
"""

import bisect
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from official_bert.options import CreatePretrainingData

# Where the sentences of a document start in the corpus, and where it ends.
Document = Sequence[int]


class Pair(NamedTuple):
    """Two segments as spans of the corpus; B may be empty."""

    start_a: int
    end_a: int
    start_b: int
    end_b: int
    is_random_next: bool = False  # With --nsp=sop, whether B precedes A.

    @property
    def num_tokens(self) -> int:
        """The length of `[CLS] a [SEP] b [SEP]` or `[CLS] a [SEP]`."""
        length_b = self.end_b - self.start_b
        return self.end_a - self.start_a + (length_b + 3 if length_b else 2)


class IncompletePair(NamedTuple):
    """A pair without its random segment B; see `add_random_segment`."""

    start_a: int
    end_a: int
    document_b: int  # The index of the document of B.
    target_length_b: int
    is_random_next: bool = True


def document_pairs(
    document: Document,
    index: int,
    num_documents: int,
    options: CreatePretrainingData,
    rng: random.Random,
) -> Iterator[Pair | IncompletePair]:
    """Yields the pairs whose segment A comes from the document at `index`."""
    num_special = 2 if options.nsp == "none" else 3  # [CLS], [SEP], [SEP].
    max_num_tokens = options.max_seq_length - num_special
    target_length = max_num_tokens
    # Most sequences are full, because padding wastes computation. Some are
    # short, because the model will also be fine-tuned on short texts.
    if rng.random() < options.short_seq_prob:
        target_length = rng.randint(2, max_num_tokens)
    pairs: Iterator[Pair | IncompletePair]
    if options.nsp == "none":
        pairs = _single_segments(document, target_length)
    elif options.nsp == "sop":
        pairs = _ordered_pairs(document, target_length, rng)
    else:
        pairs = _next_pairs(document, index, num_documents, target_length, rng)
    for pair in pairs:
        if isinstance(pair, Pair):
            pair = _truncate(pair, max_num_tokens, rng)
        yield pair


def add_random_segment(
    pair: IncompletePair,
    documents: Sequence[Document],
    options: CreatePretrainingData,
    rng: random.Random,
) -> Pair:
    """Adds a random segment B, from `documents[pair.document_b]`."""
    document = documents[pair.document_b]
    start = rng.randint(0, len(document) - 2)
    end = _reach(document, start, pair.target_length_b)
    span_b = document[start], document[end]
    whole = Pair(pair.start_a, pair.end_a, *span_b, is_random_next=True)
    return _truncate(whole, options.max_seq_length - 3, rng)


def _next_pairs(
    document: Document,
    index: int,
    num_documents: int,
    target_length: int,
    rng: random.Random,
) -> Iterator[Pair | IncompletePair]:
    """Yields next sentence pairs: section 3.1, task 2 of the BERT paper."""
    start = 0
    while start < len(document) - 1:
        end = _reach(document, start, target_length)
        middle = start + 1  # The end of A.
        if end - start >= 2:
            middle = start + rng.randint(1, end - start - 1)
        span_a = document[start], document[middle]

        if end - start == 1 or rng.random() < 0.5:
            for _ in range(10):  # After ten tries, it may be the same document.
                number = rng.randint(0, num_documents - 1)
                if number != index:
                    break
            length_b = target_length - (span_a[1] - span_a[0])
            yield IncompletePair(*span_a, number, length_b)
            start = middle  # The remaining sentences are used again.
        else:
            yield Pair(*span_a, document[middle], document[end])
            start = end


def _ordered_pairs(
    document: Document, target_length: int, rng: random.Random
) -> Iterator[Pair]:
    """Yields sentence order pairs: section 3.1 of Lan et al., 2019 (ALBERT)."""
    start, last = 0, len(document) - 1
    while start < last:
        # At least two sentences, unless only one remains.
        end = max(_reach(document, start, target_length), start + 2)
        end = min(end, last)
        first_token, end_token = document[start], document[end]
        if end - start > 1:
            middle = document[start + rng.randint(1, end - start - 1)]
        else:  # A single sentence is split; a single token cannot be.
            least = first_token + 1
            middle = rng.randint(least, max(end_token - 1, least))
        start = end
        if middle == end_token:
            continue
        if rng.random() < 0.5:
            yield Pair(
                middle, end_token, first_token, middle, is_random_next=True
            )
        else:
            yield Pair(first_token, middle, middle, end_token)


def _single_segments(document: Document, target_length: int) -> Iterator[Pair]:
    start = 0
    while start < len(document) - 1:
        end = _reach(document, start, target_length)
        end_token = document[end]
        yield Pair(document[start], end_token, end_token, end_token)
        start = end


def _reach(document: Document, start: int, length: int) -> int:
    """Returns the end of the first sentences with at least `length` tokens."""
    end = bisect.bisect_left(document, document[start] + length, start + 1)
    return min(end, len(document) - 1)


def _truncate(pair: Pair, max_num_tokens: int, rng: random.Random) -> Pair:
    """Removes tokens from random ends of the longer segment until both fit."""
    start_a, end_a, start_b, end_b, is_random_next = pair
    length_a, length_b = end_a - start_a, end_b - start_b
    for _ in range(length_a + length_b - max_num_tokens):
        is_front = rng.random() < 0.5
        if length_a > length_b:
            length_a -= 1
            start_a += is_front
        else:
            length_b -= 1
            start_b += is_front
    return Pair(
        start_a, start_a + length_a, start_b, start_b + length_b, is_random_next
    )
