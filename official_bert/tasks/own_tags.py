"""The user's own sentences with tags, one file per split.

    {"tokens": ["Ada", "sees", "."], "tags": ["B-PER", "O", "O"]}

    {"text": "Ada sees.", "entities": [[0, 3, "PER"]]}

    Sentence #,Word,Tag
    1,Ada,B-PER
    ,sees,O

A text is split into words and punctuation, and its spans become tags such as
B-PER and I-PER. In tables with one word per row, a column or blank lines
separate sentences. Files with other endings, and .tsv files without a header,
have CoNLL columns.
"""

import dataclasses
import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from official_bert.errors import InputError, bullet_list, quoted
from official_bert.io import tables, tsv
from official_bert.io.rows import Row, has_several
from official_bert.tasks import conll, own_data
from official_bert.tasks.conll import ConllData, Sentence
from official_bert.tasks.data_set import shuffle_examples
from official_bert.tasks.held_out import choose_held_out
from official_bert.tasks.text_spans import split_text, tags_of_spans
from official_bert.tokenization import BasicTokenizer

_NUMBER = "[ _-]?(#|id|idx|index|no|num|number)?"
_SENTENCE = re.compile(f"sent(ence)?{_NUMBER}")
_DOCUMENT = re.compile(f"doc(ument)?{_NUMBER}")

_ADVICE = (
    'For a sentence per row, use JSON lines such as {"tokens": ["Ada"], '
    '"tags": ["B-PER"]}.'
)

# Characters that a word in CoNLL columns cannot have; spaCy has words of them.
_SPACES = str.maketrans("\t\r\n", "   ")


class WordColumns(NamedTuple):
    """The columns of a table of words, and whether all words need tags."""

    words: str
    tags: str  # "": there are no tags.
    needs_tags: bool


def require_words(words: Sequence[Any], where: str) -> None:
    """Raises `InputError` unless all words are texts that are not empty."""
    for position, word in enumerate(words):
        if not isinstance(word, str) or not word:
            raise InputError(
                f"{where}: words must be texts that are not empty. Received: "
                f"{word!r} at position {position}, counted from 0, of "
                f"{quoted(words)}. Correct it."
            )


def word_columns(cells: Mapping[str, Any], column: str) -> list[str]:
    """Returns the columns that may have words or a text, the best first.

    This is `column`, if it exists, or those with usual names.
    """
    # A table of pandas may have a column without a name, its index.
    is_given = column and column in cells
    names = [column] if is_given else _named(cells, conll.WORD_COLUMNS)
    return [name for name in names if _may_have_words(name, cells[name])]


def require_sentence(cells: Mapping[str, Any], column: str, where: str) -> None:
    """Raises `InputError` if an object has only one word of a sentence."""
    if not _sentence_columns(cells) or column.lower() == "text":
        return
    if len(split_text(cells[column], BasicTokenizer()).words) == 1:
        raise InputError(
            f"{where}: must have a text, or a list of the words of a sentence. "
            f"Received: the word {quoted(cells[column])}. Predict rows with a "
            "word each as .csv, or make a list of the words of each sentence."
        )


def _may_have_words(column: str, cell: Any) -> bool:
    if isinstance(cell, list):  # The `tokens` of Prodigy are objects.
        return not any(isinstance(word, dict) for word in cell)
    # In a table with one word per row, these columns have a word.
    is_list = column.lower() in conll.WORD_LISTS
    is_word = len(str(cell).split()) == 1 and not has_several(cell)
    return isinstance(cell, str) and (is_word or not is_list)


def _named(columns: Iterable[str], names: Iterable[str]) -> list[str]:
    by_lower_case = {column.lower(): column for column in columns}
    return [by_lower_case[name] for name in names if name in by_lower_case]


def _sentence_columns(columns: Iterable[str]) -> list[str]:
    return [name for name in columns if _SENTENCE.fullmatch(name.lower())]


def _numbered_by(columns: Sequence[str]) -> list[str]:
    """Returns the column that numbers sentences, and columns of documents.

    The numbers of sentences may start again in each document.
    """
    sentences = _sentence_columns(columns)[:1]
    documents = [x for x in columns if _DOCUMENT.fullmatch(x.lower())]
    return sentences + documents if sentences else []


