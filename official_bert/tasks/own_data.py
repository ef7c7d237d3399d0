"""The user's own data: `train`, `dev` and `test` files in a directory.

`--task_name=tsv`, `csv` or `jsonl` reads texts from `train.csv` and so on.
Columns are given by name; in TSV and CSV also by number, from 0. Files without
a header need numbers and `--nohas_header`::

    text,topics
    "Taxes rise, rents too.","money,home"

    {"text": "Taxes rise, rents too.", "topics": ["money", "home"]}

A label is a word or a number. Multi-label cells hold any number of labels,
separated by commas; in JSON also as a list. Test data is evaluated if every row
has a known label.

`--task_name=choices` reads multiple choice from `train.jsonl` and so on. The
number of choices is arbitrary, but the same in all examples::

    {"context": "It rains.", "question": "What does she do?",
     "choices": ["She takes an umbrella.", "She swims."], "label": 0}

`question`, `id` and, in test data, `label` are optional. Flags give other
column names, as for HellaSwag: `--context_column=ctx --choices_column=endings`.
"""

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from absl import logging

from official_bert import task_file
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import tables
from official_bert.tasks.choice import (
    DEFAULT_COLUMNS,
    ChoiceColumns,
    ChoiceExample,
    ChoiceTask,
)
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tables import Row
from official_bert.tasks.task import shuffle_examples
from official_bert.tasks.text import TextColumns, TextExample, TextTask

FORMATS = ("tsv", "csv", "jsonl")


def find_labels(
    options: RunClassifier, training_labels: Callable[[], tuple[str, ...]]
) -> tuple[str, ...]:
    """Returns the labels in the order of their ids.

    They are those of `--label_file`, else (without training) those of the
    trained model's `task.json`, else `training_labels()`.

    Raises:
        InputError: The labels cannot be read.
    """
    if options.label_file:
        return tables.read_labels(options.label_file)
    if not options.do_train and task_file.is_in(options.output_dir):
        return task_file.read_labels(options.output_dir)
    return training_labels()


@dataclasses.dataclass(frozen=True)
class OwnData:
    """The files of a directory.

    Attributes:
        options: The directory and the columns.
        file_format: See `tables.read`; also the files' extension.
    """

    options: RunClassifier
    file_format: str

    def rows(self, split: str) -> Iterator[Row]:
        """Yields the rows of `train`, `dev` or `test`."""
        path = os.path.join(
            self.options.data_dir, f"{split}.{self.file_format}"
        )
        has_header = self.options.has_header
        return tables.read(path, self.file_format, has_header=has_header)

    def guid(self, row: Row, split: str) -> str:
        """Returns the cell of `--id_column`, or split and line."""
        column = self.options.id_column
        return f"{split}-{row.line}" if column is None else row.name(column)


def _label_if_known(
    read: Callable[[Row], Any], row: Row, split: str
) -> Any | None:
    """Returns a row's label; in test data, None where it cannot be read."""
    try:
        return read(row)
    except InputError:
        if split != "test":
            raise
        return None


def make_text_task(options: RunClassifier) -> TextTask:
    """Returns the task on texts that the options describe.

    Raises:
        InputError: The labels cannot be read.
    """
    data = OwnTexts(options, options.task_name.lower())
    labels: tuple[str, ...] = ()
    if options.task_type != "regression":
        labels = find_labels(options, data.training_labels)
    names = (options.text_a_column, options.text_b_column)
    return TextTask(
        task_type=options.task_type,
        labels=labels,
        is_pair=options.text_b_column is not None,
        columns=TextColumns(
            tuple(name for name in names if name is not None),
            options.has_header,
        ),
        data=dataclasses.replace(data, labels=labels),
        long_documents=LongDocuments.from_options(options),
    )


@dataclasses.dataclass(frozen=True)
class OwnTexts(OwnData):
    """Texts or pairs of texts: a `text.TextData`.

    Attributes:
        labels: All labels; empty in regression.
    """

    labels: tuple[str, ...] = ()

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `train`, `dev` or `test`."""
        return [mode]

    def read(self, split: str) -> list[TextExample]:
        """Reads a file. Training examples are always shuffled alike."""
        examples = [self._example(row, split) for row in self.rows(split)]
        if split == "test":
            return _require_all_labels(examples)
        return shuffle_examples(examples) if split == "train" else examples

    def _example(self, row: Row, split: str) -> TextExample:
        options = self.options
        text_b = None
        if options.text_b_column is not None:
            text_b = row.text(options.text_b_column)
        return TextExample(
            self.guid(row, split),
            row.text(options.text_a_column),
            text_b,
            _label_if_known(self._label, row, split),
        )

    def _label(self, row: Row) -> Any:
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
        found = {
            name
            for row in self.rows("train")
            for name in self._label_names(row)
        }
        if len(found) < (1 if options.task_type == "multilabel" else 2):
            raise InputError(
                "The training data must have more than one label. Received: "
                f"{sorted(found)} in column {options.label_column!r} of "
                f"{options.data_dir!r}. Check --label_column."
            )
        return tuple(sorted(found))

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns a table of ids and predicted labels or numbers."""
        if self.options.task_type == "multilabel":
            predictions = [",".join(labels) for labels in predictions]
        ids = (example.guid for example in examples)
        text = tables.predictions_table(ids, predictions)
        return f"{split}_predictions.tsv", text


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
    modes = {
        "train": options.do_train,
        "dev": options.do_eval,
        "test": options.do_predict,
    }
    first_split = next(split for split, is_used in modes.items() if is_used)
    row = next(OwnData(options, "jsonl").rows(first_split))
    choices = row.get(options.choices_column)
    if not isinstance(choices, list) or len(choices) < 2:
        expected = "be a list of at least two texts"
        raise row.error(options.choices_column, expected, choices)
    columns = ChoiceColumns(
        options.context_column,
        options.choices_column,
        options.question_column or DEFAULT_COLUMNS.question,
    )
    return ChoiceTask(
        num_choices=len(choices),
        data=OwnChoices(options, "jsonl", columns, len(choices)),
        long_documents=LongDocuments.from_options(options),
        columns=columns,
    )


@dataclasses.dataclass(frozen=True)
class OwnChoices(OwnData):
    """Multiple choice, for `ChoiceTask.data`.

    Attributes:
        columns: The columns of the texts.
        num_choices: C, the number of choices of every example.
    """

    columns: ChoiceColumns
    num_choices: int

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file."""
        return [self._example(row, split) for row in self.rows(split)]

    def _example(self, row: Row, split: str) -> ChoiceExample:
        # The default column of the question is optional.
        for column in (*self.columns[:2], self.options.question_column):
            if column is not None:
                row.get(column)
        guid = self.guid(row, split)
        if self.options.id_column is None and "id" in row.cells:
            guid = row.name("id")
        example = self.columns.example(
            row.cells, guid, row.where, self.num_choices
        )
        label = _label_if_known(self._label, row, split)
        return example._replace(label=label)

    def _label(self, row: Row) -> int:
        return row.choice(self.options.label_column, self.num_choices)
