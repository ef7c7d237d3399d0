"""CoNLL files: one word per line, with its tags in columns.

    -DOCSTART- -X- -X- O

    EU NNP B-NP B-ORG
    rejects VBZ B-VP O

A blank line ends a sentence, a line that begins with `-DOCSTART-` a document.
Lines with a tab are split at tabs, others at runs of spaces. All lines have the
same number of columns. A byte-order mark is ignored.
"""

import dataclasses
import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from official_bert import files
from official_bert.errors import InputError

_BOUNDARY = "-DOCSTART-"
_OUTSIDE = "O"

# The first existing file is read; the last names are those of the CoNLL-2003
# shared task.
_FILE_NAMES = {
    "train": ("train.txt", "eng.train"),
    "dev": ("dev.txt", "valid.txt", "testa.txt", "eng.testa"),
    "test": ("test.txt", "testb.txt", "eng.testb"),
}


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence in its document.

    Its `repr` leaves out the document, which may be long.

    Attributes:
        words: The words of the sentence.
        tags: One tag per word; None if unknown.
        document: All words of the document.
        start: The position of the sentence in `document`.
    """

    words: Sequence[str]
    tags: Sequence[str] | None
    document: Sequence[str] = dataclasses.field(repr=False)
    start: int = 0


@dataclasses.dataclass(frozen=True)
class ConllData:
    """The CoNLL files of a directory.

    Attributes:
        data_dir: The directory.
        token_column: The words' column, from 0.
        tag_column: The tags' column, from 0; -1: the last one.
    """

    data_dir: str
    token_column: int = 0
    tag_column: int = -1

    def path(self, split: str) -> str:
        """Returns the file of `train`, `dev` or `test`.

        Raises:
            InputError: There is none.
        """
        for name in _FILE_NAMES[split]:
            path = os.path.join(self.data_dir, name)
            if files.exists(path):
                return path
        raise InputError(
            f"The {split} data must be in {' or '.join(_FILE_NAMES[split])}. "
            f"Received: the directory {self.data_dir!r}. Check --data_dir."
        )

    def read(
        self, split: str, labels: Collection[str] | None = None
    ) -> list[Sentence]:
        """Reads a split. Test data has tags only if all of them are known.

        Args:
            split: `train`, `dev` or `test`.
            labels: The known tags; None: any.

        Raises:
            InputError: The file is missing, a line is malformed, or a tag of
                `train` or `dev` is unknown.
        """
        if split != "test":
            return self.read_file(self.path(split), labels=labels)
        sentences = self.read_file(self.path(split), needs_tags=False)
        # In test data without tags the last column may be anything.
        if labels is None or _tags(sentences) <= set(labels):
            return sentences
        return [dataclasses.replace(s, tags=None) for s in sentences]

    def training_labels(self) -> tuple[str, ...]:
        """Returns the tags of the training data, sorted."""
        return tuple(sorted(_tags(self.read("train"))))

    def read_file(
        self,
        path: str,
        *,
        needs_tags: bool = True,
        labels: Collection[str] | None = None,
    ) -> list[Sentence]:
        """Reads a file.

        Args:
            path: The file.
            needs_tags: Whether the tag column must exist, and differ from the
                words' column.
            labels: The known tags; None: any.

        Raises:
            InputError: The file has no words, a line is malformed, or a tag is
                unknown.
        """
        sentences: list[Sentence] = []
        document: list[str] = []
        layout = None
        lines = files.numbered_lines(path)
        for kind, group in itertools.groupby(lines, lambda n: _kind(n[1])):
            if kind == "boundary":
                document = []
            elif kind == "words":
                rows = [(f"{path}:{n}", _split(line)) for n, line in group]
                layout = layout or self._layout(*rows[0], needs_tags)
                words, tags = _words_and_tags(rows, layout, labels)
                start = len(document)
                document += words
                sentences.append(Sentence(words, tags, document, start))
        if not sentences:
            raise InputError(f"{path}: must hold words. Received: none.")
        return sentences

    def _layout(
        self, where: str, cells: Sequence[str], needs_tags: bool
    ) -> "_Layout":
        tag = self.tag_column if self.tag_column >= 0 else len(cells) - 1
        has_tag = tag < len(cells) and tag != self.token_column
        if self.token_column >= len(cells) or (needs_tags and not has_tag):
            raise InputError(
                f"{where}: a line must have a word in column "
                f"{self.token_column} and its tag in column {self.tag_column}, "
                f"counted from 0. Received: {len(cells)} columns. Check "
                "--token_column and --tag_column."
            )
        return _Layout(len(cells), self.token_column, tag if has_tag else None)


class _Layout(NamedTuple):
    """The columns of all lines of a file; `tag` is None without tags."""

    num_columns: int
    token: int
    tag: int | None


def _tags(sentences: Sequence[Sentence]) -> set[str]:
    return {tag for sentence in sentences for tag in sentence.tags or ()}


def _kind(line: str) -> str:
    if line.startswith(_BOUNDARY):
        return "boundary"
    return "words" if line.strip(" \t") else "blank"


def _split(line: str) -> list[str]:
    # Not at all whitespace: a word may contain a no-break space.
    if "\t" in line:
        return line.split("\t")
    return [cell for cell in line.split(" ") if cell]


def _words_and_tags(
    rows: Sequence[tuple[str, list[str]]],
    layout: _Layout,
    labels: Collection[str] | None,
) -> tuple[list[str], list[str] | None]:
    for where, cells in rows:
        if len(cells) != layout.num_columns:
            raise InputError(
                f"{where}: all lines must have {layout.num_columns} columns, "
                f"like the first. Received: {len(cells)}. Fix the line; "
                "comments are not supported."
            )
        if not cells[layout.token]:
            raise InputError(
                f"{where}: a word must not be empty. Received: {cells!r}. Fix "
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
            "--tag_column. If the training data lacks a tag, give a "
            "--label_file with all tags."
        )


def with_predictions(path: str, answers: Iterable[Sequence[str]]) -> str:
    """Returns a file's text with the predicted tags as an additional column.

    `-DOCSTART-` lines get an `O`, because `conlleval` requires the same number
    of columns everywhere.

    Args:
        path: A CoNLL file.
        answers: The tags of each sentence.
    """
    tags = itertools.chain.from_iterable(answers)
    lines = files.numbered_lines(path)
    return "".join(f"{_add_tag(line, tags)}\n" for _, line in lines)


def _add_tag(line: str, tags: Iterator[str]) -> str:
    kind = _kind(line)
    if kind == "blank":
        return ""
    separator = "\t" if "\t" in line else " "
    tag = _OUTSIDE if kind == "boundary" else next(tags)
    return f"{line.rstrip(' ')}{separator}{tag}"
