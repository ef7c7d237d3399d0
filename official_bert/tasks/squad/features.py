"""SQuAD examples as features: overlapping windows of long paragraphs.

```
input_ids    [CLS] who was he ? [SEP] he was a min ##er . [SEP] [PAD] [PAD]
input_mask     1    1   1  1  1   1   1   1  1  1   1   1   1     0     0
segment_ids    0    0   0  0  0   0   1   1  1  1   1   1   1     0     0
```

Each paragraph is tokenized once, however many questions there are about it.
Only token ids and the bounds of windows are kept; batches are made on demand.

A paragraph that is too long is read in overlapping windows. A token counts only
in the window that "owns" it: the one in which it has the most context on both
sides::

    tokens      0 1 2 3 4 5 6 7 8 9       room for 5, doc_stride 3
    window 0    0 1 2 3 4
    window 1          3 4 5 6 7
    window 2                6 7 8 9
    owner       0 0 0 0 1 1 1 2 2 2
"""

import dataclasses
import functools
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from absl import logging

from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.io import progress
from official_bert.tasks.squad.examples import Paragraph, SquadExample
from official_bert.tasks.task import Features
from official_bert.tokenization import Tokenizer
from official_bert.tokenization.alignment import Span

Ints = npt.NDArray[np.int32]

# `unique_ids` of the first window; the following windows count up from it.
FIRST_UNIQUE_ID = 1_000_000_000

NUM_SPECIAL = 3  # [CLS] question [SEP] window [SEP]

LABELS = ("start_positions", "end_positions", "is_impossible")


class ParagraphTokens(NamedTuple):
    """The tokens of a paragraph, each int32 [N]."""

    ids: Ints
    words: Ints  # The index in `Paragraph.words` of each token's word.
    chunks: Ints  # The index in `Paragraph.chunks` of each token's chunk.


