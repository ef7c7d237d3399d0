"""Examples to what the model reads, as arrays.

```
input_ids    [CLS] who was he ? [SEP] he was a min ##er . [SEP] [PAD] [PAD]
input_mask     1    1   1  1  1   1   1   1  1  1   1   1   1     0     0
segment_ids    0    0   0  0  0   0   1   1  1  1   1   1   1     0     0
```

Every paragraph is tokenized once, however many questions there are about it,
and kept as ids: 8 bytes for each of its pieces. Rows are made when needed.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert import progress
from official_bert.tasks.squad.examples import SquadExample
from official_bert.tasks.squad.windows import (
    NUM_SPECIAL,
    Ints,
    WindowOptions,
    Windows,
    make_windows,
)
from official_bert.tokenization import BatchTokenizer

# The first window's `unique_ids`; the next have the numbers that follow.
FIRST_UNIQUE_ID = 1_000_000_000

_ROWS_AT_ONCE = 1024


class Pieces(NamedTuple):
    """The pieces of many texts, one after the other.

    Attributes:
        ids: int32 [N], in the vocabulary.
        splits: int64 [number of texts + 1]. The pieces of text i are those from
            `splits[i]` up to `splits[i + 1]`.
    """

    ids: Ints
    splits: npt.NDArray[np.int64]

    def of(self, index: int) -> Ints:
        """Returns the ids of one text."""
        return self.ids[self.splits[index] : self.splits[index + 1]]


class SquadFeatures(NamedTuple):
    """Examples as ids, and the windows that make rows of them.

    Attributes:
        questions: The pieces of each example's question, cut to length.
        paragraphs: The pieces of each paragraph.
        words: int32 [N], of which word of its paragraph each piece is part.
        paragraph: int32 [E], the index of each example's paragraph.
        windows: One for each row.
        max_seq_length: S.
        special_ids: Of [CLS] and [SEP].
    """

    questions: Pieces
    paragraphs: Pieces
    words: Ints
    paragraph: Ints
    windows: Windows
    max_seq_length: int
    special_ids: tuple[int, int]

    @property
    def num_rows(self) -> int:
        """The number of windows, W."""
        return len(self.windows.example)

    @property
    def offsets(self) -> Ints:
        """int32 [W], where in its row each window begins."""
        lengths = np.diff(self.questions.splits).astype(np.int32)
        return lengths[self.windows.example] + 2


def make_features(
    examples: Sequence[SquadExample],
    tokenizer: BatchTokenizer,
    options: WindowOptions,
    *,
    show_progress: bool = False,
) -> SquadFeatures:
    """Tokenizes examples and lays out their windows.

    Args:
        examples: In the order of the rows.
        tokenizer: One that keeps no tokens whole, as the 2018 release's.
        options: Lengths and stride.
        show_progress: Whether to show on standard error how far it is.
    """
    index_of = {
        paragraph: index
        for index, paragraph in enumerate(
            dict.fromkeys(example.paragraph for example in examples)
        )
    }
    encoded = tokenizer.encode_lines(
        progress.bar(
            [paragraph.text for paragraph in index_of],
            description="Tokenizing",
            unit="paragraph",
            disable=not show_progress,
        )
    )
    words = [
        paragraph.starts.searchsorted(encoded.starts[begin:end], side="right")
        for paragraph, (begin, end) in zip(
            index_of,
            itertools.pairwise(encoded.row_splits.tolist()),
            strict=True,
        )
    ]
    questions = _encode_questions(examples, tokenizer, options.max_query_length)
    paragraph = np.array([index_of[e.paragraph] for e in examples], np.int32)
    room = options.max_seq_length - NUM_SPECIAL - np.diff(questions.splits)
    num_pieces = np.diff(encoded.row_splits)[paragraph]
    return SquadFeatures(
        questions=questions,
        paragraphs=Pieces(encoded.ids, encoded.row_splits),
        words=np.concatenate(words).astype(np.int32) - 1,
        paragraph=paragraph,
        windows=make_windows(num_pieces, room, options.doc_stride),
        max_seq_length=options.max_seq_length,
        special_ids=(tokenizer.vocab["[CLS]"], tokenizer.vocab["[SEP]"]),
    )


def _encode_questions(
    examples: Iterable[SquadExample],
    tokenizer: BatchTokenizer,
    max_query_length: int,
) -> Pieces:
    """Returns the first pieces of each question."""
    encoded = tokenizer.encode_lines(e.question_text for e in examples)
    lengths = np.diff(encoded.row_splits)
    firsts = np.repeat(encoded.row_splits[:-1], lengths)
    is_kept = np.arange(len(encoded.ids)) - firsts < max_query_length
    kept = np.minimum(lengths, max_query_length)
    return Pieces(encoded.ids[is_kept], np.append(0, np.cumsum(kept)))


def rows(
    features: SquadFeatures, positions: dict[str, Ints] | None = None
) -> Iterator[dict[str, Ints]]:
    """Yields blocks of rows.

    Args:
        features: What they are made of.
        positions: More columns, such as `answers.positions` gives, each [W].

    Yields:
        {name: int32 [rows in block, length]}, as `SquadTask.schema` says.
    """
    offsets = features.offsets
    for begin in range(0, features.num_rows, _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, features.num_rows)
        windows = features.windows.rows(begin, end)
        place = np.arange(features.max_seq_length)
        starts = offsets[begin:end, np.newaxis]
        # The window, and the [SEP] behind it.
        limits = starts + windows.length[:, np.newaxis] + 1
        unique_ids = np.arange(begin, end) + FIRST_UNIQUE_ID
        block: dict[str, npt.NDArray[Any]] = {
            "unique_ids": unique_ids[:, np.newaxis],
            "input_ids": _input_ids(features, windows),
            "input_mask": place < limits,
            "segment_ids": (place >= starts) & (place < limits),
        }
        for name, column in (positions or {}).items():
            block[name] = column[begin:end, np.newaxis]
        yield {name: block[name].astype(np.int32) for name in block}


def _input_ids(features: SquadFeatures, windows: Windows) -> Ints:
    """Returns int32 [rows, S]."""
    cls, sep = features.special_ids
    shape = (len(windows.example), features.max_seq_length)
    input_ids = np.zeros(shape, np.int32)
    input_ids[:, 0] = cls
    columns = (column.tolist() for column in windows)
    for row, (example, start, length) in zip(
        input_ids, zip(*columns, strict=True), strict=True
    ):
        question = features.questions.of(example)
        pieces = features.paragraphs.of(features.paragraph[example])
        offset = len(question) + 2
        row[1 : offset - 1] = question
        row[offset - 1] = sep
        row[offset : offset + length] = pieces[start : start + length]
        row[offset + length] = sep
    return input_ids
