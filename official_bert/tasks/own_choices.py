"""Multiple choice of a user's own.

`--task_name=choices` reads `train.jsonl`, `dev.jsonl` and `test.jsonl`, with
as many choices as you like, but the same number in all::

    {"context": "It rains.", "question": "What does she do?",
     "choices": ["She takes an umbrella.", "She swims."], "label": 0}

`question` may be missing, `label` in test data; an `id` names the example.
Flags say where columns have other names, as in HellaSwag:
`--context_column=ctx --choices_column=endings`.
"""

import dataclasses
import os
from collections.abc import Iterator

from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import tables
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.choice_data import (
    COLUMNS,
    ChoiceColumns,
    ChoiceExample,
    make_example,
    read_label,
)
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tables import Row


def make(options: RunClassifier, long_documents: LongDocuments) -> ChoiceTask:
    """Returns the task that the first example shows."""
    used = {
        "train": options.do_train,
        "dev": options.do_eval,
        "test": options.do_predict,
    }
    first = next(split for split, is_used in used.items() if is_used)
    row = next(_rows(options, first))
    column = options.choices_column
    choices = row.get(column)
    if not isinstance(choices, list) or len(choices) < 2:
        raise row.fault(column, "be a list of two texts or more", choices)
    return ChoiceTask(
        num_choices=len(choices),
        data=OwnChoices(options, _columns(options), len(choices)),
        long_documents=long_documents,
        columns=_columns(options),
    )


def _columns(options: RunClassifier) -> ChoiceColumns:
    return ChoiceColumns(
        options.context_column,
        options.choices_column,
        options.question_column or COLUMNS.question,
    )


@dataclasses.dataclass(frozen=True)
class OwnChoices:
    """A user's files: a `choice_data.ChoiceData`.

    Attributes:
        options: Which folder, and other columns.
        columns: Of the texts.
        num_choices: C: how many every example has.
    """

    options: RunClassifier
    columns: ChoiceColumns
    num_choices: int

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file."""
        rows = _rows(self.options, split)
        return [self._example(row, split) for row in rows]

    def _example(self, row: Row, split: str) -> ChoiceExample:
        options = self.options
        # What is called `question` may be missing, if no flag says so.
        for column in (*self.columns[:2], options.question_column):
            if column is not None:
                row.get(column)
        guid = f"{split}-{row.line}"
        if options.id_column is not None or "id" in row.cells:
            guid = row.name(options.id_column or "id")
        found = make_example(
            dict(row.cells), guid, row.where, self.num_choices, self.columns
        )
        try:
            label = read_label(row, options.label_column, self.num_choices)
        except InputError:
            if split != "test":
                raise
            label = None
        return found._replace(label=label)


def _rows(options: RunClassifier, split: str) -> Iterator[Row]:
    path = os.path.join(options.data_dir, f"{split}.jsonl")
    return tables.read(path, "jsonl")
