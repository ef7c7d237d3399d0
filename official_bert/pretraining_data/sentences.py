"""Reads text with one sentence per line, or splits prose into sentences."""

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io import progress, tables
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus
from official_bert.pretraining_data.corpus import Corpus
from official_bert.pretraining_data.job import Job
from official_bert.tokenization import Tokenizer, characters
from official_bert.tokenization.normalize import warn_of_removed_signs
from official_bert.tokenization.vocab import MAX_SHARE_UNKNOWN, warn_of_unknown

# Sentences whose documents are checked at a time.
_SENTENCES_PER_PART = 2**16

# The sentences that stand for all others in checks of their tokens.
_NUM_FIRST = 2048

# Lines with more tokens on average are probably paragraphs.
_MAX_MEAN_LENGTH = 100

# Advice if --split_sentences did not help.
CANNOT_SPLIT = (
    "Text without capital letters and full stops cannot be split: write one "
    "sentence per line, and omit --split_sentences"
)

# Marks that end a sentence, also without a space after them, and that BlingFire
# does not know, or only before a space. They are Sentence_Terminal in Unicode.
_ENDS = (
    "\u0589"  # Armenian
    "\u061d-\u061f\u06d4"  # Arabic: Urdu
    "\u0700-\u0702\u07f9"  # Syriac, N'Ko
    "\u0964\u0965"  # Devanagari and the other scripts of India
    "\u104b"  # Myanmar
    "\u1362\u1367\u1368"  # Ethiopic
    "\u17d4\u17d5"  # Khmer
    "\u1803\u1809"  # Mongolian
    "\u1c7e\u1c7f\uabeb"  # Ol Chiki, Meetei Mayek
)
_END = re.compile(rf"([{_ENDS}][{_ENDS}!?.\"'\u2019\u201d\u00bb)\]]*)\s*")

# Chinese words have two characters on average, sentences about twenty.
_MAX_MEAN_WORD_LENGTH = 6


def read_lines(
    names: Sequence[str], options: CreatePretrainingData
) -> Iterator[str]:
    """Yields the lines of text files, with a progress bar.

    Warns if a document continues in the next file.
    """
    last_lines: list[str] = []
    for lines in progress.read_files(names, "Reading text"):
        line = ""
        for line in lines_of_file(lines, options):
            yield line
        last_lines.append(line)
    if num_open := sum(bool(line.strip()) for line in last_lines[:-1]):
        logging.warning(
            f"{num_open} of {len(names)} files do not end with a blank line. "
            "Their last document continues in the next file, as in the "
            "original implementation. Add a blank line, or use --num_workers=1"
        )


def lines_of_file(
    lines: Iterator[str], options: CreatePretrainingData
) -> Iterator[str]:
    """Returns the lines of a file, split into sentences if they are prose.

    In the default mode, as in the original implementation, the end of a file
    does not end a document.
    """
    if options.split_sentences:
        return split_prose(lines, options.document_blank_lines)
    if options.num_workers or options.runner:
        return itertools.chain(lines, [""])
    return lines


