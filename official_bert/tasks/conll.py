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
            InputError: The file is missing or has no words, a line is
                malformed, or a tag of `train` or `dev` is unknown.
        """
        path = self.path(split)
        if split != "test":
            return self._read_file(path, needs_tags=True, labels=labels)
        sentences = self._read_file(path, needs_tags=False)
        # In test data without tags the last column may be anything.
        if labels is None or _tags(sentences) <= set(labels):
            return sentences
        return [dataclasses.replace(s, tags=None) for s in sentences]

    def training_labels(self) -> tuple[str, ...]:
        """Returns the tags of the training data, sorted."""
        return tuple(sorted(_tags(self.read("train"))))

    def _read_file(
        self,
        path: str,
        *,
        needs_tags: bool,
        labels: Collection[str] | None = None,
    ) -> list[Sentence]:
        sentences: list[Sentence] = []
        document: list[str] = []
        num_columns, tag_column = 0, None
        lines = files.numbered_lines(path)
        for kind, group in itertools.groupby(lines, lambda n: _kind(n[1])):
            if kind == "boundary":
                document = []
            if kind != "words":
                continue
            words, tags = [], []
            for number, line in group:
                where, cells = f"{path}:{number}", _split(line)
                if not num_columns:
                    num_columns = len(cells)
                    tag_column = self._find_tags(where, cells, needs_tags)
                if len(cells) != num_columns:
                    raise InputError(
                        f"{where}: all lines must have {num_columns} columns, "
                        f"like the first. Received: {len(cells)}. Fix the "
                        "line; comments are not supported."
                    )
                words.append(cells[self.token_column])
                if not words[-1]:
                    raise InputError(
                        f"{where}: a word must not be empty. Received: "
                        f"{cells!r}. A blank line ends a sentence."
                    )
                if tag_column is not None:
                    _check_tag(cells[tag_column], where, labels)
                    tags.append(cells[tag_column])
            known_tags = tags if tag_column is not None else None
            sentences.append(
                Sentence(words, known_tags, document, len(document))
            )
            document += words
        if not sentences:
            raise InputError(f"{path}: must hold words. Received: none.")
        return sentences

    def _find_tags(
        self, where: str, cells: Sequence[str], needs_tags: bool
    ) -> int | None:
        """Returns the column of the tags; None if there is none."""
        tag = self.tag_column if self.tag_column >= 0 else len(cells) - 1
        has_tags = tag < len(cells) and tag != self.token_column
        if self.token_column >= len(cells) or (needs_tags and not has_tags):
            raise InputError(
                f"{where}: a line must have a word in column "
                f"{self.token_column} and its tag in column {self.tag_column}, "
                f"counted from 0. Received: {len(cells)} columns. Check "
                "--token_column and --tag_column."
            )
        return tag if has_tags else None


def _tags(sentences: Iterable[Sentence]) -> set[str]:
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


def _check_tag(tag: str, where: str, labels: Collection[str] | None) -> None:
    if tag and (labels is None or tag in labels):
        return
    expected = f"be one of {', '.join(labels)}" if labels else "not be empty"
    raise InputError(
        f"{where}: the tag must {expected}. Received: {tag!r}. Check "
        "--tag_column. If the training data lacks a tag, give a --label_file "
        "with all tags."
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
