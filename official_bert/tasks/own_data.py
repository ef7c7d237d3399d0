"""The user's own data: `train`, `dev` and `test` files in a directory.

Columns are given by name; in TSV and CSV also by number, from 0::

    text,topics
    "Taxes rise, rents too.","money,home"

    {"text": "Taxes rise, rents too.", "topics": ["money", "home"]}

    {"context": "It rains.", "question": "What does she do?",
     "choices": ["She takes an umbrella.", "She swims."], "label": 0}

`question`, `id` and, in test data, `label` are optional. Test data is evaluated
if every row has a known label.
"""

import abc
import dataclasses
import os
from collections.abc import Callable, Iterator
from typing import Any

from absl import logging

from official_bert import task_file
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import tables
from official_bert.tasks.choice import ChoiceColumns, ChoiceExample, ChoiceTask
from official_bert.tasks.tables import Row
from official_bert.tasks.task import DataSet, shuffle_examples
from official_bert.tasks.text import TextColumns, TextExample, TextTask

FORMATS = ("tsv", "csv", "jsonl")


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
        options, form = self.options, self.file_format
        path = os.path.join(options.data_dir, f"{split}.{form}")
        return tables.read(path, form, has_header=options.has_header)

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


def make_text_task(options: RunClassifier) -> TextTask:
    """Returns the task on texts that the options describe."""
    data = OwnTexts(options, options.task_name.lower())
    labels: tuple[str, ...] = ()
    if options.task_type != "regression":
        labels = find_labels(options, data.training_labels)
    given = (options.text_a_column, options.text_b_column)
    names = [name for name in given if name is not None]
    return TextTask(
        task_type=options.task_type,
        labels=labels,
        is_pair=len(names) == 2,
        columns=TextColumns(names, options.has_header),
        data=dataclasses.replace(data, labels=labels),
    )


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
                f"{options.data_dir!r}. Check --label_column."
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
    """Returns multiple choice with as many choices as the first example."""
    first_split = "dev" if options.do_eval else "test"
    if options.do_train:
        first_split = "train"
    columns = ChoiceColumns(options.context_column, options.choices_column)
    if options.question_column:
        columns = columns._replace(question=options.question_column)
    data = OwnChoices(options, "jsonl", columns)
    row = next(data.rows(first_split))
    choices = row.get(columns.choices)
    if not isinstance(choices, list) or len(choices) < 2:
        expected = "be a list of at least two texts"
        raise row.error(columns.choices, expected, choices)
    return ChoiceTask(
        num_choices=len(choices),
        data=dataclasses.replace(data, num_choices=len(choices)),
        columns=columns,
    )


@dataclasses.dataclass(frozen=True)
class OwnChoices(OwnData):
    """Multiple choice with C = `num_choices` choices."""

    columns: ChoiceColumns
    num_choices: int = 0

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file."""
        return [self._example(row, split) for row in self.rows(split)]

    def _example(self, row: Row, split: str) -> ChoiceExample:
        # The default column of the question is optional.
        for column in (*self.columns[:2], self.options.question_column):
            if column is not None:
                row.get(column)
        example = self.columns.example(row.cells, row.where, self.num_choices)
        has_id = self.options.id_column is None and "id" in row.cells
        guid = row.name("id") if has_id else self.guid(row, split)
        label = self.label_if_known(row, split)
        return example._replace(guid=guid, label=label)

    def label(self, row: Row) -> int:
        """Returns the number of the right choice."""
        return row.choice(self.options.label_column, self.num_choices)
