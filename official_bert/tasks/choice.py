"""Multiple choice, such as SWAG (section 4.4; Zellers et al., 2018).

Each choice is paired with the context and scored on its own::

    [CLS] He opens the door . [SEP] He sees a dog . [SEP]    0.9
    [CLS] He opens the door . [SEP] He eats the sky . [SEP]  0.1
"""

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.io import files, tables
from official_bert.io.json_files import Size
from official_bert.io.rows import Row
from official_bert.metrics import classification
from official_bert.options import Predict, RunClassifier
from official_bert.sources.heads import Head
from official_bert.tasks import long_texts, probabilities, task
from official_bert.tasks.columns import CHOICE_NAME
from official_bert.tasks.data_set import DataSet, shuffle_examples
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.own_data import OwnData, read_rows, with_column_names
from official_bert.tasks.predict_inputs import Input, has_rows, table_inputs
from official_bert.tokenization import Tokenizer


class ChoiceExample(NamedTuple):
    """A context and its possible continuations."""

    guid: str  # The example's name, such as "dev-12".
    context: str  # Text A of every pair.
    choices: Sequence[str]
    label: int | None = None  # The index of the correct choice, from 0.
    question: str = ""  # The beginning of every text B.

    @property
    def texts(self) -> list[str]:
        """Text B of each pair: the question, if any, and a choice."""
        return [f"{self.question} {choice}".strip() for choice in self.choices]


Examples = Sequence[ChoiceExample]


class ChoiceColumns(NamedTuple):
    """The columns of a table, or the keys of an example's JSON object."""

    context: str = "context"  # Text A; without it, the question is text A.
    choices: str = "choices"  # The list of choices, or columns: "A,B,C".
    question: str = "question"  # Optional; prepended to every choice.
    has_header: bool = True  # Whether tables begin with a header.
    required: tuple[str, ...] = ()  # Columns that a table must have.

    def example(self, cells: Mapping[str, Any], where: str) -> ChoiceExample:
        """Makes an example without a label from a JSON object or a row.

        `where` is the example's `guid`, and the start of error messages.
        """
        choices, _ = self.find_choices(cells, where)
        context = cells.get(self.context)
        question = cells.get(self.question)
        if question and not context:
            context, question = question, None
        for text in (context, question or "", *choices):
            if not isinstance(text, str):
                received = "none" if text is None else quoted(text)
                if context is None and question is not None:
                    received = "an empty question, without a context"
                raise InputError(
                    f"{where}: choices and {self.context!r} or "
                    f"{self.question!r} must be texts. Received: {received}."
                )
        texts = [choice.strip() for choice in choices]
        return ChoiceExample(where, str(context), texts, None, question or "")

    def find_choices(
        self, cells: Mapping[str, Any], where: str
    ) -> tuple[list[str], Sequence[str]]:
        """Returns the choices of an example, and their labels, if any.

        Choices are a list, an object with the lists `text` and `label` (as in
        the ARC data set), or the cells of several columns, whose labels are the
        letters in their names. Empty cells at the end are not choices.
        """
        value: Any = cells.get(self.choices)
        texts, labels = value, []
        columns = self.choices.split(",")
        if isinstance(value, dict):
            texts, labels = value.get("text"), value.get("label", [])
        elif len(columns) > 1 and all(name in cells for name in columns[:2]):
            value = texts = [cells.get(name) for name in columns]
            filled = [x is not None and bool(str(x).strip()) for x in texts]
            while texts and not filled[len(texts) - 1]:
                texts.pop()
            if not all(filled[: len(texts)]):
                raise InputError(
                    f"{where}: column {columns[filled.index(False)]!r} must "
                    "not be empty, because a column of choices after it is "
                    "not. Fill it in, or move the choices to the left."
                )
            found = [*map(_suffix, columns[: len(texts)])]
            labels = found if all(map(str.isalpha, found)) else []
        is_valid = (
            isinstance(texts, list)
            and isinstance(labels, list)
            and len(texts) >= 2
            and len(labels) in (0, len(texts))
        )
        if not is_valid:
            raise InputError(
                f"{where}: {self.choices!r} must name a list of at least two "
                "texts, an object with the lists `text` and `label`, or at "
                "least two columns, separated by commas. Received: "
                f"{quoted(value)}. The columns are {listed(cells)}. In "
                "training, check --choices_column."
            )
        return texts, labels


def _suffix(column: str) -> str:
    """Returns the letter or the number of a column of choices, or ""."""
    match = CHOICE_NAME.fullmatch(column)
    return (match[2] or match[0]).upper() if match else ""


def _order(column: str) -> tuple[int, str]:
    """Returns the key that sorts columns of choices."""
    suffix = _suffix(column)
    return (int(suffix), "") if suffix.isdecimal() else (0, suffix)


