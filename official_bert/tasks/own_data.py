"""The user's own data: `train`, `dev` and `test` files in a directory.

Columns are given by name; in TSV and CSV also by number, from 0::

    text,topics
    "Taxes rise, rents too.","money,home"

    {"text": "Taxes rise, rents too.", "topics": ["money", "home"]}

    {"context": "It rains.", "question": "What does she do?",
     "choices": ["She takes an umbrella.", "She swims."], "label": 0}

    question,A,B,C,label
    What is 2 + 2?,3,4,5,B

`context` or `question`, `id` and, in test data, `label` are optional. Test data
is evaluated if every row has a known label.
"""

import abc
import collections
import dataclasses
import itertools
import json
import math
import os
import random
import statistics
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert import detection, files, tables, task_file
from official_bert.errors import InputError, listed, quoted
from official_bert.inputs import padding
from official_bert.options import RunClassifier
from official_bert.options.checks import TABLE_FORMATS
from official_bert.options.run_classifier import HELD_OUT
from official_bert.tables import Row
from official_bert.tasks.choice import (
    DEFAULT_COLUMNS,
    ChoiceColumns,
    ChoiceExample,
    ChoiceTask,
)
from official_bert.tasks.task import DataSet, shuffle_examples
from official_bert.tasks.text import TextColumns, TextExample, TextTask
from official_bert.tokenization import Tokenizer


