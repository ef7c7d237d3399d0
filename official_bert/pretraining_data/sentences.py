"""Lines of one sentence each, as they are in the files or split from prose."""

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence

from official_bert import progress
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus


def read_lines(
    names: Sequence[str], options: CreatePretrainingData
) -> Iterator[str]:
    """Yields the lines of text files, with a progress bar."""
    if not options.split_sentences:
        return progress.read_lines(names, "Reading text")
    split = functools.partial(
        split_prose, document_blank_lines=options.document_blank_lines
    )
    return progress.read_lines(names, "Reading text", split)


def split_prose(
    lines: Iterable[str], document_blank_lines: int
) -> Iterator[str]:
    """Yields the sentences of a file, and a blank line after each document.

    Blank lines separate paragraphs, whose sentences continue from line to line.
    A number of blank lines and the end of the file end a document. With
    `document_blank_lines=0`, each line is a document.
    """
    for is_blank, group in itertools.groupby(lines, _is_blank):
        if is_blank:
            if sum(1 for _ in group) >= document_blank_lines:
                yield ""
        elif document_blank_lines == 0:
            for line in group:
                yield from _sentences(line)
                yield ""
        else:
            # In blocks, because a file may be one paragraph.
            for block in corpus.blocks_of_lines(group):
                yield from _sentences(" ".join(block))
    yield ""


def _is_blank(line: str) -> bool:
    return not line.strip()


def _sentences(paragraph: str) -> list[str]:
    from livekit import blingfire  # Only needed for prose.

    sentences: list[str] = []
    for text in blingfire.text_to_sentences(paragraph).split("\n"):
        # As in: "Stop!" cried the captain.
        if sentences and text[:1].islower():
            sentences[-1] += " " + text
        elif text.strip():
            sentences.append(text)
    return sentences