DEFAULT_COLUMNS = ChoiceColumns()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceTask(task.Task):
    """Multiple choice.

    Attributes:
        num_choices: C, the largest number of choices. Examples with fewer
            choices are padded with sequences without tokens, which have no
            score.
        long_documents: What to do with texts that are too long; not `windows`.
        columns: The columns of the user's own data.
    """

    num_choices: Size
    long_documents: LongDocuments = long_texts.TRUNCATE_TAIL
    columns: ChoiceColumns = DEFAULT_COLUMNS

    kind = "choice"
    head_kind = "multiple_choice"
    serving = "choice"
    main_metric = "accuracy"
    baseline_name = "a random choice"
    truncates = True  # `windows` is not supported.

    def __post_init__(self) -> None:
        if self.long_documents.mode == "windows":
            raise InputError(
                "--long_document=windows is not supported in multiple choice. "
                "Use truncate_tail or head_tail."
            )

    @property
    def head(self) -> Head:
        """One output, the score of a choice."""
        return Head(self.head_kind, 1, "choices", self.pooling_head)

    def schema(self, max_seq_length: int) -> Schema:
        """Returns the features of C sequences, and the label's index."""
        return {
            **text_schema(max_seq_length, self.num_choices),
            "label_ids": Feature(1),
            "is_real_example": Feature(1),
        }

    def feature_rows(
        self, examples: Examples, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[task.ExampleFeature]:
        """Yields one feature per example, with a sequence per choice."""
        texts = (text for e in examples for text in (e.context, *e.texts))
        ids = tokenizer.tokenize_lines_to_ids(texts)
        for number, example in enumerate(examples):
            context = next(ids)
            sequences = [
                text_inputs.text_features(*pair, tokenizer.vocab)
                for choice in itertools.islice(ids, len(example.choices))
                for pair in long_texts.cut(
                    context, choice, max_seq_length, self.long_documents
                )
            ]
            row = {k: [s[k] for s in sequences] for k in sequences[0]}
            label = {"label_ids": [example.label or 0], "is_real_example": [1]}
            yield task.ExampleFeature(number, row | label)

    def soft_answers_schema(self, max_seq_length: int) -> Feature:
        return Feature(self.num_choices, is_float=True)

    def as_teacher(self, student: Any) -> "ChoiceTask":
        """Returns the task with the student's number of choices."""
        return dataclasses.replace(self, num_choices=student.num_choices)

    def labels_of(self, example: ChoiceExample) -> Sequence[Any]:
        return () if example.label is None else (example.label,)

    def predictions(self, answers: Any) -> list[Any]:
        return [int(answer.argmax()) for answer in answers]

    def answers(
        self, features: task.RowFeatures, logits: task.Logits
    ) -> list[Any]:
        """Returns probabilities [C], 0 for missing choices."""
        stacked = np.stack(logits)
        for row, scores in zip(features.rows, stacked, strict=True):
            scores[len(row.values["input_mask"]) :] = -np.inf
        return list(probabilities.softmax(stacked))

    def outputs(
        self, features: task.RowFeatures, logits: task.Logits, answers: Any
    ) -> Iterator[task.Output]:
        """Yields the logit of the best choice, which is scored on its own."""
        for number, choice in enumerate(self.predictions(answers)):
            name = features.examples[number].choices[choice]
            terms = [((0,), 1.0)]
            yield task.Output(number, number, name, terms, choice=choice)

    def metrics(self, examples: Examples, answers: Any) -> dict[str, Any]:
        targets = [e.label for e in examples if e.label is not None]
        if len(targets) < len(examples):
            return {}
        return classification.accuracy(targets, np.argmax(answers, axis=1))

    def baseline(self, training: Any, examples: Examples) -> dict[str, Any]:
        """Returns the expected accuracy of random choices."""
        shares = [1 / len(example.choices) for example in examples]
        return {"accuracy": float(np.mean(shares))}

    def read_inputs(self, options: Predict) -> Iterator[Input] | None:
        if not has_rows(options):
            return None
        columns = self.columns
        return table_inputs(
            options, columns.required, trained_header=columns.has_header
        )

    def parse(self, value: Any, where: str) -> ChoiceExample:
        """Makes an example from an object with `columns` or default keys."""
        if not isinstance(value, dict):
            raise InputError(
                f"{where}: must be an object with {self.columns.context} or "
                f"{self.columns.question}, and {self.columns.choices}. "
                f"Received: {quoted(value)}."
            )
        renamed = {
            getattr(self.columns, name): value[name]
            for name in ("context", "choices", "question")
            if name in value
        }
        example = self.columns.example({**renamed, **value}, where)
        if len(example.choices) > self.num_choices:
            raise InputError(
                f"{where}: must have at most {self.num_choices} choices, like "
                f"the training data. Received: {len(example.choices)}."
            )
        return example

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns the best choice, its text and the probabilities of all."""
        [choice] = self.predictions([answer])
        scores = list(map(float, answer[: len(example.choices)]))
        text = example.choices[choice]
        return {"choice": choice, "text": text, "probabilities": scores}


def make(options: RunClassifier) -> ChoiceTask:
    """Returns the task of the user's own questions."""
    splits = options.used_splits
    names = files.list_directory(options.data_dir)
    formats = (
        f for f in reversed(tables.FORMATS) if f"{splits[0]}.{f}" in names
    )
    options = options.replace(task_name=next(formats, "jsonl"))
    is_by_number = options.choices_column.replace(",", "").isdecimal()
    if is_by_number and options.has_header is None:
        raise InputError(
            f"--choices_column={options.choices_column} names columns by "
            "number. Add --nohas_header if the first line is an example, "
            "otherwise --has_header."
        )
    first = next(read_rows(options, splits[0]))
    options = with_column_names(options, first)
    columns = _choice_columns(options, first)
    data = OwnChoices(columns, options=options)
    num_choices = max(
        len(columns.find_choices(row.cells, row.where)[0])
        for split in splits
        if files.exists(data.path(split))
        for row in data.rows(split)
    )
    return ChoiceTask(num_choices=num_choices, data=data, columns=columns)


def _choice_columns(options: RunClassifier, first: Row) -> ChoiceColumns:
    """Returns the columns of the flags; by default, detects choice columns.

    `first` is the first row of the first file in use.
    """
    question = options.question_column or DEFAULT_COLUMNS.question
    columns = ChoiceColumns(
        context=options.context_column,
        choices=options.choices_column,
        question=question,
        has_header=options.reads_header,
    )
    label, guid = options.label_column, options.id_column
    other_columns = (columns.context, question, label, guid)
    candidates = filter(CHOICE_NAME.fullmatch, first.cells)
    names = [name for name in candidates if name not in other_columns]
    names.sort(key=_order)
    is_default = columns.choices == DEFAULT_COLUMNS.choices
    if is_default and columns.choices not in first.cells and len(names) > 1:
        logging.info(f"{first.path}: choices are in columns {listed(names)}")
        columns = columns._replace(choices=",".join(names))
    if columns.context not in first.cells:
        used = (*other_columns, columns.choices, *columns.choices.split(","))
        cells = {x: first.cells[x] for x in first.columns if x not in used}
        unused = [
            name
            for name, cell in cells.items()
            if isinstance(cell, str) and " " in cell.strip()
        ]
        if unused:
            logging.warning(
                f"{first.path}: the texts in {listed(unused)} are not used. If "
                "the question is about one of these, set --context_column"
            )
    if options.own_format(options.used_splits[0]) in tables.OBJECTS:
        return columns  # Objects may have different keys.
    choices = columns.choices.split(",")
    if len(choices) > 1:
        for name in choices:
            # A misspelled name is an error here, or would be a missing choice.
            first.get(name)
    texts = (columns.context, columns.question)
    required = [name for name in texts if name in first.cells] + choices
    return columns._replace(required=tuple(required))


@dataclasses.dataclass(frozen=True)
class OwnChoices(OwnData):
    """Examples, which may have different numbers of choices."""

    columns: ChoiceColumns

    def read(self, split: str) -> list[ChoiceExample]:
        examples = [self._example(row, split) for row in self.rows(split)]
        labels = {example.label for example in examples}
        if split == "train" and len(labels) > 1 and 0 not in labels:
            logging.warning(
                f"{self.path(split)}: column {self.options.label_column!r} "
                "never names the first choice, whose number is 0. If the "
                "numbers in this file begin with 1, subtract 1 from all"
            )
        if split == "train":
            return shuffle_examples(examples)
        if split == "dev":
            return examples
        return self.check_test_labels(examples, "the numbers of choices")

    def _example(self, row: Row, split: str) -> ChoiceExample:
        # `Row.get` raises an error if there is no such column.
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
        texts, labels = self.columns.find_choices(row.cells, row.where)
        return row.choice(self.options.label_column, len(texts), labels)


_ENDINGS = ("ending0", "ending1", "ending2", "ending3")


def make_swag(options: RunClassifier) -> ChoiceTask:
    """Returns the SWAG task: choosing the ending of a sentence."""
    data = SwagData(options.data_dir)
    return ChoiceTask(num_choices=len(_ENDINGS), data=data)


@dataclasses.dataclass(frozen=True)
class SwagData(DataSet):
    """SWAG's files. Text B is the column sent2 and an ending."""

    data_dir: str

    def path(self, split: str) -> str:
        name = "val" if split == "dev" else split
        return os.path.join(self.data_dir, f"{name}.csv")

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file; `test.csv` has no labels."""
        rows = tables.read(self.path(split), "csv")
        examples = [_swag_example(row, split) for row in rows]
        return shuffle_examples(examples) if split == "train" else examples


def _swag_example(row: Row, split: str) -> ChoiceExample:
    context, beginning = row.text("sent1"), row.text("sent2")
    choices = [f"{beginning} {row.text(name)}".strip() for name in _ENDINGS]
    label = None if split == "test" else row.choice("label", len(_ENDINGS))
    return ChoiceExample(f"{split}-{row.line}", context, choices, label)