def split_prose(
    lines: Iterable[str], document_blank_lines: int
) -> Iterator[str]:
    """Yields the sentences of a file, and a blank line after each document.

    Blank lines separate paragraphs, whose sentences continue from line to line.
    At least `document_blank_lines` blank lines, or the end of the file, end a
    document. With `document_blank_lines=0`, each line is a document.
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
            # Splits block by block, because a file may be one paragraph.
            for block in corpus.blocks_of_lines(group):
                yield from _sentences(" ".join(block))
    yield ""


def _sentences(paragraph: str) -> list[str]:
    from livekit import blingfire  # Needed only for prose.

    sentences: list[str] = []
    divided = _END.sub("\\1\n", blingfire.text_to_sentences(paragraph))
    for text in divided.split("\n"):
        # Rejoins what BlingFire divides: "Stop!" cried the captain.
        if sentences and text[:1].islower():
            sentences[-1] += " " + text
        elif text.strip():
            sentences.append(text)
    return sentences


class Summary(NamedTuple):
    """What `report` logs and checks."""

    num_documents: int
    num_sentences: int
    num_tokens: int
    num_single: int  # Number of documents with only one sentence.
    num_unknown: int  # Number of [UNK].
    is_wrapped: bool  # Whether most of the first lines end within a sentence.

    @property
    def share_unknown(self) -> float:
        """The share of [UNK] among the tokens."""
        return self.num_unknown / self.num_tokens


def summarize(text: Corpus, job: Job) -> Summary:
    """Counts documents, sentences and tokens."""
    num_single = num_unknown = 0
    unknown = job.tokenizer.vocab["[UNK]"]
    for first, end in text.parts(_SENTENCES_PER_PART):
        documents = text.documents[first : end + 1]
        num_single += int(np.count_nonzero(np.diff(documents) == 1))
        bounds = text.sentences[documents[[0, -1]]]
        ids = text.tokens(bounds[:1], bounds[1:]) % job.num_tokens
        num_unknown += int(np.count_nonzero(ids == unknown))
    return Summary(
        num_documents=len(text),
        num_sentences=len(text.sentences) - 1,
        num_tokens=text.num_tokens,
        num_single=num_single,
        num_unknown=num_unknown,
        is_wrapped=_is_wrapped(text, job),
    )


def report(summary: Summary, names: Sequence[str], job: Job) -> None:
    """Logs the size of the text; warns of unsuitable documents and tokens.

    Raises `InputError` if there are no documents.
    """
    options = job.options
    num_documents, num_single = summary.num_documents, summary.num_single
    if not num_documents:
        raise InputError(
            f"{listed(names)}: must contain text, one sentence per line."
        )
    # Often by mistake: by default, one blank line does not end a document.
    is_each_file = options.split_sentences and num_documents == len(names)
    each_file = " (each file is one)" if is_each_file else ""
    logging.info(
        f"Read {num_documents} documents{each_file}, {summary.num_sentences} "
        f"sentences, {summary.num_tokens} tokens"
    )
    if summary.share_unknown > MAX_SHARE_UNKNOWN:
        words = _unknown_words(tables.first_lines(names), job.tokenizer)
        warn_of_unknown(f"{summary.share_unknown:.1%} of the tokens", words)
    mean_length = summary.num_tokens / summary.num_sentences
    if num_documents == 1 and options.nsp == "next":
        problem = "there is only one document, so all segments B come from it"
    elif 2 * num_single >= num_documents:
        problem = f"{num_single} of {num_documents} have only one sentence"
    elif summary.is_wrapped:
        problem = "most lines end within a sentence"
    elif mean_length > _MAX_MEAN_LENGTH:
        problem = f"lines have {mean_length:.0f} tokens on average"
    else:
        return
    advice = (
        "Write one sentence per line and a blank line between documents, or "
        "use --split_sentences"
    )
    if options.split_sentences:
        values = {
            0: "0 if each line is a document",
            1: "1 if a blank line separates documents",
        }
        values.pop(options.document_blank_lines, None)
        advice = (
            "Use one file per document, or set --document_blank_lines: "
            f"{', '.join(values.values())}"
        )
        if num_single or mean_length > _MAX_MEAN_LENGTH:
            advice += f". {CANNOT_SPLIT}"
    logging.warning(f"Check the documents: {problem}. {advice}")


def _unknown_words(lines: Iterable[str], tokenizer: Tokenizer) -> list[str]:
    """Returns the most frequent words that are [UNK]."""
    words = Counter(
        word
        for line in lines
        for word in tokenizer.basic_tokenizer.tokenize(line)
        if "[UNK]" in tokenizer.wordpiece_tokenizer.tokenize(word)
    )
    return [word for word, _ in words.most_common(5)]


def check_sample(lines: Sequence[str], job: Job) -> None:
    """Warns if the tokenizer or the masking of words does not suit the text.

    Raises `InputError` if words are not separated.
    """
    options, text = job.options, "".join(lines)
    warn_of_removed_signs(text, job.tokenizer.settings)
    is_chinese = map(characters.is_chinese, text)
    if not options.do_whole_word_mask or 10 * sum(is_chinese) <= len(text):
        return
    mean_length = len(text) / len(" ".join(lines).split())
    if not options.words_are_separated:
        logging.warning(
            "--do_whole_word_mask has no effect on Chinese characters, each of "
            "which is a word. Separate the words of the text by spaces, and "
            "add --words_are_separated"
        )
    elif mean_length > _MAX_MEAN_WORD_LENGTH:
        raise options.error(
            "words_are_separated",
            f"needs spaces between words, but a word has {mean_length:.0f} "
            "characters on average. Divide the text into words first, for "
            "example with jieba or LTP.",
        )


def _is_wrapped(text: Corpus, job: Job) -> bool:
    ends = text.sentences[1 : _NUM_FIRST + 1]
    token_of = job.tokenizer.inv_vocab
    ids = text.tokens(ends - 1, ends) % job.num_tokens
    last = [token_of[i][-1:] for i in ids.tolist()]
    # Sentences in Thai and Lao, which have this range, end without a full stop.
    is_within = [
        char == "," or (char.isalnum() and not "\u0e00" <= char <= "\u0eff")
        for char in last
    ]
    return 2 * sum(is_within) > len(last)
