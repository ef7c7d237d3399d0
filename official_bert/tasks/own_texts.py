"""The user's own texts and pairs of texts; see `own_data`."""

import collections
import dataclasses
import math
import operator
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io.rows import Row, label_cell, to_number
from official_bert.options import RunClassifier
from official_bert.options.run_classifier import MAX_WEIGHT
from official_bert.tasks import own_labels, text_checks
from official_bert.tasks.data_set import WrongAnswer, shuffle_examples
from official_bert.tasks.held_out import choose_held_out
from official_bert.tasks.own_data import lines
from official_bert.tasks.own_labels import OwnLabels, names_of
from official_bert.tasks.text import (
    TextColumns,
    TextExample,
    TextTask,
    key_of,
    warn_of_empty_texts,
)
from official_bert.tasks.text_types import TYPES

# If more of the training examples have the same label, accuracy is misleading:
# a model that always answers this label is hard to beat.
MAX_SHARE_OF_LABEL = 0.8

_Texts = TypeVar("_Texts", bound="OwnTexts")


def make(options: RunClassifier, rows: Sequence[Row] = ()) -> TextTask:
    """Returns the task that options of `detection.detect_omitted` describe.

    `rows` are those of the first file in use, if it was read already.
    """
    is_regression = options.task_type == "regression"
    labels = () if is_regression else own_labels.known_labels(options)
    data = OwnTexts(labels, options=options, first_rows=rows)
    data.require_same_width()
    data.require_column_of_each_label()
    if options.do_train:
        data = data.with_training_file()
        if options.group_column and data.labels:
            # The alphabetical order of words may be any order of relevance.
            is_guess = labels is None and None in map(to_number, data.labels)
            logging.log(
                logging.WARNING if is_guess else logging.INFO,
                f"Relevance, lowest first: {', '.join(data.labels)} (otherwise:"
                " --label_file)",
            )
    elif data.labels is None:
        raise InputError(
            "Without --do_train, --output_dir must contain a fine-tuned model "
            f"with its task.json. Received: {options.output_dir!r}. Check the "
            "path, or set --label_file."
        )
    mean, deviation = data.target_scale() if is_regression else (0.0, 1.0)
    names = options.text_columns
    return TYPES[options.task_type](
        labels=data.labels or (),
        target_mean=mean,
        target_deviation=deviation,
        is_pair=len(names) == 2,
        columns=TextColumns(names, options.reads_header),
        best_metric=data.default_metric(),
        has_weights=options.do_train and bool(options.weight_column),
        data=data,
    )