def _lines(numbers: Sequence[Any]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {listed(numbers)}"


def known_labels(options: RunClassifier) -> tuple[str, ...] | None:
    """Returns the labels of `--label_file`, or of the trained model, if any."""
    if options.label_file:
        return tables.read_labels(options.label_file)
    if not options.do_train and task_file.is_in(options.output_dir):
        return tuple(task_file.read(options.output_dir).get("labels", ()))
    return None


@dataclasses.dataclass(frozen=True)
class OwnData(DataSet):
    """The user's own files; see `RunClassifier.own_file`."""

    options: RunClassifier  # The files and the columns.

    def rows(self, split: str) -> Iterator[Row]:
        return detection.read_rows(self.options, split)

    def path(self, split: str) -> str:
        return self.options.own_file(split)

    def require_same_columns(self) -> None:
        """Raises `InputError` if dev or test tables have other columns.

        Test data may lack the label. Named columns that are not used, and JSON
        objects, may differ.
        """
        options = self.options
        by_number = options.text_a_column.isdecimal()
        expected: list[str] = []
        for split in options.used_splits:
            path = self.path(split)
            if options.own_format(split) == "jsonl" or not files.exists(path):
                continue
            cells = next(self.rows(split)).cells
            names = [name for name in cells if name.isdecimal() == by_number]
            if split == "train":
                expected = names
            differ = ({*names} ^ {*expected}) - {options.label_column}
            if not by_number and options.resolved_task in TABLE_FORMATS:
                # A label column with another case would not be evaluated.
                used = {str(name).lower() for name in options.own_columns}
                differ = {name for name in differ if name.lower() in used}
            if expected and differ:
                raise InputError(
                    f"{path}: must have the columns of the training file: "
                    f"{listed(expected)}. Received: {listed(names)}. Use the "
                    "same names, and remove other columns."
                )

    def guid(self, row: Row, split: str) -> str:
        """Returns the cell of `--id_column`, or split and line."""
        column = self.options.id_column
        return f"{split}-{row.line}" if column is None else row.name(column)

    @abc.abstractmethod
    def label(self, row: Row) -> Any:
        """Returns the label of a row; raises `InputError` if it is unknown."""

    def label_if_known(self, row: Row, split: str) -> Any | None:
        """Returns the label of a row; in test data, None if it is unknown."""
        try:
            return self.label(row)
        except InputError:
            if split != "test":
                raise
            return None

    def check_test_labels(
        self, examples: list[Any], expected: str
    ) -> list[Any]:
        """Warns if some labels are unknown; raises `InputError` if all are.

        If all rows have the same unknown value, such as -1, there are no
        labels. `expected` describes the labels, for the message.
        """
        missing = [e.guid for e in examples if e.label is None]
        if len(missing) == len(examples):
            column = self.options.label_column
            cells = [row.cells.get(column) for row in self.rows("test")]
            unknown = {str(cell) for cell in cells if cell not in (None, "")}
            if len(unknown) > 1:
                raise InputError(
                    f"{self.path('test')}: column {column!r} must have "
                    f"{expected}. Received: {listed(sorted(unknown))}. Correct "
                    "or remove them."
                )
        elif missing:
            logging.warning(
                "The test set is not evaluated: %d of %d rows have no known "
                "label, the first is %s",
                len(missing),
                len(examples),
                missing[0],
            )
        if any(e.label not in (None, ()) for e in examples):
            return examples
        return [example._replace(label=None) for example in examples]


def fit_max_seq_length(options: RunClassifier) -> RunClassifier:
    """Lowers --max_seq_length to the 99th percentile of the texts' lengths.

    Only for own texts, and only if --fit_max_seq_length is set or implied.
    """
    is_own = options.resolved_task in TABLE_FORMATS
    if not (is_own and options.fit_max_seq_length):
        return options
    tokenizer = Tokenizer(options.vocab_file, options.do_lower_case)
    rows = list(detection.read_rows(options, options.used_splits[0]))
    lengths = np.ones(len(rows), np.int64)  # [CLS]
    for column in filter(None, (options.text_a_column, options.text_b_column)):
        texts = [row.text(column) for row in rows]
        lengths += np.diff(tokenizer.encode_lines(texts).row_splits) + 1
    longest = options.max_seq_length
    wanted = int(np.percentile(lengths, 99, method="higher"))
    length = padding.padded_length(min(wanted, longest), longest, "bucket")
    logging.info(
        "--max_seq_length=%d: 99%% of the texts have at most %d tokens",
        length,
        wanted,
    )
    return dataclasses.replace(
        options, max_seq_length=length, fit_max_seq_length=False
    )


def make_text_task(options: RunClassifier) -> TextTask:
    """Returns the task that options from `detection.complete` describe."""
    is_regression = options.task_type == "regression"
    data = OwnTexts(options, () if is_regression else known_labels(options))
    data.require_same_columns()
    if options.do_train:
        data = data.with_training_file()
    elif data.labels is None:
        raise InputError(
            "Without --do_train, --output_dir must contain a fine-tuned model "
            f"with its task.json. Received: {options.output_dir!r}. Check the "
            "path, or give a --label_file."
        )
    mean, deviation = data.target_scale() if is_regression else (0.0, 1.0)
    given = (options.text_a_column, options.text_b_column)
    names = tuple(name for name in given if name is not None)
    return TextTask(
        task_type=options.task_type,
        labels=data.labels or (),
        target_mean=mean,
        target_deviation=deviation,
        is_pair=len(names) == 2,
        columns=TextColumns(names, options.reads_header),
        data=data,
    )


def hold_out(
    texts: Sequence[Any], labels: Sequence[Any], share: float
) -> set[int]:
    """Returns the indices of the examples to hold out.

    The share is nearly the same for every class, or for every range of numbers.
    Equal texts are held out together, so that none is in both parts. Classes
    with a single text are not held out. The result does not depend on the seed
    of the run, so that runs can be compared.
    """
    first: dict[Any, int] = {}
    for index, text in enumerate(texts):
        first.setdefault(text, index)
    indices = [*first.values()]
    random.Random(12345).shuffle(indices)
    if isinstance(labels[0], str):
        counts = collections.Counter(labels[index] for index in indices)
        indices = [index for index in indices if counts[labels[index]] > 1]
    indices.sort(key=lambda index: labels[index])
    # Evenly spaced in the order of labels.
    chosen = {
        index
        for place, index in enumerate(indices)
        if math.ceil((place + 1) * share) > math.ceil(place * share)
    }
    return {i for i, text in enumerate(texts) if first[text] in chosen}


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty, or what programs write for an empty cell."""
    return str(cell).strip().lower() in ("", "nan", "#n/a", "null")


def _text_of(example: TextExample) -> tuple[str, str]:
    return example.text_a, example.text_b or ""


@dataclasses.dataclass(frozen=True)
class OwnTexts(OwnData):
    """Texts or pairs of texts."""

    labels: tuple[str, ...] | None  # () in regression. None: any label.
    training: Sequence[TextExample] = ()
    held_out: Sequence[TextExample] = ()

    def with_training_file(self) -> "OwnTexts":
        """Returns the data with the training file, split, and its labels."""
        options, examples = self.options, self._read_file("train")
        labels = [example.label for example in examples]
        names = self.labels
        if names is None:
            is_multilabel = options.task_type == "multilabel"
            flat = itertools.chain(*labels) if is_multilabel else labels
            names = tuple(sorted({*flat}))
            self.require_several(names)
        texts = [_text_of(example) for example in examples]
        num_texts = len({*texts})
        if options.task_type == "classification" and len(names) > num_texts:
            raise InputError(
                f"{self._label_column()} has {len(names)} different labels, "
                f"but column {options.text_a_column!r} only {num_texts} "
                "different texts. Are --text_column and --label_column "
                "swapped?"
            )
        share = options.dev_share if options.holds_out else 0.0
        indices = hold_out(texts, labels, share)
        if share and not indices:
            raise InputError(
                "No examples can be held out for evaluation: each label in "
                f"{self._label_column()} has only one text. Check "
                "--label_column, or give --dev_file or --dev_share=0."
            )
        rest = [e for index, e in enumerate(examples) if index not in indices]
        held_out = [examples[index] for index in sorted(indices)]
        self._warn_of_texts(examples)
        checkpoint = options.init_checkpoint
        if share and checkpoint and task_file.read_beside(checkpoint):
            logging.warning(
                "%s was fine-tuned. If it was trained on texts that are held "
                "out now, such as those of an earlier version of %s, the "
                "metrics overestimate the model. Give other texts as "
                "--dev_file",
                checkpoint,
                self.path("train"),
            )
        return dataclasses.replace(
            self,
            labels=names,
            training=shuffle_examples(rest),
            held_out=held_out,
        )

    def _warn_of_texts(self, examples: Sequence[TextExample]) -> None:
        """Warns of missing texts and labels, and of contradicting labels."""
        empty = [e.guid for e in examples if _is_missing("".join(_text_of(e)))]
        no_label = [
            e.guid for e in examples if e.label and _is_missing(e.label)
        ]
        for what, guids in (("texts", empty), ("labels", no_label)):
            if guids:
                logging.warning(
                    "%s: %d of %d %s are empty or missing values such as NaN: "
                    "%s. Remove these rows",
                    self.path("train"),
                    len(guids),
                    len(examples),
                    what,
                    self._places(guids, "train"),
                )
        labels: dict[Any, set[Any]] = collections.defaultdict(set)
        if self.options.task_type == "classification":
            for example in examples:
                # Another warning is about labels that differ only in case.
                label = str(example.label).casefold()
                labels[_text_of(example)].add(label)
        ambiguous = [
            text
            for (text, *_), found in labels.items()
            if len(found) > 1 and not _is_missing(text)
        ]
        if ambiguous:
            logging.warning(
                "%s: number of texts that occur with different labels: %d, "
                "such as %s. Correct them, or use --task_type=multilabel",
                self.path("train"),
                len(ambiguous),
                quoted(ambiguous[0]),
            )

    def _warn_of_training_texts(
        self, split: str, examples: Sequence[TextExample]
    ) -> None:
        """Warns if labelled texts of a file are also in the training data."""
        known = set(map(_text_of, self.training))
        repeated = [
            e.guid
            for e in examples
            if e.label is not None and _text_of(e) in known
        ]
        if repeated:
            logging.warning(
                "%s: %d of %d texts are also in the training data, so the "
                "metrics overestimate the model: %s. Remove these rows",
                self.path(split),
                len(repeated),
                len(examples),
                self._places(repeated, split),
            )

    def _places(self, guids: Sequence[str], split: str) -> str:
        """Returns lines or ids of a file, for a message."""
        if self.options.id_column is not None:
            return listed(guids)
        return _lines([guid.removeprefix(f"{split}-") for guid in guids])

    def read(self, split: str) -> Sequence[TextExample]:
        if split == "train":
            return self.training
        if split == "dev" and self.options.holds_out:
            return self.held_out
        examples = self._read_file(split)
        if split == "test":
            expected = "numbers"
            if self.labels:
                expected = f"the labels {listed(self.labels)}"
            examples = self.check_test_labels(examples, expected)
        self._warn_of_training_texts(split, examples)
        return examples

    def _read_file(self, split: str) -> list[TextExample]:
        column_a = self.options.text_a_column
        column_b = self.options.text_b_column
        rows = list(self.rows(split))
        if split != "test" and self.options.task_type != "multilabel":
            self._require_labels(rows)
        examples, errors = [], {}
        for row in rows:
            try:
                example = TextExample(
                    self.guid(row, split),
                    row.text(column_a),
                    None if column_b is None else row.text(column_b),
                    self.label_if_known(row, split),
                )
                examples.append(example)
            except InputError as error:
                errors[row.line] = error
        if errors:
            message = str(next(iter(errors.values())))
            if len(errors) > 1:
                message += (
                    f" {len(errors)} of {len(rows)} rows have such errors: "
                    f"{_lines([*errors])}."
                )
            raise InputError(message)
        return examples

    def _require_labels(self, rows: Sequence[Row]) -> None:
        """Raises `InputError` with the number of unlabelled rows, if any."""
        column = self.options.label_column
        empty = [row for row in rows if row.cells.get(column, 0) in ("", None)]
        if empty:
            lines = _lines([row.line for row in empty])
            message = (
                f"{empty[0].where}: column {column!r} must not be empty. "
                f"Received: {len(empty)} of {len(rows)} rows without a label: "
                f"{lines}. Fill them in, or remove these rows."
            )
            labels = (str(row.cells.get(column)) for row in rows)
            is_list = any(set(",;|") & set(label) for label in labels)
            if is_list and self.options.task_type == "classification":
                message += (
                    " With --task_type=multilabel and labels such as a,b, an "
                    "empty cell means no label."
                )
            raise InputError(message)

    def write_held_out(self, directory: str) -> None:
        """Writes the held-out examples to `HELD_OUT`, with column names."""
        lines = []
        for example in self.held_out:
            cells = dict(zip(self.options.own_columns, example, strict=True))
            cells.pop(None, None)
            lines.append(json.dumps(cells, ensure_ascii=False) + "\n")
        if lines:
            path = os.path.join(directory, HELD_OUT)
            files.write_text(path, "".join(lines))

    def label(self, row: Row) -> Any:
        """Returns a label, a tuple of labels, or a number."""
        column, task_type = self.options.label_column, self.options.task_type
        if task_type == "regression":
            return row.number(column)
        is_multilabel = task_type == "multilabel"
        names = row.names_in(column) if is_multilabel else (row.name(column),)
        if self.labels is not None:
            for name in names:
                row.require_label(column, name, self.labels)
        return names if is_multilabel else names[0]

    def target_scale(self) -> tuple[float, float]:
        """Returns the mean and standard deviation of the training targets."""
        if self.options.do_train:
            numbers = [example.label for example in self.training]
            self.require_several({*numbers})
            return statistics.fmean(numbers), statistics.pstdev(numbers)
        output_dir = self.options.output_dir
        has_model = task_file.is_in(output_dir)
        trained = task_file.read(output_dir) if has_model else {}
        mean = trained.get("target_mean", 0.0)
        return mean, trained.get("target_deviation", 1.0)

    def require_several(self, labels: Collection[Any]) -> None:
        """Raises `InputError` unless the training labels differ.

        `labels` are the distinct labels. Multi-label tasks may have only one.
        """
        if len(labels) < (1 if self.options.task_type == "multilabel" else 2):
            raise InputError(
                "The training data must have at least two different labels. "
                f"Received: only {sorted(labels)} in {self._label_column()}. "
                "Check --label_column."
            )

    def _label_column(self) -> str:
        column, path = self.options.label_column, self.path("train")
        return f"column {column!r} of {path!r}"


def make_choice_task(options: RunClassifier) -> ChoiceTask:
    """Returns a multiple-choice task; C is the largest number of choices."""
    splits = options.used_splits
    names = files.list_directory(options.data_dir)
    possible = (
        f for f in ("jsonl", "csv", "tsv") if f"{splits[0]}.{f}" in names
    )
    options = dataclasses.replace(options, task_name=next(possible, "jsonl"))
    columns = _choice_columns(options)
    data = OwnChoices(options, columns)
    data.require_same_columns()
    num_choices = max(
        len(columns.find_choices(row.cells, row.where)[0])
        for split in splits
        if files.exists(data.path(split))
        for row in data.rows(split)
    )
    return ChoiceTask(num_choices=num_choices, data=data, columns=columns)


def _choice_columns(options: RunClassifier) -> ChoiceColumns:
    """Returns the columns that flags name, or that look like choices."""
    is_by_number = options.choices_column.replace(",", "").isdecimal()
    if is_by_number and options.has_header is None:
        raise InputError(
            f"--choices_column={options.choices_column} gives numbers: add "
            "--nohas_header if the first line is an example, or --has_header."
        )
    question = options.question_column or DEFAULT_COLUMNS.question
    columns = ChoiceColumns(
        context=options.context_column,
        choices=options.choices_column,
        question=question,
        has_header=options.reads_header,
    )
    first = next(detection.read_rows(options, options.used_splits[0]))
    label, guid = options.label_column, options.id_column
    others = (columns.context, question, label, guid)
    candidates = filter(detection.CHOICE_COLUMN.fullmatch, first.cells)
    names = [name for name in candidates if name not in others]
    is_default = columns.choices == DEFAULT_COLUMNS.choices
    if is_default and columns.choices not in first.cells and len(names) > 1:
        logging.info("%s: the choices are in %s", first.path, ", ".join(names))
        columns = columns._replace(choices=",".join(names))
    if options.own_format(options.used_splits[0]) == "jsonl":
        return columns  # Objects may have different keys.
    choices = columns.choices.split(",")
    if len(choices) > 1:  # A misspelled name would be a missing choice.
        flags = dict.fromkeys(choices, "--choices_column")
        for name in choices:
            first._replace(flags=flags).get(name)
    texts = (columns.context, columns.question)
    required = [name for name in texts if name in first.cells] + choices
    return columns._replace(required=tuple(required))


@dataclasses.dataclass(frozen=True)
class OwnChoices(OwnData):
    """Multiple choice; examples may have different numbers of choices."""

    columns: ChoiceColumns

    def read(self, split: str) -> list[ChoiceExample]:
        examples = [self._example(row, split) for row in self.rows(split)]
        if split != "test":
            return examples
        return self.check_test_labels(examples, "the numbers of choices")

    def _example(self, row: Row, split: str) -> ChoiceExample:
        if self.options.question_column is not None:
            row.get(self.options.question_column)
        # The default context is optional where there is a question.
        has_question = self.columns.question in row.cells
        if not has_question or self.columns.context != DEFAULT_COLUMNS.context:
            row.get(self.columns.context)
        example = self.columns.example(row.cells, row.where)
        has_id = self.options.id_column is None and "id" in row.cells
        guid = row.name("id") if has_id else self.guid(row, split)
        label = self.label_if_known(row, split)
        return example._replace(guid=guid, label=label)

    def label(self, row: Row) -> int:
        texts, names = self.columns.find_choices(row.cells, row.where)
        return row.choice(self.options.label_column, len(texts), names)
