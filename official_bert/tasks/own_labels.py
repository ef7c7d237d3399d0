"""Labels in the user's own tables: names, lists of names, or numbers.

Instead of names, a row may have a 0 or 1 for each label: in several columns, or
as a vector such as 1,0,1 in one column.
"""

import dataclasses
import functools
import itertools
from collections.abc import Collection, Sequence
from typing import Any

from official_bert.errors import InputError, listed
from official_bert.io import tables
from official_bert.io.rows import Row, UnknownValueError, only_item, to_number
from official_bert.options import RunClassifier
from official_bert.tasks import label_vectors
from official_bert.tasks.own_data import OwnData

_FOR_SEVERAL = (
    ". If texts can have several labels or none, use --task_type=multilabel, "
    "and write a,b or 1,0,1"
)


def known_labels(options: RunClassifier) -> tuple[str, ...] | None:
    """Returns the labels of `--label_file`, or of the trained model, if any.

    Raises `InputError` if there is only one, unless the task is multi-label.
    """
    if options.label_file:
        labels = tables.read_labels(options.label_file)
        if len(labels) == 1 and options.task_type != "multilabel":
            raise options.error(
                "label_file",
                "must have at least two labels, one per line. Received: only "
                f"{labels[0]!r}. Add the others.",
            )
        return labels
    trained = options.trained_task
    return tuple(trained.get("labels", ())) if trained else None


def names_of(label: str | Sequence[str]) -> Sequence[str]:
    """Returns the names in a label: one, or those in a multi-label."""
    return [label] if isinstance(label, str) else label


def in_order(labels: Collection[str]) -> tuple[str, ...]:
    """Returns sorted labels; if all are numbers, by their values."""
    numbers = {label: to_number(label) for label in labels}
    if None in numbers.values():
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (numbers[label], label)))


@dataclasses.dataclass(frozen=True)
class OwnLabels(OwnData):
    """The user's own files, whose rows have labels."""

    labels: tuple[str, ...] | None  # () in regression. None: any label.

    def label(self, row: Row) -> Any:
        """Returns a label, a tuple of labels, or a number."""
        column, task_type = self.options.label_column, self.options.task_type
        if task_type == "regression":
            number = row.number(column)
            if self.options.group_column and number < 0:
                must = "be a relevance of at least 0, as --group_column is set"
                raise row.error(column, must, row.get(column))
            return number
        is_multilabel = task_type == "multilabel"
        names = self._labels_in_vector(row)
        if names is None and is_multilabel:
            names = row.names_in(column)
        elif names is None:
            names = (row.name(column, _FOR_SEVERAL),)
        if self.labels is not None:
            for name in names:
                row.require_label(column, name, self.labels)
        if is_multilabel:
            return names
        if len(names) != 1:
            must = f"have exactly one label{_FOR_SEVERAL}"
            raise row.error(column, must, [*names])
        return names[0]

    def _labels_in_vector(self, row: Row) -> tuple[str, ...] | None:
        """Returns the labels with a 1 in a vector; None if there is none."""
        column, labels = self.options.label_column, self._vector_labels
        numbers: Sequence[float] | None
        if len(self.label_columns) > 1:
            numbers = [row.bit(name) for name in self.label_columns]
        elif self.options.task_type == "multilabel":
            numbers = label_vectors.find(row.get(column), self.labels)
        else:
            numbers = label_vectors.numbers_in(only_item(row.get(column)))
        if numbers is None:
            return None
        are_bits = {*numbers} <= {0, 1}
        if not are_bits or len(numbers) != len(labels):
            every = f"of the {len(labels)} labels" if labels else "label"
            must = (
                "have names of labels, such as a,b, or a 0 or 1 for each "
                f"{every}; ids and probabilities of labels are not supported, "
                "and ranges are written as 18-25"
            )
            if are_bits and self.labels and not labels:
                must = (
                    "have names of labels, like the training data. For a 0 or "
                    "1 for each label, set --label_file to the order of labels"
                )
            # In test data, -1 may mean that a label is unknown.
            is_unknown = len(numbers) == len(labels)
            kind = UnknownValueError if is_unknown else InputError
            raise row.error(column, must, row.get(column), kind)
        return tuple(itertools.compress(labels, numbers))

    def require_column_of_each_label(self) -> None:
        """Raises `InputError` if other labels have columns than are known."""
        columns, labels = self.label_columns, self.labels
        if len(columns) == 1 or not labels:
            return
        are_equal = {*self._vector_labels} == {*labels}
        if not are_equal or len(columns) != len(labels):
            raise InputError(
                "--label_column must name one column for each of the labels "
                f"{listed(labels)}. Received: {listed(columns)}."
            )

    @functools.cached_property
    def _vector_labels(self) -> tuple[str, ...]:
        """The labels in the order of vectors; () if the order is unknown."""
        columns, labels = self.label_columns, self.labels or ()
        if len(columns) > 1:
            if all(map(str.isdecimal, columns)) and columns[0] not in labels:
                return labels
            return columns
        label_file = self.options.label_file
        if not (label_file or self.options.do_train):
            record = self.options.run_directory.record
            label_file = record.options.get("label_file")
        defaults = label_vectors.default_names(len(labels))
        return labels if label_file or labels == defaults else ()

    def labels_of_vectors(self, rows: Sequence[Row]) -> tuple[str, ...] | None:
        """Returns the labels of 0/1 vectors in the training rows, if any."""
        if len(self.label_columns) > 1:
            return self.label_columns
        column = self.options.label_column
        cells = [row.get(column) for row in rows]
        if self.options.task_type == "classification":
            cells = list(filter(label_vectors.numbers_in, cells))
        labels = label_vectors.default_names(label_vectors.size_of(cells))
        if not labels:
            return None
        for row in rows:
            if label_vectors.find(row.get(column), labels) is None:
                must = f"have a 0 or 1 for each of the {len(labels)} labels"
                raise row.error(column, must, row.get(column))
        return labels

    def require_several(self, labels: Collection[Any]) -> None:
        """Raises `InputError` unless the training labels differ.

        `labels` are the distinct labels. Multi-label tasks may have only one,
        but not 0 or 1 as names.
        """
        where = self.training_column(self.options.label_column)
        is_multilabel = self.options.task_type == "multilabel"
        if is_multilabel and {*labels} <= {"0", "1"}:
            only = listed(sorted(labels)) or "empty cells and zeros"
            raise InputError(
                f"{where} must have names of labels, or a 0 or 1 for each "
                "label, such as 1,0,1, in every row for the same number of "
                f"labels. Received: only {only}. If 0 and 1 are the two "
                "classes of texts, use --task_type=classification."
            )
        if len(labels) < 2 and not is_multilabel:
            raise InputError(
                "The training data must have at least two different labels. "
                f"Received: only {sorted(labels)} in {where}. Check "
                "--label_column."
            )
