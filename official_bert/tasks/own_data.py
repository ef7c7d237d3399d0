"""Texts of a user's own: TSV, CSV or JSON lines.

`--task_name=csv` reads `train.csv`, `dev.csv` and `test.csv` of the folder, as
far as they are needed; tsv and jsonl likewise. Columns are given by name; in
TSV and CSV also by number, from 0. A file without a header needs numbers, and
`--nohas_header`::

    text,topics
    "Taxes rise, rents too.","money,home"

    {"text": "Taxes rise, rents too.", "topics": ["money", "home"]}

A label is a word or a number. Several labels of a text are comma-separated, or
a list in JSON; there may be none. Test data are measured where every row has a
label, and in the label column nothing else.
"""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging

from official_bert import task_file
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import tables
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.shuffling import shuffled
from official_bert.tasks.tables import Row
from official_bert.tasks.text import TextTask
from official_bert.tasks.text_data import TextColumns, TextExample

KINDS = ("tsv", "csv", "jsonl")


def make(options: RunClassifier, long_documents: LongDocuments) -> TextTask:
    """Returns the task that the options describe.

    Its labels are those of `--label_file`; else those of the training data, in
    alphabetical order; else, to evaluate or predict, those that the model was
    trained for, from `task.json` beside it.

    Raises:
        InputError: It cannot be known what the labels are.
    """
    data = OwnData(options)
    labels: tuple[str, ...] = ()
    if options.task_type != "regression":
        if options.label_file:
            labels = tables.read_labels(options.label_file)
        elif options.do_train:
            labels = data.find_labels()
        else:
            labels = _trained_labels(options)
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
        long_documents=long_documents,
    )


def _trained_labels(options: RunClassifier) -> tuple[str, ...]:
    """Returns the labels of what was trained in the output folder."""
    if not task_file.is_in(options.output_dir):
        raise InputError(
            "Without --do_train, there must be a model and its task.json "
            f"in --output_dir, or a --label_file. Received: "
            f"{options.output_dir!r} without a task.json."
        )
    return task_file.read_labels(options.output_dir)


@dataclasses.dataclass(frozen=True)
class OwnData:
    """The files of a folder: a `text_data.TextData`.

    Attributes:
        options: Which folder, which columns, and what they hold.
        labels: All there are; none in regression.
    """

    options: RunClassifier
    labels: tuple[str, ...] = ()

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `train`, `dev` or `test`."""
        return [mode]

    def read(self, split: str) -> list[TextExample]:
        """Reads a file of the folder."""
        examples = [self._example(row, split) for row in self._rows(split)]
        if split == "test":
            return _with_all_labels(examples)
        return shuffled(examples) if split == "train" else examples

    def _rows(self, split: str) -> Iterator[Row]:
        kind = self.options.task_name.lower()
        path = os.path.join(self.options.data_dir, f"{split}.{kind}")
        return tables.read(path, kind, has_header=self.options.has_header)

    def _example(self, row: Row, split: str) -> TextExample:
        options = self.options
        guid = f"{split}-{row.line}"
        if options.id_column is not None:
            guid = row.name(options.id_column)
        text_b = None
        if options.text_b_column is not None:
            text_b = row.text(options.text_b_column)
        return TextExample(
            guid,
            row.text(options.text_a_column),
            text_b,
            self._label_if_known(row) if split == "test" else self._label(row),
        )

    def _label_if_known(self, row: Row) -> Any:
        """Returns None if there is anything but a label, as in test data."""
        try:
            return self._label(row)
        except InputError:
            return None

    def _label(self, row: Row) -> Any:
        column = self.options.label_column
        if self.options.task_type == "regression":
            return row.number(column)
        names = self._names(row)
        for name in names:
            if name not in self.labels:
                raise row.fault(
                    column, f"be one of {', '.join(self.labels)}", name
                )
        return names if self.options.task_type == "multilabel" else names[0]

    def _names(self, row: Row) -> tuple[str, ...]:
        """Returns the labels of a row, known or not."""
        column = self.options.label_column
        if self.options.task_type == "classification":
            return (row.name(column),)
        value = row.get(column)
        if isinstance(value, str):
            value = [part for part in value.split(",") if part.strip()]
        if not isinstance(value, list):
            raise row.fault(column, "be a list of labels", value)
        return tuple(row.as_name(column, part) for part in value)

    def find_labels(self) -> tuple[str, ...]:
        """Returns the labels of the training data, sorted."""
        found = {
            name for row in self._rows("train") for name in self._names(row)
        }
        least = 1 if self.options.task_type == "multilabel" else 2
        if len(found) < least:
            raise InputError(
                "The training data must have more labels than one. Received: "
                f"{sorted(found)} in column {self.options.label_column!r} of "
                f"{self.options.data_dir!r}. Check --label_column."
            )
        return tuple(sorted(found))

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns a table of ids and of labels or numbers."""
        rows: list[tuple[Any, Any]] = [("id", "prediction")]
        for example, prediction in zip(examples, predictions, strict=True):
            if isinstance(prediction, list):
                prediction = ",".join(prediction)
            rows.append((example.guid, prediction))
        return f"{split}_predictions.tsv", tables.to_tsv(rows)


def _with_all_labels(examples: list[TextExample]) -> list[TextExample]:
    """Returns test data without labels, unless there are some."""
    if all(example.label in (None, ()) for example in examples):
        return [example._replace(label=None) for example in examples]
    missing = [e.guid for e in examples if e.label is None]
    if missing:
        logging.warning(
            "%d of %d test rows have no label that is known, %s the first: "
            "nothing is measured",
            len(missing),
            len(examples),
            missing[0],
        )
    return examples
