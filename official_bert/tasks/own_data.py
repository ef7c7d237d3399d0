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
import functools
import math
import os
import random
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from official_bert import files, task_file
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.options.checks import table_format
from official_bert.options.run_classifier import OWN_FORMATS
from official_bert.tasks import detection, tables
from official_bert.tasks.choice import (
    DEFAULT_COLUMNS,
    ChoiceColumns,
    ChoiceExample,
    ChoiceTask,
)
from official_bert.tasks.tables import Row
from official_bert.tasks.task import DataSet, shuffle_examples
from official_bert.tasks.text import (
    TargetScale,
    TextColumns,
    TextExample,
    TextTask,
)

FORMATS = OWN_FORMATS


def find_labels(
    options: RunClassifier, training_labels: Callable[[], tuple[str, ...]]
) -> tuple[str, ...]:
    """Returns the labels in the order of their ids.

    They are those of `--label_file`, else (without training) those of the
    trained model's `task.json`, else `training_labels()`.
    """
    if options.label_file:
        return tables.read_labels(options.label_file)
    if not options.do_train and task_file.is_in(options.output_dir):
        return task_file.read_labels(options.output_dir)
    return training_labels()


@dataclasses.dataclass(frozen=True)
class OwnData(DataSet):
    """The files of a directory."""

    options: RunClassifier  # The directory and the columns.
    file_format: str  # See `tables.read`; also the files' extension.

    def rows(self, split: str) -> Iterator[Row]:
        """Yields the rows of `train`, `dev` or `test`."""
        if not self.options.holds_out or split == "test":
            yield from self._file_rows(split)
            return
        is_dev = split == "dev"
        held_out = self._held_out_lines
        for row in self._file_rows("train"):
            if (row.line in held_out) == is_dev:
                yield row

    def path(self, split: str) -> str:
        """Returns the file of `train`, `dev` or `test`."""
        return self.options.own_file(split)

    def _file_rows(self, split: str) -> Iterator[Row]:
        path = self.path(split)
        form = self.file_format
        if self.options.train_file:
            form = table_format(path) or form
        has_header = self.options.has_header is not False
        return tables.read(path, form, has_header=has_header)

    @functools.cached_property
    def _held_out_lines(self) -> frozenset[int]:
        """The lines of `--train_file` that are used for evaluation only.

        They are the same in all runs, so that seeds can be compared.
        """
        options = self.options
        column, task_type = options.label_column, options.task_type
        labels: dict[int, Any] = {}
        for row in self._file_rows("train"):
            is_number = task_type == "regression"
            labels[row.line] = (
                row.number(column) if is_number else str(row.get(column))
            )
        is_class = task_type == "classification"
        return frozenset(hold_out(labels, options.dev_share, is_class=is_class))

    def write_held_out(self, directory: str) -> None:
        """Copies the rows that were held out of training to `dev.EXT`."""
        if self.options.holds_out:
            name = os.path.basename(self.options.own_file("dev"))
            source = self.options.own_file("train")
            lines = [row.line for row in self._file_rows("train")]
            target = os.path.join(directory, name)
            tables.copy_rows(source, target, lines, self._held_out_lines)

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


def hold_out(
    labels: Mapping[int, Any], share: float, *, is_class: bool
) -> list[int]:
    """Returns a share of the keys of {key: label}, at least one.

    Every class has nearly the same share; so has every range of numbers. A
    class of one example is not held out.
    """
    keys = list(labels)
    random.Random(12345).shuffle(keys)
    if is_class:
        counts = collections.Counter(labels.values())
        keys = [key for key in keys if counts[labels[key]] > 1]
    keys.sort(key=labels.__getitem__)
    # Evenly spaced in the order of labels.
    return [
        key
        for place, key in enumerate(keys)
        if math.ceil((place + 1) * share) > math.ceil(place * share)
    ]


def make_text_task(options: RunClassifier) -> TextTask:
    """Returns the task on texts that the options describe."""
    options = detection.complete(options)
    data = OwnTexts(options, options.task_name.lower())
    labels: tuple[str, ...] = ()
    scale = TargetScale()
    if options.task_type == "regression":
        scale = find_scale(options, data)
    else:
        labels = find_labels(options, data.training_labels)
    given = (options.text_a_column, options.text_b_column)
    names = [name for name in given if name is not None]
    return TextTask(
        task_type=options.task_type,
        labels=labels,
        target_scale=scale,
        is_pair=len(names) == 2,
        columns=TextColumns(names, options.has_header is not False),
        data=dataclasses.replace(data, labels=labels),
    )


def find_scale(options: RunClassifier, data: "OwnTexts") -> TargetScale:
    """Returns mean and standard deviation of the training data's numbers.

    Without training, they are those of the trained model.
    """
    # A missing file is reported when its examples are read.
    if options.do_train and files.exists(options.own_file("train")):
        column = options.label_column
        numbers = [row.number(column) for row in data.rows("train")]
        deviation = statistics.pstdev(numbers)
        if not deviation:
            raise InputError(
                "The training data must have different numbers. Received: only "
                f"{numbers[0]} in column {column!r} of "
                f"{options.own_file('train')!r}. Check --label_column."
            )
        return TargetScale(statistics.fmean(numbers), deviation)
    scale = None
    if task_file.is_in(options.output_dir):
        scale = task_file.read(options.output_dir).get("target_scale")
    return TargetScale(**scale) if scale else TargetScale()