@dataclasses.dataclass(frozen=True, kw_only=True)
class OwnTags(own_data.OwnFiles, ConllData):
    """Sentences with tags."""

    # As in transformers. Models whose range is larger than that of the original
    # learn tags much faster with it.
    uses_initializer_range = True

    @functools.cached_property
    def _splitter(self) -> BasicTokenizer:
        return BasicTokenizer(settings=self.options.model_files.settings)

    def _require_used_columns(self) -> None:
        """Raises `InputError` if flags name columns that no file can have."""
        options = self.options
        splits = [x for x in options.used_splits if options.is_set(f"{x}_file")]
        paths = itertools.chain.from_iterable(map(self.paths, splits))
        are_tables = {*map(self.is_table, paths)}
        if len(are_tables) > 1:
            return
        unused = ("token_column", "tag_column")
        used = ("text_a_column", "label_column")
        if False in are_tables:
            unused, used = used, unused
        for name, other in zip(unused, used, strict=True):
            message = f"has no effect: use {options.flag_name(other)}."
            options.require_unset([name], message)

    def with_training_file(self) -> "OwnTags":
        """Returns a copy with training and held-out sentences, and labels."""
        self._require_used_columns()
        path, labels = self.path("train"), self.labels
        sentences = self.read_in_order("train")
        if not labels:
            labels = conll.sorted_tags(path, sentences)
            if any(sentence.text for sentence in sentences):
                # All entities of a type may consist of one word.
                inside = {f"I{tag[1:]}" for tag in labels if tag != "O"}
                labels = tuple(sorted({*labels, *inside}))
        held_out = choose_held_out(
            self.options,
            [tuple(sentence.words) for sentence in sentences],
            _rarest_tags(sentences),
            repr(path),
        )
        training = [s for i, s in enumerate(sentences) if i not in held_out]
        return dataclasses.replace(
            self,
            labels=labels,
            training=shuffle_examples(training),
            held_out=[sentences[i] for i in sorted(held_out)],
        )

    def read(self, split: str) -> list[Sentence]:
        if (part := self.read_part(split)) is not None:
            return part
        if split == "unlabeled":
            parts = map(self._read_unlabeled, self.paths(split))
            return [*itertools.chain.from_iterable(parts)]
        return super().read(split)

    def _read_unlabeled(self, path: str) -> Iterator[Sentence]:
        """Yields the sentences of a file without tags, or its lines of text."""
        if not tables.is_lines(path) or self.recognizes(path):
            for sentence in self.read_file(path, needs_tags=False):
                yield dataclasses.replace(sentence, tags=None)
            return
        logging.info(f"{path} is read as one text per line")
        for row in tables.read(path, tables.LINES):
            yield split_text(row.text("text"), self._splitter)

    def held_out_objects(self) -> Iterable[Mapping[str, Any]]:
        words = self.options.text_a_column or "tokens"
        tags = self.options.label_column or "tags"
        return (
            sentence.source or {words: sentence.words, tags: sentence.tags}
            for sentence in self.held_out
        )

    def predictions_text(
        self,
        split: str,
        examples: Sequence[Sentence],
        answers: Iterable[Sequence[str]],
    ) -> str:
        """Returns words and predicted tags in CoNLL columns."""
        if not self.is_table(self.paths(split)[0], needs_tags=False):
            return super().predictions_text(split, examples, answers)
        lines = (
            "".join(
                f"{word.translate(_SPACES)}\t{tag}\n"
                for word, tag in zip(sentence.words, tags, strict=True)
            )
            for sentence, tags in zip(examples, answers, strict=True)
        )
        return "\n".join(lines)

    def is_table(self, path: str, *, needs_tags: bool = True) -> bool:
        """Whether a file is a table; if not, it has CoNLL columns.

        A `.tsv` file is a table if its first line names the column of words
        and, with `needs_tags`, one of tags or sentences.
        """
        file_format = tables.format_of(path)
        if file_format != "tsv":
            return bool(file_format)
        names = tsv.first_cells(path)
        if column := self.options.text_a_column:
            return needs_tags or column.isdecimal() or column in names
        if not _named(names, conll.WORD_COLUMNS):
            return False
        if _named(names, conll.TAG_COLUMNS) or _sentence_columns(names):
            return True
        return not needs_tags and {*names}.isdisjoint(self.labels)

    def read_table(
        self, path: str, file_format: str, *, needs_tags: bool
    ) -> tuple[list[Row], WordColumns]:
        """Returns rows with a text or the words of a sentence each."""
        options = self.options
        by_number = (options.text_a_column or "").isdecimal()
        all_rows = tables.read(
            path,
            file_format,
            has_header=options.reads_header and not by_number,
            flags=own_data.flags_of_columns(options),
        )
        rows = [*own_data.accepted_rows(all_rows, ())]
        columns = self._find_columns(rows[0], needs_tags)
        words, tags, _ = columns
        # `predict.py` reads no labels.
        reads_labels = tags and options.train_file
        shown = f" --label_column={tags}" if reads_labels else ""
        logging.info(f"{path}: --text_column={words}{shown}")
        if isinstance(rows[0].cells.get(tags or words), list):
            return rows, columns
        return self._join_words(rows, columns)

    def read_file(self, path: str, *, needs_tags: bool) -> list[Sentence]:
        """Reads a file; with `needs_tags`, all words must have known tags."""
        if not self.is_table(path, needs_tags=needs_tags):
            return super().read_file(path, needs_tags=needs_tags)
        rows, columns = self.read_table(
            path, tables.format_of(path), needs_tags=needs_tags
        )
        problems: list[str] = []
        sentences = [self._sentence(row, columns, problems) for row in rows]
        if problems:
            logging.warning(
                f"{path}: {len(problems)} spans overlap, or do not begin and "
                "end where words do. Positions must count characters from 0, "
                f"ends are exclusive:{bullet_list(problems)}"
            )
        return sentences

    def _find_columns(self, row: Row, needs_tags: bool) -> WordColumns:
        """Returns the columns that flags name, or that have usual names.

        Their cells fit each other, see `_fit`.
        """
        text, label = self.options.text_a_column, self.options.label_column
        for name in filter(None, (text, label if needs_tags else "")):
            row.get(name)  # Raises an `InputError` if it is missing.
        task = self.options.resolved_task
        usual = _named(row.columns, (task, f"{task}_tags", *conll.TAG_COLUMNS))
        found = word_columns(row.cells, text)
        for words, tags in itertools.product(
            found, [label] if label else usual
        ):
            if _fit(row.cells[words], row.cells.get(tags)):
                return WordColumns(words, tags, needs_tags)
        if found and not needs_tags:
            return WordColumns(found[0], "", needs_tags)
        cells = {name: row.cells[name] for name in row.columns}
        raise InputError(
            f"{row.where}: must have words with tags, or a text with spans, in "
            f"columns such as tokens and tags. Received: {quoted(cells)}. Set "
            "--text_column and, for training, --label_column; in a table "
            f"without a header, to the numbers of columns, from 0. {_ADVICE}"
        )

    def _join_words(
        self, rows: list[Row], columns: WordColumns
    ) -> tuple[list[Row], WordColumns]:
        """Joins rows with one word each to rows with one sentence each.

        Rows of texts are unchanged, and have no tags.
        """
        words, tags, needs_tags = columns
        given, names = self.options.id_column, rows[0].columns
        numbered_by = [given] if given else _numbered_by(names)
        column = next(iter(numbered_by), "")
        groups = _group(rows, numbered_by)
        numbered = groups if column else []
        if not needs_tags and _are_texts(rows, words, tags, numbered):
            return rows, columns._replace(tags="")
        if needs_tags:
            _require_one_tag_each(rows, columns)
        needs_numbers = needs_tags or (len(rows) > 1 and not (column or tags))
        if needs_numbers and len(groups) in (1, len(rows)):
            raise InputError(
                f"{rows[0].path}: must have a column of sentence numbers (such "
                "as sentence_id; in training, also --id_column), or blank "
                f"lines between sentences. Received: {len(rows)} words in "
                f"{len(groups)} sentences. {_ADVICE}"
            )
        numbers = [str(group[0].cells.get(column)) for group in groups]
        # They may start again in each document, but in the same order.
        if len({*itertools.pairwise(numbers)}) > 2 * len({*numbers}):
            logging.warning(
                f"{rows[0].path}: rows of the same sentence are apart. If they "
                f"were shuffled, restore their order (column {column!r})"
            )
        joined = []
        for group in groups:
            cells: dict[str, Any] = {words: []}
            for row in group:
                cells[words].append(row.text(words).strip())
                require_words(cells[words][-1:], row.where)
            if tags:
                cells[tags] = [
                    self._tag(row, columns, row.get(tags)) for row in group
                ]
            joined.append(group[0]._replace(cells=cells, columns=[*cells]))
        return joined, columns

    def _sentence(
        self, row: Row, columns: WordColumns, problems: list[str]
    ) -> Sentence:
        """Makes a sentence from a list of words with tags, or from a text.

        Adds a line to `problems` for each span that is not tagged exactly.
        """
        words, tags, needs_tags = columns
        cell = row.get(words)
        tagged = row.cells.get(tags) if tags else None
        if needs_tags and tagged is None:
            raise row.error(
                tags, "have tags or spans, or [] without any", tagged
            )
        if isinstance(cell, str):
            sentence = split_text(cell, self._splitter)
            if tagged is not None:
                tagged = tags_of_spans(row, tags, sentence, problems)
        elif isinstance(cell, list):
            require_words(cell, row.where)
            sentence = Sentence(cell, None, cell)
        else:
            raise row.error(words, "be a text or a list of words", cell)
        source = {name: row.cells[name] for name in row.columns}
        if tagged is None:
            return dataclasses.replace(sentence, source=source)
        num_words = len(sentence.words)
        if not isinstance(tagged, list) or len(tagged) != num_words:
            must = f"be a list of {num_words} tags, one for each word"
            raise row.error(tags, must, tagged)
        names = [self._tag(row, columns, tag) for tag in tagged]
        known = names if all(names) else None
        return dataclasses.replace(sentence, tags=known, source=source)

    def _tag(self, row: Row, columns: WordColumns, cell: Any) -> str:
        """Returns a tag, or the tag with an id; "" if it is unknown."""
        tag = "" if cell is None else str(cell).strip()
        if tag.isdecimal() and tag not in self.labels:
            if int(tag) < len(self.labels):
                tag = self.labels[int(tag)]
            elif isinstance(cell, int) and not self.labels:
                must = "have names of tags, or their ids with --label_file"
                raise row.error(columns.tags, must, cell)
        if columns.needs_tags:
            self._check_tag(row.where, tag)
        return tag


