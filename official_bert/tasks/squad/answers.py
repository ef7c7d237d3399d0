"""Where in its windows an answer stands, for training."""

from collections.abc import Sequence

import numpy as np

from official_bert.tasks.squad.examples import SquadExample
from official_bert.tasks.squad.features import SquadFeatures
from official_bert.tasks.squad.windows import Ints
from official_bert.tokenization import BatchTokenizer


def positions(
    examples: Sequence[SquadExample],
    features: SquadFeatures,
    tokenizer: BatchTokenizer,
) -> dict[str, Ints]:
    """Returns what the model must find in each window.

    Both positions are 0, that of [CLS], where the window does not hold the
    whole answer, and where there is none.

    Args:
        examples: With their answers.
        features: Made of these examples.
        tokenizer: That made them.

    Returns:
        `start_positions` and `end_positions`, in the row, and `is_impossible`,
        0 or 1, which is the example's; each int32 [W].
    """
    windows = features.windows
    first, last = (
        a[windows.example] for a in _spans(examples, features, tokenizer)
    )
    is_impossible = np.array([e.is_impossible for e in examples], np.bool_)
    is_impossible = is_impossible[windows.example]
    is_inside = first >= windows.start
    is_inside &= last < windows.start + windows.length
    is_inside &= ~is_impossible
    shift = features.offsets - windows.start
    return {
        "start_positions": np.where(is_inside, first + shift, 0),
        "end_positions": np.where(is_inside, last + shift, 0),
        "is_impossible": is_impossible.astype(np.int32),
    }


def _spans(
    examples: Sequence[SquadExample],
    features: SquadFeatures,
    tokenizer: BatchTokenizer,
) -> tuple[Ints, Ints]:
    """Returns each answer's first and last piece, in its paragraph; [E]."""
    answers = tokenizer.encode_lines(e.orig_answer_text or "" for e in examples)
    ids, splits = answers.ids.tolist(), answers.row_splits.tolist()
    spans = np.zeros((2, len(examples)), np.int32)
    for index, example in enumerate(examples):
        if example.is_impossible or not example.doc_tokens:
            continue
        begin, end = features.paragraphs.splits[features.paragraph[index] :][:2]
        words = features.words[begin:end]
        start, end = example.answer_span
        # Spaces before the first word belong to a word -1, which Python takes
        # for the last one; so did the 2018 release.
        start %= len(example.doc_tokens)
        first = int(words.searchsorted(start))
        last = int(words.searchsorted(end + 1)) - 1
        spans[:, index] = _improve_span(
            features.paragraphs.ids[begin + first : begin + last + 1].tolist(),
            ids[splits[index] : splits[index + 1]],
            first,
            last,
        )
    return spans[0], spans[1]


def _improve_span(
    pieces: list[int], answer: list[int], first: int, last: int
) -> tuple[int, int]:
    """Narrows a span of whole words to the answer itself, if it is there.

    The answer to "When was he born?" may be the 1895 of "(1895-1943).", which
    is one word.

    Args:
        pieces: Those of the span.
        answer: Those of the answer, tokenized on its own.
        first: Where the span begins.
        last: Its last piece.

    Returns:
        The first and the last piece of the first place that equals the answer,
        or else what was given.
    """
    length = len(answer)
    if length:
        for i in range(len(pieces) - length + 1):
            if pieces[i : i + length] == answer:
                return first + i, first + i + length - 1
    return first, last
