"""The user's own texts and pairs of texts; see `own_data`."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import operator
import re
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.inputs import padding
from official_bert.io import files, label_vectors
from official_bert.io.rows import (
    Row,
    UnknownValueError,
    only_item,
    to_number,
)
from official_bert.options import RunClassifier
from official_bert.options.run_classifier import MAX_WEIGHT
from official_bert.tasks.held_out import choose_held_out
from official_bert.tasks.own_data import OwnData, known_labels
from official_bert.tasks.task import WrongAnswer, shuffle_examples
from official_bert.tasks.text import TextColumns, TextExample, TextTask, key_of
from official_bert.tasks.text_types import TYPES

_FOR_SEVERAL = (
    ". If texts can have several labels or none, use --task_type=multilabel, "
    "and write a,b or 1,0,1"
)

# What programs write for missing values, and Excel for errors; in lower case.
_MISSING = (
    *("", "nan", "n/a", "na", "<na>", "null", "(null)", r"\n"),
    *("#n/a", "#name?", "#ref!", "#value!", "#div/0!", "#num!", "#null!"),
)

# If more of the training examples have the same label, accuracy is misleading:
# a model that always answers this label is hard to beat.
MAX_SHARE_OF_LABEL = 0.8

_Options = TypeVar("_Options", bound=RunClassifier)
_Texts = TypeVar("_Texts", bound="OwnTexts")


def _lines(numbers: Sequence[Any]) -> str:
    return f"line{'s' if len(numbers) > 1 else ''} {listed(numbers)}"


def fit_max_seq_length(options: _Options, rows: Sequence[Row]) -> _Options:
    """Lowers --max_seq_length to the 99th percentile of the texts' lengths.

    Changes nothing without rows, or if --fit_max_seq_length is false.
    """
    if not (rows and options.fit_max_seq_length):
        return options
    tokenizer = options.model_files.tokenizer
    columns = []
    for column in options.text_columns:
        texts = [row.text(column) for row in rows]
        columns.append(np.diff(tokenizer.encode_lines(texts).row_splits) + 1)
    # [CLS]; for sentence embeddings, each text is a sequence of its own.
    is_embedding = options.task_type == "embedding"
    join = np.concatenate if is_embedding else functools.partial(np.sum, axis=0)
    lengths = 1 + join(columns)
    limit = options.max_seq_length
    percentile = int(np.percentile(lengths, 99, method="higher"))
    # + 1, because a text that fills the sequence may have been truncated.
    length = padding.padded_length(min(percentile + 1, limit), limit, "bucket")
    note = ", the maximum" if percentile > limit else ""
    logging.info(
        f"--max_seq_length={length}{note}: 99% of the texts have at most "
        f"{percentile} tokens"
    )
    return options.replace(max_seq_length=length, fit_max_seq_length=False)


def make(options: RunClassifier, rows: Sequence[Row] = ()) -> TextTask:
    """Returns the task that options of `detection.detect_omitted` describe.

    `rows` are those of the first file in use, if it was read already.
    """
    is_regression = options.task_type == "regression"
    labels = () if is_regression else known_labels(options)
    data = OwnTexts(options, labels, first_rows=rows)
    data.require_same_columns()
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


def _is_missing(cell: Any) -> bool:
    """Whether a cell is empty, or what programs write for an empty cell."""
    text = str(cell).strip()
    return text == "None" or text.lower() in _MISSING


def _is_damaged(text: str) -> bool:
    """Whether a conversion of the encoding seems to have damaged a text.

    It has U+FFFD, or is UTF-8 that was read as Windows-1252, in which é becomes
    Ã©, or is how Python shows bytes.
    """
    if "\ufffd" in text or re.fullmatch(r"b(['\"]).*\1", text, re.DOTALL):
        return True
    for encoding in () if text.isascii() else ("cp1252", "latin-1"):
        with contextlib.suppress(UnicodeError):
            return bool(text.encode(encoding).decode("utf-8"))
    return False


def _placeholders(labels: Collection[str]) -> set[str]:
    """Returns the labels that data sets write if the label is unknown.

    In SNLI, this is "-" or, with the classes 0, 1 and 2, -1. But labels may
    also be + and -, or -1, 0 and 1.
    """
    names = {"?"} if "+" in labels else {"?", "-"}
    numbers = {to_number(label): label for label in labels}
    if {-1, 0, 1, 2} <= numbers.keys() and -2 not in numbers:
        names.add(numbers[-1])
    return names.intersection(labels)


def _names(label: str | Sequence[str]) -> Sequence[str]:
    """Returns the names in a label: one, or those in a multi-label."""
    return [label] if isinstance(label, str) else label


def _in_order(labels: Collection[str]) -> tuple[str, ...]:
    """Returns sorted labels; if all are numbers, by their values."""
    numbers = {label: to_number(label) for label in labels}
    if None in numbers.values():
        return tuple(sorted(labels))
    return tuple(sorted(labels, key=lambda label: (numbers[label], label)))


@dataclasses.dataclass(frozen=True)
class OwnTexts(OwnData):
    """Texts or pairs of texts."""

    labels: tuple[str, ...] | None  # () in regression. None: any label.
    training: Sequence[Any] = ()
    held_out: Sequence[Any] = ()
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
            labels = self._labels_of_vectors(rows)
        data = dataclasses.replace(self, labels=labels)
        examples = data.examples(rows, "train")
        if self.labels is None:
            found = _in_order({n for e in examples for n in _names(e.label)})
            self._require_several(found)
            labels = labels or found
        self._check_texts(examples, labels or ())
        if self.options.group_column:
            self._require_groups(examples)
        held_out = choose_held_out(
            self.options,
            [self.held_out_together(example) for example in examples],
            [example.label for example in examples],
            self._label_column(),
        )
        training = [e for i, e in enumerate(examples) if i not in held_out]
        has_weights = training and self.options.weight_column
        if has_weights and not any(np.float32(e.weight) for e in training):
            raise InputError(
                f"column {self.options.weight_column!r} of "
                f"{self.path('train')!r} must have a weight above 0. Received: "
                "only 0 in the training examples."
            )
        return dataclasses.replace(
            self,
            labels=labels,
            training=shuffle_examples(training),
            held_out=[examples[i] for i in sorted(held_out)],
            held_out_rows=[rows[i] for i in sorted(held_out)],
            first_rows=(),
        )

    def _require_groups(self, examples: Sequence[TextExample]) -> None:
        sizes = collections.Counter(example.group for example in examples)
        where = (
            f"column {self.options.group_column!r} of {self.path('train')!r}"
        )
        if len(sizes) == len(examples):
            raise InputError(
                f"{where} must have the same value in all rows of a query. "
                "Received: a different value in each row. Check --group_column."
            )
        num_single = [*sizes.values()].count(1)
        if num_single > len(sizes) / 2:
            logging.warning(
                f"{where}: {num_single} of {len(sizes)} queries have a single "
                "row, so there is nothing to rank. Check --group_column"
            )

    def held_out_together(self, example: Any) -> Any:
        """Returns what is equal for examples that are held out together."""
        return example.group or tuple(map(key_of, example.texts))

    def _warn_of_odd_cells(
        self, examples: Sequence[TextExample], labels: Sequence[str]
    ) -> None:
        """Warns of missing texts and labels, and of damaged texts."""
        missing = "are empty, or look like missing values (NaN, NA, None, #REF!"
        odd_texts = f"texts {missing})"
        odd_labels = f"labels {missing}, -, ? or -1)"
        damaged = "texts have a wrong encoding (U+FFFD, Ã© for é, or b'...')"
        placeholders = {*filter(_is_missing, labels), *_placeholders(labels)}
        places: dict[str, list[str]] = collections.defaultdict(list)
        for example in examples:
            texts = [*filter(None, example.texts)]
            if not texts or any(map(_is_missing, texts)):
                places[odd_texts].append(example.guid)
            if labels and placeholders.intersection(_names(example.label)):
                places[odd_labels].append(example.guid)
            if any(map(_is_damaged, texts)):
                places[damaged].append(example.guid)
        for problem, guids in places.items():
            logging.warning(
                f"{self.path('train')}: {len(guids)} of {len(examples)} "
                f"{problem}: {self._places(guids, 'train')}. Correct or remove "
                "them"
            )

    def _check_texts(
        self, examples: Sequence[TextExample], labels: Sequence[str]
    ) -> None:
        """Warns of odd texts and labels, and of contradicting labels.

        Raises `InputError` if there are more labels than different texts.
        """
        self._warn_of_odd_cells(examples, labels)
        if self.options.task_type != "classification":
            return
        labels_of: dict[Any, set[str]] = collections.defaultdict(set)
        for example in examples:
            # Another warning is about labels that differ only in case.
            labels_of[example.texts].add(example.label.casefold())
        if len(labels) > len(labels_of):
            raise InputError(
                f"{self._label_column()} has {len(labels)} different labels, "
                f"but column {self.options.text_a_column!r} has only "
                f"{len(labels_of)} different texts. Are --text_column and "
                "--label_column swapped?"
            )
        ambiguous = [
            text
            for (text, _), labels_of_text in labels_of.items()
            if len(labels_of_text) > 1 and not _is_missing(text)
        ]
        if ambiguous:
            advice = ""
            if not self.options.text_b_column:
                advice = (
                    "If a second column belongs to the text, add "
                    "--text_b_column. "
                )
            logging.warning(
                f"{self.path('train')}: the same text occurs with different "
                f"labels (number of such texts: {len(ambiguous)}, such as "
                f"{quoted(ambiguous[0])}). Correct the labels. {advice}If a "
                "text can have several labels, use --task_type=multilabel"
            )

    def _warn_of_training_texts(
        self, split: str, examples: Sequence[TextExample]
    ) -> None:
        """Warns if labelled texts of a file are also in the training data.

        A run that does not train has no training texts to compare. It only
        recognizes the training file, by its fingerprint.
        """
        if not self.options.do_train and split == "dev":
            record = self.options.run_directory.record
            trained_on = record.fingerprints.get("training data", [])
            for path in self.paths(split):
                if files.fingerprint(path) in trained_on:
                    logging.warning(
                        f"{path} is the training data, so the metrics "
                        "overestimate the model"
                    )
        training_texts = {(*map(key_of, e.texts[:2]),) for e in self.training}
        repeated = [
            e.guid
            for e in examples
            if (split == "dev" or e.label is not None)
            and (*map(key_of, e.texts[:2]),) in training_texts
        ]
        if repeated:
            logging.warning(
                f"{self.path(split)}: {len(repeated)} of {len(examples)} texts "
                "are also in the training data, so the metrics overestimate "
                f"the model: {self._places(repeated, split)}. Remove these rows"
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
        examples = self.examples(self.rows(split), split)
        if split == "test":
            expected = "numbers"
            if len(self.label_columns) > 1:
                expected = "1 or 0"
            elif self.labels:
                expected = f"the labels {listed(self.labels)}"
            examples = self.check_test_labels(examples, expected)
        self._warn_of_training_texts(split, examples)
        return examples

    def _example_maker(self, split: str) -> Callable[[Row], Any]:
        """Returns a function that makes the example of a row."""
        column_a = self.options.text_a_column
        column_b = self.options.text_b_column

        def make_example(row: Row) -> TextExample:
            return TextExample(
                self.guid(row, split),
                row.text(column_a),
                None if column_b is None else row.text(column_b),
                self.label_if_known(row, split),
                self._weight(row) if split == "train" else None,
                None if split == "unlabeled" else self._group(row),
            )

        return make_example

    def examples(self, rows: Iterable[Row], split: str) -> list[Any]:
        """Returns the examples of all rows; raises one error for all faults."""
        make_example = self._example_maker(split)
        examples, errors = [], {}
        for row in rows:
            try:
                examples.append(make_example(row))
            except InputError as error:
                errors[self.place(row, split)] = str(error)
        if errors:
            message = next(iter(errors.values()))
            if len(errors) > 1:
                message += (
                    f" {len(errors)} of {len(examples) + len(errors)} rows "
                    f"have such errors: {_lines([*errors])}."
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
        return cell.strip() if is_text else row.name(column)

    def held_out_objects(self) -> Iterator[dict[str, Any]]:
        """Yields rows; their labels are in the form that the model knows."""
        for row, example in zip(self.held_out_rows, self.held_out, strict=True):
            cells = {name: row.cells[name] for name in row.columns}
            yield cells | self._label_cells(example.label)

    def _label_cells(self, label: Any) -> dict[str, Any]:
        if len(self.label_columns) == 1:
            return {self.options.label_column: label}
        has = _names(label)
        bits = [int(name in has) for name in self._vector_labels]
        return dict(zip(self.label_columns, bits, strict=True))

    def wrong_rows(
        self, wrong: Iterable[WrongAnswer], probability: str
    ) -> list[Sequence[Any]]:
        options = self.options
        if not self.labels:
            return []
        names = options.text_columns
        id_names = ["file", "line"]
        if options.id_column is not None:
            id_names = [options.id_column]
        header = (*id_names, "label", "prediction", probability, *names)
        rows: list[Sequence[Any]] = [header]
        is_descending = probability == "probability"
        for answer in sorted(
            wrong, key=operator.attrgetter(probability), reverse=is_descending
        ):
            example = answer.example
            ids = [example.guid]
            if options.id_column is None:
                split, _, place = example.guid.partition("-")
                file, _, line = place.rpartition(":")
                ids = [file or self.path(split), line]
            both = (example.label, answer.prediction)
            labels = [",".join(_names(label)) for label in both]
            texts = example.texts[: len(names)]
            share = f"{getattr(answer, probability):.6f}"
            rows.append((*ids, *labels, share, *texts))
        return rows

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
            raise row.error(column, must, names)
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
                f"{every}; ids and probabilities of labels are not supported"
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

    def _labels_of_vectors(self, rows: Sequence[Row]) -> tuple[str, ...] | None:
        """Returns the labels of 0/1 vectors in the training rows, if any."""
        if len(self.label_columns) > 1:
            return self.label_columns
        column = self.options.label_column
        cells = [row.get(column) for row in rows]
        if self.options.task_type == "classification":
            cells = list(filter(label_vectors.numbers_in, cells))
        labels = label_vectors.default_names(label_vectors.size_of(cells))
        for row in rows if labels else ():
            if label_vectors.find(row.get(column), labels) is None:
                must = f"have a 0 or 1 for each of the {len(labels)} labels"
                raise row.error(column, must, row.get(column))
        return labels or None

    def target_scale(self) -> tuple[float, float]:
        """Returns the mean and standard deviation of the training targets."""
        if self.options.do_train:
            numbers = [example.label for example in self.training]
            self._require_several({*numbers})
            mean = statistics.fmean(numbers)
            deviation = statistics.pstdev(numbers)
            # float32 has 7 digits, and the square of the deviation.
            if not max(1e-15, 1e-5 * abs(mean)) < deviation < 1e15:
                raise InputError(
                    f"{self._label_column()} must have numbers with a standard "
                    "deviation between 1e-15 and 1e15 that is at least 1e-5 "
                    f"times their mean. Received: {deviation:.3g}, with a mean "
                    f"of {mean:.9g}. Use another unit, or subtract a constant "
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
            metric: str = options.trained_task.get("best_metric", "")
            return metric
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

    def _require_several(self, labels: Collection[Any]) -> None:
        """Raises `InputError` unless the training labels differ.

        `labels` are the distinct labels. Multi-label tasks may have only one,
        but not 0 or 1 as names.
        """
        is_multilabel = self.options.task_type == "multilabel"
        if is_multilabel and {*labels} <= {"0", "1"}:
            only = listed(sorted(labels)) or "empty cells and zeros"
            raise InputError(
                f"{self._label_column()} must have names of labels, or a 0 or "
                "1 for each label, such as 1,0,1, in every row for the same "
                f"number of labels. Received: only {only}. If 0 and 1 are the "
                "two classes of texts, use --task_type=classification."
            )
        if len(labels) < 2 and not is_multilabel:
            raise InputError(
                "The training data must have at least two different labels. "
                f"Received: only {sorted(labels)} in {self._label_column()}. "
                "Check --label_column."
            )

    def _label_column(self) -> str:
        column, path = self.options.label_column, self.path("train")
        return f"column {column!r} of {path!r}"