def _require_one_tag_each(rows: Sequence[Row], columns: WordColumns) -> None:
    """Raises `InputError` for a row with a text or a list of tags."""
    for row in rows:
        tag = row.get(columns.tags)
        num_words = len(str(row.get(columns.words)).split())
        if has_several(tag) or len(str(tag).split()) == num_words > 1:
            must = f"have one tag, as each row has one word. {_ADVICE}"
            raise row.error(columns.tags, must.rstrip("."), tag)


def _are_texts(
    rows: Sequence[Row], column: str, tags: str, groups: Sequence[Any]
) -> bool:
    """Whether the cells of a column are texts, not words such as U.S.

    `groups` are the rows of each sentence number; empty without such a column.
    """
    if groups or (column.lower() == "text" and not tags):
        return len(groups) in (0, len(rows))
    words: list[Sequence[str]]
    words = [str(row.get(column)).split() for row in rows[:1000]]
    if not tags:  # Chinese texts have no spaces, but words may be Chinese, too.
        cells = map(" ".join, words)
        words = [split_text(cell, BasicTokenizer()).words for cell in cells]
    return 4 * sum(len(found) > 1 for found in words) > len(words)


def _group(rows: Sequence[Row], columns: Sequence[str]) -> list[list[Row]]:
    """Groups rows by sentence: by columns or, without any, at blank lines.

    Cells of the columns may be empty after the first row of a sentence.
    """
    keys: list[Any] = []
    key: Any = [None] * len(columns)
    line = 0
    for row in rows:
        if columns:
            key = [
                before if cell in (None, "") else cell
                for before, cell in zip(key, map(row.get, columns), strict=True)
            ]
        elif row.line != line + 1:
            key = row.line
        line = row.line
        keys.append(key)
    pairs = zip(keys, rows, strict=True)
    groups = itertools.groupby(pairs, operator.itemgetter(0))
    return [[row for _, row in group] for _, group in groups]


def _rarest_tags(sentences: Sequence[Sentence]) -> list[str]:
    """Returns the tag of each sentence that the fewest sentences have."""
    tags_of = [sorted({*(sentence.tags or ())}) for sentence in sentences]
    counts = Counter(tag for tags in tags_of for tag in tags)
    return [min(tags, key=counts.__getitem__, default="") for tags in tags_of]


def _fit(words: Any, tags: Any) -> bool:
    """Whether cells have words with a tag each, or a text with spans."""
    if not isinstance(tags, list):
        return isinstance(words, str) and isinstance(tags, str | int)
    num_spans = sum(isinstance(tag, list | dict) for tag in tags)
    return num_spans == (len(tags) if isinstance(words, str) else 0)
