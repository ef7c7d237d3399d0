"""Texts that are longer than the model's input."""

import functools
from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from absl import logging

from official_bert.inputs import padding
from official_bert.inputs.text_inputs import truncate
from official_bert.io.json_files import Amount
from official_bert.io.rows import Row
from official_bert.options import RunClassifier

Ids = Sequence[int]
Pair = tuple[Ids, Ids]

# A larger share of truncated texts gives a warning. By default, a run with
# --train_file truncates 1% of its training data.
MAX_SHARE_TRUNCATED = 0.05

_MODES = ("truncate_tail", "head_tail", "windows")


class LongDocuments(NamedTuple):
    """What to do with texts that are longer than the model's input.

    Attributes:
        mode: `truncate_tail`, `head_tail` or `windows`; see `cut`.
        stride: Distance between window starts in tokens; 0: half a window.
        pooling: `mean` or `max`: how the windows' logits are combined.
    """

    mode: Annotated[str, _MODES] = "truncate_tail"
    stride: Amount = 0
    pooling: Annotated[str, ("mean", "max")] = "mean"


TRUNCATE_TAIL = LongDocuments()


def fit_max_seq_length(
    options: RunClassifier, rows: Sequence[Row]
) -> RunClassifier:
    """Lowers --max_seq_length to the 99th percentile of the texts' lengths.

    Changes nothing without rows, or if --fit_max_seq_length is false.
    """
    if not (rows and options.fit_max_seq_length):
        return options
    tokenizer = options.model_files.tokenizer
    columns = []
    for column in options.text_columns:
        texts = [row.text(column) for row in rows]
        columns.append(np.diff(tokenizer.encode_lines(texts).row_splits) + 1)
    # [CLS]; for sentence embeddings, each text is a sequence of its own.
    is_embedding = options.task_type == "embedding"
    join = np.concatenate if is_embedding else functools.partial(np.sum, axis=0)
    lengths = 1 + join(columns)
    limit = options.max_seq_length
    percentile = int(np.percentile(lengths, 99, method="higher"))
    # + 1, because a text that fills the sequence may have been truncated.
    length = padding.padded_length(min(percentile + 1, limit), limit, "bucket")
    note = ", the maximum" if percentile > limit else ""
    logging.info(
        f"--max_seq_length={length}{note}: 99% of the texts have at most "
        f"{percentile} tokens"
    )
    return options.replace(max_seq_length=length, fit_max_seq_length=False)


def warn_of_truncation(number: str, max_seq_length: int, advice: str) -> None:
    """Warns of truncated texts; `number` is such as "3 of 10"."""
    logging.warning(
        f"{number} texts are truncated to {max_seq_length} tokens{advice}"
    )


def cut(
    ids_a: Ids, ids_b: Ids, max_seq_length: int, long_documents: LongDocuments
) -> list[Pair]:
    """Returns the parts of a text, or of a pair, that fit into one sequence.

    * `truncate_tail` removes tokens from the end of the longer text, as the
      original implementation does.
    * `head_tail` removes as many tokens, but from the middle. The first quarter
      of the kept tokens is the beginning of the text, the rest its end: 128 and
      382 of 510 tokens (Sun et al., 2019, "How to Fine-Tune BERT for Text
      Classification?", section 5.3.1).
    * `windows` returns overlapping windows of the longer text. Each is paired
      with the other text, cut to half a sequence.

    `ids_b` is empty for single texts; `max_seq_length` includes [CLS] and
    [SEP]. Only `windows` returns several parts.
    """
    room = max_seq_length - (3 if ids_b else 2)
    if len(ids_a) + len(ids_b) <= room:
        return [(ids_a, ids_b)]
    if long_documents.mode == "windows" and room > 0:
        return _windows(ids_a, ids_b, room, long_documents.stride)
    kept_a, kept_b = truncate(ids_a, ids_b, max_seq_length)
    if long_documents.mode == "head_tail":
        kept_a = _head_and_tail(ids_a, len(kept_a))
        kept_b = _head_and_tail(ids_b, len(kept_b))
    return [(kept_a, kept_b)]


def _head_and_tail(ids: Ids, length: int) -> Ids:
    head = -(-length // 4)
    return [*ids[:head], *ids[len(ids) - (length - head) :]]


def _windows(ids_a: Ids, ids_b: Ids, room: int, stride: int) -> list[Pair]:
    is_a_longer = len(ids_a) > len(ids_b)
    long, short = (ids_a, ids_b) if is_a_longer else (ids_b, ids_a)
    short = short[: room // 2]
    size = room - len(short)
    step = min(stride or size // 2, size) or 1
    last = max(len(long) - size, 0)
    windows = [long[i : i + size] for i in (*range(0, last, step), last)]
    return [(w, short) if is_a_longer else (short, w) for w in windows]