@dataclasses.dataclass(frozen=True)
class OwnTexts(OwnLabels):
    """Texts or pairs of texts."""

    held_out_rows: Sequence[Row] = ()
    first_rows: Sequence[Row] = ()  # Of the first file in use, if it was read.

    def rows(self, split: str) -> Iterator[Row]:
        if self.first_rows and split == self.options.used_splits[0]:
            return iter(self.first_rows)
        return super().rows(split)

    def with_training_file(self: _Texts) -> _Texts:
        """Returns a copy with training and held-out examples, and labels."""
        rows, labels = [*self.rows("train")], self.labels
        if labels is None:
            labels = self.labels_of_vectors(rows)
        data = dataclasses.replace(self, labels=labels)
        examples = data.examples(rows, "train")
        if self.labels is None:
            names = {n for e in examples for n in names_of(e.label)}
            found = own_labels.in_order(names)
            self.require_several(found)
            labels = labels or found
        text_checks.check_training(self, examples, labels or ())
        if self.options.task_type == "regression":
            text_checks.warn_of_thousands(self, rows)
        held_out = choose_held_out(
            self.options,
            [self.held_out_together(example) for example in examples],
            [example.label for example in examples],
            self.training_column(self.options.label_column),
        )
        training = [e for i, e in enumerate(examples) if i not in held_out]
        if training and self.options.weight_column:
            text_checks.check_weights(self, training)
        return dataclasses.replace(
            self,
            labels=labels,
            training=shuffle_examples(training),
            held_out=[examples[i] for i in sorted(held_out)],
            held_out_rows=[rows[i] for i in sorted(held_out)],
        )

    def held_out_together(self, example: Any) -> Any:
        """Returns what is equal for examples that are held out together."""
        return example.group or tuple(map(key_of, example.texts))

    def read(self, split: str) -> Sequence[TextExample]:
        if (part := self.read_part(split)) is not None:
            return part
        examples = self.examples([*self.rows(split)], split)
        examples = [*warn_of_empty_texts(examples)]
        if split == "test":
            expected = "numbers"
            if len(self.label_columns) > 1:
                expected = "1 or 0"
            elif self.labels:
                expected = f"the labels {listed(self.labels)}"
            examples = self.check_test_labels(
                examples, expected, self.labels or ()
            )
        text_checks.warn_of_training_texts(self, split, examples)
        return examples

    def _example_maker(
        self, rows: Sequence[Row], split: str
    ) -> Callable[[Row], Any]:
        """Returns a function that makes the example of one of the rows."""
        column_b = self.options.text_b_column

        def make_example(row: Row) -> TextExample:
            return TextExample(
                self.guid(row, split),
                row.text(self.options.text_a_column),
                None if column_b is None else row.text(column_b),
                self.label_if_known(row, split),
                self._weight(row) if split == "train" else None,
                None if split == "unlabeled" else self._group(row),
            )

        return make_example

    def examples(self, rows: Sequence[Row], split: str) -> list[Any]:
        """Returns the examples of all rows; raises one error for all faults."""
        make_example = self._example_maker(rows, split)
        examples, errors = [], {}
        for row in rows:
            try:
                examples.append(make_example(row))
            except InputError as error:
                errors[self.place(row, split)] = str(error)
        if errors:
            message = next(iter(errors.values()))
            # A column that all rows of a file lack is one error.
            if len({*errors.values()}) > 1:
                message += (
                    f" {len(errors)} of {len(examples) + len(errors)} rows "
                    f"have such errors: {lines([*errors])}."
                )
            raise InputError(message)
        return examples

    def _weight(self, row: Row) -> float | None:
        column = self.options.weight_column
        if not column:
            return None
        weight = to_number(row.get(column))
        if weight is None or not 0 <= weight < MAX_WEIGHT:
            must = f"be a weight: a number from 0 to {MAX_WEIGHT:g}"
            raise row.error(column, must, row.get(column))
        return weight

    def _group(self, row: Row) -> str | None:
        column = self.options.group_column
        if not column:
            return None
        cell = row.get(column)
        is_text = isinstance(cell, str) and cell.strip()
        group = cell.strip() if is_text else row.name(column)
        # Numbers become 1.0 if another cell of their column is empty.
        return group[:-2] if re.fullmatch(r"\d+\.0", group) else group

    def held_out_objects(self) -> Iterator[dict[str, Any]]:
        for row in self.held_out_rows:
            yield {name: row.cells[name] for name in row.columns}

    def wrong_rows(
        self, wrong: Iterable[WrongAnswer], probability: str
    ) -> list[Sequence[Any]]:
        if not self.labels:
            return []
        options = self.options
        names, id_column = options.text_columns, options.id_column
        id_names = ["file", "line"] if id_column is None else [id_column]
        header = (*id_names, "label", "prediction", probability, *names)
        rows: list[Sequence[Any]] = [header]
        is_descending = probability == "probability"
        for answer in sorted(
            wrong, key=operator.attrgetter(probability), reverse=is_descending
        ):
            example = answer.example
            ids: Sequence[str] = [example.guid]
            if id_column is None:
                ids = self.file_and_line(example.guid)
            labels = map(label_cell, (example.label, answer.prediction))
            texts = example.texts[: len(names)]
            share = f"{getattr(answer, probability):.6f}"
            rows.append((*ids, *labels, share, *texts))
        return rows

    def target_scale(self) -> tuple[float, float]:
        """Returns the mean and standard deviation of the training targets."""
        if self.options.do_train:
            numbers = [example.label for example in self.training]
            self.require_several({*numbers})
            try:
                mean = statistics.fmean(numbers)
                deviation = statistics.pstdev(numbers)
            except OverflowError:  # For which numbers depends on Python.
                mean = deviation = math.inf
            column = self.training_column(self.options.label_column)
            # float32 has 7 digits, and the square of the deviation.
            if not max(1e-15, 1e-5 * abs(mean)) < deviation < 1e15:
                raise InputError(
                    f"{column} must have numbers with a standard deviation "
                    "between 1e-15 and 1e15 that is at least 1e-5 times their "
                    f"mean. Received: {deviation:.3g}, with a mean of "
                    f"{mean:.9g}. Use another unit, or subtract a constant "
                    "from all numbers."
                )
            return mean, deviation
        trained = self.options.trained_task
        mean = trained.get("target_mean", 0.0)
        return mean, trained.get("target_deviation", 1.0)

    def default_metric(self) -> str:
        """Returns `macro_f1` for imbalanced classes, otherwise "".

        Without training, returns the metric of the trained model.
        """
        options = self.options
        if not options.do_train:
            return options.trained_task.get("best_metric", "")
        if options.group_column:
            return "ndcg@10"
        if options.task_type != "classification":
            return ""
        labels = [example.label for example in self.training]
        [(label, count)] = collections.Counter(labels).most_common(1)
        if count <= MAX_SHARE_OF_LABEL * len(labels):
            return ""
        if not options.best_metric:
            logging.info(
                f"{count / len(labels):.0%} of the training examples have the "
                f"label {label!r}. The metric that compares models is "
                "therefore macro_f1, not accuracy (otherwise: "
                "--best_metric=accuracy)"
            )
        return "macro_f1"
