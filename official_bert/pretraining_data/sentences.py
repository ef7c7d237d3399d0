"""Lines of one sentence each, as they are in the files or split from prose."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from absl import logging

from official_bert import progress
from official_bert.errors import InputError, listed
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus
from official_bert.pretraining_data.corpus import Corpus
from official_bert.pretraining_data.instance_records import Settings

# Sentences whose documents are checked at a time.
_SENTENCES_PER_PART = 2**20


def read_lines(
    names: Sequence[str], options: CreatePretrainingData
) -> Iterator[str]:
    """Yields the lines of text files, with a progress bar."""
    if not options.split_sentences:
        return progress.read_lines(names, "Reading text")
    num_blank = options.document_blank_lines
    return progress.read_lines(
        names, "Reading text", lambda lines: split_prose(lines, num_blank)
    )


def split_prose(
    lines: Iterable[str], document_blank_lines: int
) -> Iterator[str]:
    """Yields the sentences of a file, and a blank line after each document.

    Blank lines separate paragraphs, whose sentences continue from line to line.
    A number of blank lines and the end of the file end a document. With
    `document_blank_lines=0`, each line is a document.
    """
    for has_text, group in itertools.groupby(lines, lambda s: bool(s.strip())):
        if not has_text:
            if len(list(group)) >= document_blank_lines:
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


def report(text: Corpus, names: Sequence[str], settings: Settings) -> None:
    """Logs the size of the text of files, and warns about its documents.

    Raises `InputError` if there are no documents.
    """
    if not len(text):
        raise InputError(
            f"{listed(names)}: must contain text, one sentence per line."
        )
    logging.info(
        "Read %d documents, %d sentences, %d tokens",
        len(text),
        len(text.sentences) - 1,
        text.num_tokens,
    )
    advice = (
        "Write one sentence per line and a blank line between documents, or "
        "use --split_sentences."
    )
    if settings.options.split_sentences:
        advice = "Use one file per document, or change --document_blank_lines."
    num_single = sum(
        np.count_nonzero(np.diff(text.documents[first : end + 1]) == 1)
        for first, end in text.parts(_SENTENCES_PER_PART)
    )
    if len(text) == 1 and settings.options.nsp == "next":
        problem = "only one document: random segments B are also from it"
    elif 2 * num_single >= len(text):
        problem = f"{num_single} of {len(text)} have one sentence"
    elif _is_wrapped(text, settings):
        problem = "most lines end within a sentence"
    else:
        return
    logging.warning("Check the documents: %s. %s", problem, advice)


def _is_wrapped(text: Corpus, settings: Settings) -> bool:
    ends = text.sentences[1:2048]
    token_of = settings.tokenizer.inv_vocab
    last = [token_of[i][-1:] for i in text.tokens(ends - 1, ends).tolist()]
    return 2 * sum(char.isalnum() or char == "," for char in last) > len(last)
