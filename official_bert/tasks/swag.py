"""SWAG (Zellers et al., 2018), and multiple choice of a user's own.

SWAG's `train.csv`, `val.csv` and `test.csv` have a header and the columns
sent1, the context; sent2, the beginning of the sentence to be completed;
ending0 to ending3; label, but for the test; and others. A pair is sent1, and
sent2 with an ending.

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
)
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tables import Row

_ENDINGS = tuple(f"ending{number}" for number in range(4))


def make(data_dir: str, long_documents: LongDocuments) -> ChoiceTask:
    """Returns SWAG on the files of a folder."""
    return ChoiceTask(
        num_choices=len(_ENDINGS),
        data=SwagData(data_dir),
        long_documents=long_documents,
    )


def make_own(
    options: RunClassifier, long_documents: LongDocuments
) -> ChoiceTask:
    """Returns the task that the first example shows."""
    used = {
        "train": options.do_train,
        "dev": options.do_eval,
        "test": options.do_predict,
    }
    first = next(split for split, is_used in used.items() if is_used)
    row = next(_own_rows(options, first))
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
class SwagData:
    """SWAG's files: a `choice_data.ChoiceData`."""

    data_dir: str

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file."""
        name = "val" if split == "dev" else split
        rows = tables.read(os.path.join(self.data_dir, f"{name}.csv"), "csv")
        return [self._example(row, split) for row in rows]

    def _example(self, row: Row, split: str) -> ChoiceExample:
        beginning = row.text("sent2")
        return ChoiceExample(
            f"{split}-{row.line}",
            row.text("sent1"),
            [f"{beginning} {row.text(ending)}".strip() for ending in _ENDINGS],
            None if split == "test" else _label(row, "label", len(_ENDINGS)),
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
        rows = _own_rows(self.options, split)
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
            label = _label(row, options.label_column, self.num_choices)
        except InputError:
            if split != "test":
                raise
            label = None
        return found._replace(label=label)


def _own_rows(options: RunClassifier, split: str) -> Iterator[Row]:
    path = os.path.join(options.data_dir, f"{split}.jsonl")
    return tables.read(path, "jsonl")


def _label(row: Row, column: str, num_choices: int) -> int:
    number = row.number(column)
    if number not in range(num_choices):
        raise row.fault(
            column, f"be a choice's number, 0 to {num_choices - 1}", number
        )
    return int(number)
