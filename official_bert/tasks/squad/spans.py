"""The best spans of each question, out of the logits of its windows."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.tasks.squad.features import SquadFeatures
from official_bert.tasks.squad.windows import Windows, owners

Logits = npt.NDArray[np.floating[Any]]

_ROWS_AT_ONCE = 1024


class Null(NamedTuple):
    """The span ([CLS], [CLS]) of the window that believes least in it."""

    start_logit: float
    end_logit: float

    @property
    def score(self) -> float:
        """The sum of both logits."""
        return self.start_logit + self.end_logit


class Spans(NamedTuple):
    """The spans of one question, best first.

    Attributes:
        first: int [N], the first piece, counted in the paragraph.
        last: int [N], the last piece.
        start_logits: float64 [N].
        end_logits: float64 [N].
        null: What stands for "no answer"; zeros if there are no windows.
    """

    first: npt.NDArray[np.intp]
    last: npt.NDArray[np.intp]
    start_logits: npt.NDArray[np.float64]
    end_logits: npt.NDArray[np.float64]
    null: Null


class _Top(NamedTuple):
    """The highest logits of windows, and where in their rows; [rows, n]."""

    places: npt.NDArray[np.intp]
    logits: npt.NDArray[np.float64]

    def rows(self, begin: int, end: int) -> "_Top":
        return _Top(self.places[begin:end], self.logits[begin:end])


def best_spans(
    features: SquadFeatures,
    start_logits: Logits,
    end_logits: Logits,
    n_best_size: int,
    max_answer_length: int,
) -> Iterator[Spans]:
    """Yields the spans of each question.

    A span begins with one of the `n_best_size` best starts of a window, which
    has the most context there, and ends with one of its best ends. Of equal
    ones, those that come first are better.

    Args:
        features: The windows.
        start_logits: [W, S].
        end_logits: [W, S].
        n_best_size: See `DecodingOptions`.
        max_answer_length: In pieces.
    """
    windows, offsets = features.windows, features.offsets
    starts = _highest(start_logits, n_best_size)
    ends = _highest(end_logits, n_best_size)
    first_scores = np.stack([start_logits[:, 0], end_logits[:, 0]])
    first_scores = first_scores.astype(np.float64)
    num_examples = len(features.paragraph)
    limits = np.searchsorted(windows.example, np.arange(num_examples + 1))
    for begin, end in zip(
        limits[:-1].tolist(), limits[1:].tolist(), strict=True
    ):
        null = Null(0.0, 0.0)
        if end > begin:
            scores = first_scores[:, begin:end]
            # A question has an answer if one of its windows has.
            least = int(np.argmin(scores.sum(axis=0)))
            null = Null(*scores[:, least].tolist())
        yield _spans_of(
            windows.rows(begin, end),
            offsets[begin:end, np.newaxis],
            starts.rows(begin, end),
            ends.rows(begin, end),
            max_answer_length,
            null,
        )


def _highest(logits: Logits, number: int) -> _Top:
    """Returns the highest logits of each row; of equal ones, the first."""
    places = [
        np.argsort(-logits[i : i + _ROWS_AT_ONCE], axis=1, kind="stable")[
            :, :number
        ]
        for i in range(0, len(logits), _ROWS_AT_ONCE)
    ]
    top = np.concatenate(places) if places else np.zeros((0, number), np.intp)
    return _Top(top, np.take_along_axis(logits, top, 1).astype(np.float64))


def _spans_of(
    windows: Windows,
    offsets: npt.NDArray[np.int32],
    starts: _Top,
    ends: _Top,
    max_answer_length: int,
    null: Null,
) -> Spans:
    """Combines the best starts and ends of each window of one question."""
    # From places in a row to pieces of the paragraph.
    shifts = windows.start[:, np.newaxis] - offsets
    limits = offsets + windows.length[:, np.newaxis]
    first, last = starts.places + shifts, ends.places + shifts
    is_first = (starts.places >= offsets) & (starts.places < limits)
    is_last = (ends.places >= offsets) & (ends.places < limits)
    owner = owners(windows.start, windows.length)
    number = np.arange(len(first))[:, np.newaxis]
    is_first &= owner[np.where(is_first, first, 0)] == number

    lengths = last[:, np.newaxis, :] - first[:, :, np.newaxis] + 1
    is_span = (lengths > 0) & (lengths <= max_answer_length)
    is_span &= is_first[:, :, np.newaxis] & is_last[:, np.newaxis, :]
    window, i, j = np.nonzero(is_span)
    start_logits, end_logits = starts.logits[window, i], ends.logits[window, j]
    order = np.argsort(-(start_logits + end_logits), kind="stable")
    return Spans(
        first[window, i][order],
        last[window, j][order],
        start_logits[order],
        end_logits[order],
        null,
    )
