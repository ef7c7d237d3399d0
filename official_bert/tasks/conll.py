"""CoNLL files: one word per line, with its tags in columns.

    -DOCSTART- -X- -X- O

    EU NNP B-NP B-ORG
    rejects VBZ B-VP O

A blank line ends a sentence. A line that begins with `-DOCSTART-` starts a new
document. Lines with a tab are split at tabs, and spaces beside these are
ignored; other lines are split at runs of spaces. All lines have the same number
of columns. A byte-order mark is ignored.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.io import files
from official_bert.tasks.data_set import DataSet, shuffle_examples
from official_bert.tokenization.alignment import Span

# The first existing file is read. The last names are from the CoNLL-2003 shared
# task.
_FILE_NAMES = {
    "train": ("train.txt", "eng.train"),
    "dev": ("dev.txt", "valid.txt", "testa.txt", "eng.testa"),
    "test": ("test.txt", "testb.txt", "eng.testb"),
}

# In CoNLL-U: multiword tokens, such as 3-4, and empty nodes, such as 5.1.
_CONLLU_COLUMNS = 10
_NO_WORD = re.compile(r"\d+[-.]\d+")

# Usual names of the columns of words and tags in a header, in lower case.
WORD_LISTS = ("tokens", "words")
WORD_COLUMNS = (*WORD_LISTS, "token", "word", "text")
TAG_COLUMNS = (
    *("tags", "tag", "ner_tags", "labels", "label", "entities", "ents"),
    *("spans", "ner", "pos"),
)

# A longer sentence gives a warning.
_MAX_WORDS = 1000


@dataclasses.dataclass(frozen=True)
class Sentence:
    """A sentence, which begins at word `start` of its document."""

    words: Sequence[str]
    tags: Sequence[str] | None  # One per word; None if unknown.
    document: Sequence[str] = dataclasses.field(repr=False)  # All its words.
    start: int = 0
    # If the words come from a text: the text, and the positions of the words.
    text: str = dataclasses.field(default="", compare=False)
    offsets: Sequence[Span] = dataclasses.field(default=(), compare=False)
    # The JSON object that the sentence comes from, if any.
    source: Mapping[str, Any] = dataclasses.field(
        default_factory=dict, compare=False, repr=False
    )


@dataclasses.dataclass(frozen=True)
class ConllData(DataSet):
    """The CoNLL files of a directory; columns count from 0, -1 is the last."""

    data_dir: str
    token_column: int = 0
    tag_column: int = -1
    labels: Sequence[str] = ()  # The known tags; empty: all tags are valid.

    def path(self, split: str) -> str:
        names = _FILE_NAMES[split]
        for path in (os.path.join(self.data_dir, name) for name in names):
            if files.exists(path):
                return path
        raise InputError(
            f"The {split} data must be in {' or '.join(names)}. Received: "
            f"the directory {self.data_dir!r}. Check --data_dir."
        )

    def read(self, split: str) -> list[Sentence]:
        """Reads a split like `read_in_order`, but shuffles training data."""
        sentences = self.read_in_order(split)
        return shuffle_examples(sentences) if split == "train" else sentences

    def read_in_order(self, split: str) -> list[Sentence]:
        """Reads a split; test data has tags only if all of them are known.

        Raises `InputError` for malformed files, and for unknown tags in `train`
        and `dev`.
        """
        paths, needs_tags = self.paths(split), split != "test"
        files_read = (self.read_file(p, needs_tags=needs_tags) for p in paths)
        sentences = [*itertools.chain.from_iterable(files_read)]
        # In test data without tags, the last column may contain anything.
        unknown = tags_of(sentences) - set(self.labels)
        num_untagged = sum(sentence.tags is None for sentence in sentences)
        if self.labels and unknown:
            reason = (
                f"the training data lacks the tags {listed(sorted(unknown))}"
            )
        elif 0 < num_untagged < len(sentences):
            reason = f"{num_untagged} of {len(sentences)} sentences lack tags"
        else:
            return sentences
        logging.warning(f"{listed(paths)} is not evaluated: {reason}")
        return [dataclasses.replace(s, tags=None) for s in sentences]

    def training_labels(self) -> tuple[str, ...]:
        """Returns the sorted tags of the training data; logs the first word.

        Raises `InputError` if there is only one tag.
        """
        path, sentences = self.path("train"), self.read_in_order("train")
        [word, *_], [tag, *_] = sentences[0].words, sentences[0].tags or [""]
        logging.info(
            f"{path}: the first word is {word!r}, its tag is {tag!r} "
            "(--token_column, --tag_column)"
        )
        return sorted_tags(path, sentences)

    def predictions_text(
        self,
        split: str,
        examples: Sequence[Sentence],
        answers: Iterable[Sequence[str]],
    ) -> str:
        """Returns the text of a split with a column of predicted tags."""
        remaining = iter(answers)
        texts = (with_predictions(p, remaining) for p in self.paths(split))
        return "\n".join(texts)

    def recognizes(self, path: str) -> bool:
        """Whether a file is a CoNLL file, rather than lines of text.

        In a CoNLL file, most lines have a known tag, or all lines have the same
        number of cells and blank lines separate groups of several lines.
        """
        numbered = itertools.islice(files.numbered_lines(path), 1000)
        lines = [line for _, line in numbered]
        rows = [_split(line) for line in lines if _kind(line) == "words"]
        last = max(1, self.tag_column)
        tags = [row[self.tag_column] for row in rows if len(row) > last]
        if 2 * sum(tag in self.labels for tag in tags) > len(rows):
            return True
        kinds = [kind for kind, _ in itertools.groupby(map(_kind, lines))]
        num_sentences = kinds.count("words")
        has_sentences = num_sentences > 1 and len(rows) > 2 * num_sentences
        return has_sentences and len(set(map(len, rows))) == 1

    def read_file(self, path: str, *, needs_tags: bool) -> list[Sentence]:
        """Reads a file; with `needs_tags`, all words must have known tags."""
        sentences: list[Sentence] = []
        document: list[str] = []
        num_columns, has_tags = 0, False
        lines = files.numbered_lines(path)
        for kind, group in itertools.groupby(lines, lambda n: _kind(n[1])):
            if kind == "boundary":
                document = []
            if kind != "words":
                continue
            rows = [
                (f"{path}:{number}", _split(line)) for number, line in group
            ]
            if not num_columns:
                where, first = rows[0]
                num_columns = len(first)
                has_tags = self._has_tags(where, first, needs_tags)
            for where, cells in rows:
                self._check_word(where, cells, num_columns)
                if needs_tags:
                    self._check_tag(where, cells[self.tag_column])
            words = [cells[self.token_column] for _, cells in rows]
            tags = None
            if has_tags and all(cells[self.tag_column] for _, cells in rows):
                tags = [cells[self.tag_column] for _, cells in rows]
            sentences.append(Sentence(words, tags, document, len(document)))
            document += words
        if not sentences:
            raise InputError(f"{path}: must contain words. Received: none.")
        return sentences

    def _has_tags(
        self, where: str, cells: Sequence[str], needs_tags: bool
    ) -> bool:
        """Whether the first line, `cells`, has a tag.

        Raises `InputError` if it has no word, or no tag but needs one, or if
        it is a header.
        """
        tag = self.tag_column if self.tag_column >= 0 else len(cells) - 1
        has_tags = tag < len(cells) and tag != self.token_column
        is_header = (
            has_tags
            and self.token_column < len(cells)
            and cells[self.token_column].lower() in WORD_COLUMNS
            and cells[tag].lower() in TAG_COLUMNS
        )
        if is_header:
            raise InputError(
                f"{where}: CoNLL columns have no header. Remove this line, or "
                "rename the file so that it ends in .tsv or .csv, whose "
                "columns have names."
            )
        if self.token_column >= len(cells) or (needs_tags and not has_tags):
            raise InputError(
                f"{where}: a line must have a word in column "
                f"{self.token_column} and its tag in column {self.tag_column}, "
                f"counted from 0. Received: {len(cells)} columns, separated by "
                "tabs or spaces. Check --token_column and --tag_column."
            )
        return has_tags

    def _check_word(
        self, where: str, cells: Sequence[str], num_columns: int
    ) -> None:
        if len(cells) != num_columns:
            raise InputError(
                f"{where}: all lines must have {num_columns} columns, like the "
                f"first. Received: {len(cells)}, {quoted(cells)}. Fix the "
                "line. Words and tags with spaces need tabs between the "
                "columns. Comments are not supported: remove lines that start "
                "with # and are not words, also before this line."
            )
        if num_columns == _CONLLU_COLUMNS and _NO_WORD.fullmatch(cells[0]):
            raise InputError(
                f"{where}: multiword tokens and empty nodes of CoNLL-U are not "
                f"supported. Received: {cells[0]!r} in column 0. Remove all "
                "lines with such numbers."
            )
        if not cells[self.token_column]:
            raise InputError(
                f"{where}: a word must not be empty. Received: {cells!r}. A "
                "blank line ends a sentence."
            )

    def _check_tag(self, where: str, tag: str) -> None:
        labels = self.labels
        if not tag or (labels and tag not in labels):
            must = f"be one of {listed(labels)}" if labels else "not be empty"
            raise InputError(
                f"{where}: the tag must {must}. Received: {tag!r}. Check "
                "the column of tags. If the training data lacks a tag, "
                "--label_file must list all tags."
            )


def tags_of(sentences: Iterable[Sentence]) -> set[str]:
    """Returns the tags of all words."""
    return {tag for sentence in sentences for tag in sentence.tags or ()}


def sorted_tags(path: str, sentences: Sequence[Sentence]) -> tuple[str, ...]:
    """Returns `tags_of` in order.

    Raises `InputError` if there is only one, if some are parts of comments, or
    if the words seem to be numbers or tags. Warns if blank lines seem to be
    missing, or to separate words.
    """
    tags = sorted(tags_of(sentences))
    others = {
        tag
        for sentence in sentences
        for place, tag in enumerate(sentence.tags or ())
        if place or sentence.words[0] != "#"
    }
    if comments := sorted({*tags} - others):
        raise InputError(
            f"{path}: comments are not supported: remove lines that start with "
            "# and are not words. Received: such lines with the tags "
            f"{listed(comments)}. If these are tags, list all tags in a "
            "--label_file."
        )
    words = dict.fromkeys(word for s in sentences for word in s.words)
    are_numbers = "".join(words).replace("-", "").isdecimal()
    if are_numbers or len(tags) > len(words):
        raise InputError(
            f"{path}: must have words with tags. Received: the words "
            f"{listed(words)}, with the tags {listed(tags)}. Set "
            "--token_column and --tag_column (CoNLL, counted from 0), or "
            "--text_column and --label_column."
        )
    longest = max(len(sentence.words) for sentence in sentences)
    if longest > _MAX_WORDS or longest == 1 < len(sentences):
        logging.warning(
            f"{path}: the longest of {len(sentences)} sentences has {longest} "
            "words. Check that blank lines separate sentences, not words"
        )
    if len(tags) == 1:
        raise InputError(
            f"{path}: must have at least two different tags. Received: "
            f"{tags[0]!r}. Check --token_column and --tag_column (CoNLL), or "
            "--label_column."
        )
    return tuple(tags)


def _kind(line: str) -> str:
    if line.startswith("-DOCSTART-"):
        return "boundary"
    return "words" if line.strip(" \t") else "blank"


def _split(line: str) -> list[str]:
    # Does not split at all whitespace: a word may contain a no-break space.
    if "\t" in line:
        return [cell.strip(" ") for cell in line.split("\t")]
    return [cell for cell in line.split(" ") if cell]


def with_predictions(path: str, answers: Iterable[Sequence[str]]) -> str:
    """Returns a CoNLL file's text with another column, the predicted tags.

    `-DOCSTART-` lines get an `O`, because `conlleval` requires the same number
    of columns in all lines.
    """
    tags = itertools.chain.from_iterable(answers)
    lines = []
    for _, line in files.numbered_lines(path):
        kind = _kind(line)
        if kind != "blank":
            tag = "O" if kind == "boundary" else next(tags)
            separator = "\t" if "\t" in line else " "
            lines.append(f"{line.rstrip(' ')}{separator}{tag}")
        lines.append("\n")
    return "".join(lines)
