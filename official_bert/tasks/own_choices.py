"""The user's own multiple-choice questions; see `own_data`."""

import dataclasses

from absl import logging

from official_bert import detection, files
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tables import Row
from official_bert.tasks.choice import (
    DEFAULT_COLUMNS,
    ChoiceColumns,
    ChoiceExample,
    ChoiceTask,
)
from official_bert.tasks.own_data import OwnData


def make(options: RunClassifier) -> ChoiceTask:
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