@dataclasses.dataclass(frozen=True)
class OwnTexts(OwnData):
    """Texts or pairs of texts."""

    labels: tuple[str, ...] = ()  # All labels; empty in regression.

    def read(self, split: str) -> list[TextExample]:
        """Reads a file. Training examples are always shuffled alike."""
        column_a = self.options.text_a_column
        column_b = self.options.text_b_column
        examples = [
            TextExample(
                self.guid(row, split),
                row.text(column_a),
                None if column_b is None else row.text(column_b),
                self.label_if_known(row, split),
            )
            for row in self.rows(split)
        ]
        if split == "test":
            return _require_all_labels(examples)
        return shuffle_examples(examples) if split == "train" else examples

    def label(self, row: Row) -> Any:
        """Returns a label, a tuple of labels, or a number."""
        column = self.options.label_column
        if self.options.task_type == "regression":
            return row.number(column)
        names = self._label_names(row)
        for name in names:
            row.require_label(column, name, self.labels)
        return names if self.options.task_type == "multilabel" else names[0]

    def _label_names(self, row: Row) -> tuple[str, ...]:
        """Returns the labels of a row, known or not."""
        column = self.options.label_column
        if self.options.task_type == "classification":
            return (row.name(column),)
        value = row.get(column)
        if isinstance(value, str):
            value = [part for part in value.split(",") if part.strip()]
        if not isinstance(value, list):
            raise row.error(column, "be a list of labels", value)
        return tuple(row.to_name(column, part) for part in value)

    def training_labels(self) -> tuple[str, ...]:
        """Returns the labels of the training data, sorted."""
        options = self.options
        if not options.do_train:
            raise InputError(
                "Without --do_train, --output_dir must hold a fine-tuned model "
                f"with its task.json. Received: {options.output_dir!r}. Check "
                "the path, or give a --label_file."
            )
        rows = self.rows("train")
        found = {name for row in rows for name in self._label_names(row)}
        if len(found) < (1 if options.task_type == "multilabel" else 2):
            raise InputError(
                "The training data must have more than one label. Received: "
                f"{sorted(found)} in column {options.label_column!r} of "
                f"{options.own_file('train')!r}. Check --label_column."
            )
        return tuple(sorted(found))


def _require_all_labels(examples: list[TextExample]) -> list[TextExample]:
    """Warns if only some examples of the test data have known labels."""
    if all(example.label in (None, ()) for example in examples):
        return [example._replace(label=None) for example in examples]
    missing = [e.guid for e in examples if e.label is None]
    if missing:
        logging.warning(
            "The test set is not evaluated: %d of %d rows have no known label, "
            "the first is %s",
            len(missing),
            len(examples),
            missing[0],
        )
    return examples


def make_choice_task(options: RunClassifier) -> ChoiceTask:
    """Returns multiple choice with as many choices as any example has."""
    needed = {
        "train": options.do_train,
        "dev": options.do_eval or options.eval_every,
        "test": options.do_predict,
    }
    splits = [split for split, is_needed in needed.items() if is_needed]
    columns = ChoiceColumns(options.context_column, options.choices_column)
    if options.question_column:
        columns = columns._replace(question=options.question_column)
    data = OwnChoices(options, _choice_format(options, splits), columns)
    first = next(data.rows(splits[0]))
    if columns.choices not in first.cells:
        columns = columns._replace(choices=_choice_columns(first, columns))
        data = dataclasses.replace(data, columns=columns)
    num_choices = max(
        len(columns.find_choices(row.cells, row.where).texts)
        for split in splits
        if split == splits[0] or files.exists(data.path(split))
        for row in data.rows(split)
    )
    return ChoiceTask(num_choices=num_choices, data=data, columns=columns)


def _choice_format(options: RunClassifier, splits: Sequence[str]) -> str:
    """Returns the first format of which there is a file."""
    names = set(files.list_directory(options.data_dir))
    for file_format in ("jsonl", "csv", "tsv"):
        if f"{splits[0]}.{file_format}" in names:
            return file_format
    return "jsonl"


# Columns with one choice each: A, B or choice_0, option 1, endingA.
_CHOICE_COLUMN = re.compile(
    r"[A-Z]|(choice|option|ending|answer)[ _-]?([A-Z]|\d+)", re.IGNORECASE
)


def _choice_columns(row: Row, columns: ChoiceColumns) -> str:
    """Returns `--choices_column` or, if it has its default, columns found."""
    found = [name for name in row.cells if _CHOICE_COLUMN.fullmatch(name)]
    if columns.choices != DEFAULT_COLUMNS.choices or len(found) < 2:
        return columns.choices
    logging.info("%s: the choices are in %s", row.path, ", ".join(found))
    return ",".join(found)


@dataclasses.dataclass(frozen=True)
class OwnChoices(OwnData):
    """Multiple choice; examples may have different numbers of choices."""

    columns: ChoiceColumns

    def path(self, split: str) -> str:
        """Returns the file of `train`, `dev` or `test`."""
        name = f"{split}.{self.file_format}"
        return os.path.join(self.options.data_dir, name)

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file."""
        return [self._example(row, split) for row in self.rows(split)]

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
        """Returns the number of the right choice."""
        choices = self.columns.find_choices(row.cells, row.where)
        column = self.options.label_column
        return row.choice(column, len(choices.texts), choices.names)
