"""Files with one word a line and its tags in columns, as CoNLL's tasks have.

    -DOCSTART- -X- -X- O

    EU NNP B-NP B-ORG
    rejects VBZ B-VP O

Blank lines end sentences, lines that begin with `-DOCSTART-` documents. A line
with a tab in it is divided at tabs, others at runs of spaces. All lines with
words have as many columns as the first of them. A byte-order mark is dropped.
"""

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from official_bert import files
from official_bert.errors import InputError

_BOUNDARY = "-DOCSTART-"
_OUTSIDE = "O"


class Columns(NamedTuple):
    """Where things stand in a line, counted from 0.

    Attributes:
        token: The word's column.
        tag: The tag's; -1 is the last.
    """

    token: int = 0
    tag: int = -1


@dataclasses.dataclass(frozen=True)
class Sentence:
    """Words, and where they stand in their document.

    Its `repr` leaves out the document, which may be long, and which all its
    sentences together tell.

    Attributes:
        words: Of the sentence.
        tags: One for each word; None in test data.
        document: All words of the document.
        start: The number of the first of `words` among them.
    """

    words: Sequence[str]
    tags: Sequence[str] | None
    document: Sequence[str] = dataclasses.field(repr=False)
    start: int = 0


def read_sentences(
    path: str,
    columns: Columns,
    *,
    needs_tags: bool,
    labels: Collection[str] | None = None,
) -> list[Sentence]:
    """Reads a file.

    Args:
        path: Of the file.
        columns: Where words and tags are.
        needs_tags: Whether lines must have a tag. Else they need none: there
            is no column of that number, or it is the word's own.
        labels: What the tags may be; None for anything.

    Raises:
        InputError: There are no words, or a line is wrong.
    """
    sentences: list[Sentence] = []
    document: list[str] = []
    layout = None
    lines = files.numbered_lines(path)
    for kind, group in itertools.groupby(lines, lambda line: _kind(line[1])):
        if kind == "boundary":
            document = []
        elif kind == "words":
            rows = [(f"{path}:{n}", _cells(line)) for n, line in group]
            layout = layout or _layout(rows[0], columns, needs_tags)
            words, tags = _words_and_tags(rows, layout, labels)
            start = len(document)
            document += words
            sentences.append(Sentence(words, tags, document, start))
    if not sentences:
        raise InputError(
            f"{path}: must hold words. Received: none. Check the file."
        )
    return sentences


def with_predictions(path: str, answers: Iterable[Sequence[str]]) -> str:
    """Returns the text of a file with one more column: the predicted tags.

    Lines of `-DOCSTART-` get an `O`, so that all have as many columns;
    `conlleval` insists on it.

    Args:
        path: Of a file as `read_sentences` reads it.
        answers: The tags of each sentence.
    """
    tags = itertools.chain.from_iterable(answers)
    lines = files.numbered_lines(path)
    return "".join(f"{_with_tag(line, tags)}\n" for _, line in lines)


def _with_tag(line: str, tags: Iterator[str]) -> str:
    kind = _kind(line)
    if kind == "blank":
        return ""
    separator = "\t" if "\t" in line else " "
    tag = _OUTSIDE if kind == "boundary" else next(tags)
    return f"{line.rstrip(' ')}{separator}{tag}"


def _kind(line: str) -> str:
    if line.startswith(_BOUNDARY):
        return "boundary"
    return "words" if line.strip(" \t") else "blank"


def _cells(line: str) -> list[str]:
    # Not at any whitespace: a word may have a no-break space in it.
    if "\t" in line:
        return line.split("\t")
    return [cell for cell in line.split(" ") if cell]


class _Layout(NamedTuple):
    """What all lines with words are like."""

    num_columns: int
    token: int
    tag: int | None


_Row = tuple[str, list[str]]  # FILE:LINE, and what is in the columns.


def _layout(row: _Row, columns: Columns, needs_tags: bool) -> _Layout:
    where, cells = row
    tag = columns.tag if columns.tag >= 0 else len(cells) - 1
    has_tag = tag < len(cells) and tag != columns.token
    if columns.token >= len(cells) or (needs_tags and not has_tag):
        raise InputError(
            f"{where}: a line must have a word in column {columns.token} and "
            f"its tag in column {columns.tag}, counted from 0. Received: "
            f"{len(cells)} columns. Check --token_column and --tag_column."
        )
    return _Layout(len(cells), columns.token, tag if has_tag else None)


def _words_and_tags(
    rows: Sequence[_Row], layout: _Layout, labels: Collection[str] | None
) -> tuple[list[str], list[str] | None]:
    for where, cells in rows:
        if len(cells) != layout.num_columns:
            raise InputError(
                f"{where}: all lines must have as many columns as the first, "
                f"{layout.num_columns}. Received: {len(cells)}. Mend the line; "
                "comments are not read over."
            )
        if not cells[layout.token]:
            raise InputError(
                f"{where}: a word must not be empty. Received: {cells!r}. Mend "
                "the line, or leave it blank to end a sentence."
            )
        if layout.tag is not None:
            _check_tag(cells[layout.tag], where, labels)
    words = [cells[layout.token] for _, cells in rows]
    if layout.tag is None:
        return words, None
    return words, [cells[layout.tag] for _, cells in rows]


def _check_tag(tag: str, where: str, labels: Collection[str] | None) -> None:
    if not tag or (labels is not None and tag not in labels):
        expected = "must not be empty"
        if labels:
            expected = f"must be one of {', '.join(labels)}"
        raise InputError(
            f"{where}: the tag {expected}. Received: {tag!r}. Check "
            "--tag_column; if the training data lack a tag, give a "
            "--label_file that has all of them."
        )