class Windows(NamedTuple):
    """The windows of many examples, each int32 [W]."""

    example: Ints  # The index of each window's example, ascending.
    start: Ints  # Its first token, counted in the paragraph.
    length: Ints  # Its number of tokens.


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SquadFeatures(Features):
    """The features of E examples: one for each of W windows.

    Attributes:
        questions: E int32 arrays, the token ids of the questions, truncated.
        paragraphs: The tokens of E paragraphs. Questions about the same
            paragraph share them.
    """

    examples: Sequence[SquadExample]
    tokenizer: Tokenizer
    questions: Sequence[Ints]
    paragraphs: Sequence[ParagraphTokens]
    windows: Windows

    @functools.cached_property
    def offsets(self) -> Ints:
        """int32 [W], the position of each window in its input sequence."""
        lengths = np.array([len(ids) for ids in self.questions], np.int32)
        return lengths[self.windows.example] + 2

    @property
    def lengths(self) -> Sequence[int]:
        return (self.offsets + self.windows.length + 1).tolist()

    @functools.cached_property
    def labels(self) -> dict[str, Ints]:
        """`LABELS` of each window, {name: int32 [W]}; {} without answers.

        `start_positions` and `end_positions` are the first and last position
        of the answer in the input sequence. They are 0, the position of [CLS],
        unless the window contains the whole answer. `is_impossible` is 0 or 1.
        Warns of answers that are in no window.
        """
        answers = [e.answer for e in self.examples if e.answer]
        if not answers:
            return {}
        texts = tokenize(self.tokenizer, [answer.text for answer in answers])
        columns = (self.examples, texts, self.paragraphs)
        spans = [_answer_span(*row) for row in zip(*columns, strict=True)]
        example, begin, length = self.windows
        first, last = np.array(spans, np.int32)[example].T
        has_none = np.array([answer.is_impossible for answer in answers])
        is_impossible = has_none[example]
        is_inside = (first >= begin) & (last < begin + length) & ~is_impossible
        is_found = np.bincount(example[is_inside], minlength=len(answers)) > 0
        if num_lost := int((~has_none & ~is_found).sum()):
            logging.warning(
                f"{num_lost} of {len(answers)} answers are in no window, so "
                "training treats their questions as if they had no answer. "
                "Use a smaller --doc_stride or a larger --max_seq_length"
            )
        shift = self.offsets - begin
        return {
            "start_positions": np.where(is_inside, first + shift, 0),
            "end_positions": np.where(is_inside, last + shift, 0),
            "is_impossible": is_impossible.astype(np.int32),
        }

    def batch(
        self, indices: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        batch = {
            name: np.zeros((batch_size, feature.length), np.int32)
            for name, feature in make_schema(length, self.labels).items()
        }
        cls, sep = text_inputs.special_ids(self.tokenizer.vocab)
        for row, index in enumerate(indices):
            example, start, size = (column[index] for column in self.windows)
            offset = self.offsets[index]
            end = offset + size
            ids = batch["input_ids"][row]
            ids[0], ids[offset - 1], ids[end] = cls, sep, sep
            ids[1 : offset - 1] = self.questions[example]
            window = slice(start, start + size)
            ids[offset:end] = self.paragraphs[example].ids[window]
            batch["input_mask"][row, : end + 1] = 1
            batch["segment_ids"][row, offset : end + 1] = 1
            batch["unique_ids"][row] = FIRST_UNIQUE_ID + index
            for name, values in self.labels.items():
                batch[name][row] = values[index]
        return batch


def make_schema(max_seq_length: int, labels: Iterable[str] = LABELS) -> Schema:
    """Returns the original's features of a window."""
    return {
        "unique_ids": Feature(1),
        **text_schema(max_seq_length),
        **dict.fromkeys(labels, Feature(1)),
    }


def tokenize_paragraphs(
    tokenizer: Tokenizer, paragraphs: Sequence[Paragraph], show_progress: bool
) -> list[ParagraphTokens]:
    """Returns the tokens of each paragraph.

    Each different paragraph, and each different chunk, is tokenized once. The
    tokens of a word are those of its chunks.
    """
    texts = {
        paragraph: [paragraph.text[slice(*span)] for span in paragraph.chunks]
        for paragraph in paragraphs
    }
    chunks = dict.fromkeys(itertools.chain.from_iterable(texts.values()))
    chunks_with_bar = progress.bar(
        chunks,
        description="Tokenizing",
        unit=" words",
        disable=not show_progress,
    )
    all_ids = tokenize(tokenizer, chunks_with_bar)
    ids_of = dict(zip(chunks, all_ids, strict=True))
    tokenized = {}
    for paragraph, text in texts.items():
        parts = [ids_of[chunk] for chunk in text]
        ids = np.concatenate([np.zeros(0, np.int32), *parts])
        counts = np.fromiter(map(len, parts), np.intp)
        starts = [start for start, _ in paragraph.chunks]
        words = np.searchsorted(paragraph.word_starts, starts, "right") - 1
        tokenized[paragraph] = ParagraphTokens(
            ids,
            np.repeat(words.astype(np.int32), counts),
            np.repeat(np.arange(len(parts), dtype=np.int32), counts),
        )
    return [tokenized[paragraph] for paragraph in paragraphs]


@functools.lru_cache(1)  # The next question is often about the same paragraph.
def find_token_spans(tokenizer: Tokenizer, paragraph: Paragraph) -> list[Span]:
    """Returns the characters of the paragraph that each token stands for."""
    spans = []
    for begin, end in paragraph.chunks:
        _, own = tokenizer.tokenize_with_offsets(paragraph.text[begin:end])
        spans += [(begin + start, begin + stop) for start, stop in own]
    return spans


def tokenize(tokenizer: Tokenizer, texts: Iterable[str]) -> list[Ints]:
    """Returns the token ids of each text."""
    ids, row_splits = tokenizer.encode_lines(texts)
    return [ids[i:j] for i, j in itertools.pairwise(row_splits.tolist())]


def make_windows(num_tokens: Any, room: Any, doc_stride: int) -> Windows:
    """Divides paragraphs of `num_tokens`, int [E], into windows.

    A window has at most `room` tokens, int [E]. An empty paragraph has no
    window.
    """
    steps = np.minimum(room, doc_stride)
    num_later = -(-(num_tokens - room) // steps)
    counts = np.where(num_tokens > 0, 1 + np.maximum(num_later, 0), 0)
    example = np.repeat(np.arange(len(counts)), counts)
    firsts = np.cumsum(counts) - counts
    start = (np.arange(len(example)) - firsts[example]) * steps[example]
    length = np.minimum(num_tokens[example] - start, room[example])
    return Windows(*(a.astype(np.int32) for a in (example, start, length)))


def find_owners(starts: Ints, lengths: Ints) -> npt.NDArray[np.intp]:
    """Returns the window where each token of a paragraph has most context.

    The context is the smaller of the numbers of tokens to the left and to the
    right. Ties go to the longer window, then to the first. `starts` and
    `lengths`, int [N], describe the windows of one example.
    """
    owner = np.zeros(np.max(starts + lengths, initial=0), np.intp)
    best_scores = np.full(len(owner), -1.0)
    # Comparing all windows with all tokens would take quadratic memory.
    for index, (start, length) in enumerate(
        zip(starts.tolist(), lengths.tolist(), strict=True)
    ):
        num_left = np.arange(length)
        # This order of operations breaks ties as the original does (float64).
        scores = np.minimum(num_left, num_left[::-1]) + 0.01 * length
        best = best_scores[start : start + length]
        owner[start : start + length][scores > best] = index
        np.maximum(best, scores, out=best)
    return owner


def _answer_span(
    example: SquadExample, answer_ids: Ints, tokens: ParagraphTokens
) -> tuple[int, int]:
    """Returns the first and last token of an answer, counted in its paragraph.

    The span is the answer itself if its tokens occur in the answer's words, and
    otherwise all tokens of these words. For example, the answer to "When was he
    born?" can be 1895 in the word "(1895-1943).".
    """
    answer, num_words = example.answer, len(example.paragraph.words)
    if not answer or answer.is_impossible or not num_words:
        return 0, 0
    # Spaces before the first word have the index -1. As in the original, this
    # means the last word.
    first = int(tokens.words.searchsorted(answer.start % num_words))
    last = int(tokens.words.searchsorted(answer.end + 1)) - 1
    candidates = tokens.ids[first : last + 1].tolist()
    target = answer_ids.tolist()
    length = len(target)
    for start in range(len(candidates) - length + 1 if length else 0):
        if candidates[start : start + length] == target:
            return first + start, first + start + length - 1
    return first, last
