"""SWAG (Zellers et al., 2018): choosing the ending of a sentence.

`train.csv`, `val.csv` and `test.csv` have a header with, among others, the
columns sent1 (the context), sent2 (the beginning of the second sentence),
ending0 to ending3 and, except in the test set, label. Text A is sent1; text B
is sent2 with an ending.
"""

import dataclasses
import os

from official_bert.options import RunClassifier
from official_bert.tasks import tables
from official_bert.tasks.choice import ChoiceExample, ChoiceTask
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tables import Row

_ENDINGS = ("ending0", "ending1", "ending2", "ending3")


def make(options: RunClassifier) -> ChoiceTask:
    """Returns SWAG on the files of a directory."""
    return ChoiceTask(
        num_choices=len(_ENDINGS),
        data=SwagData(options.data_dir),
        long_documents=LongDocuments.from_options(options),
    )


@dataclasses.dataclass(frozen=True)
class SwagData:
    """SWAG's files, for `ChoiceTask.data`."""

    data_dir: str

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads a file."""
        name = "val" if split == "dev" else split
        rows = tables.read(os.path.join(self.data_dir, f"{name}.csv"), "csv")
        return [_example(row, split) for row in rows]


def _example(row: Row, split: str) -> ChoiceExample:
    beginning = row.text("sent2")
    is_test = split == "test"
    return ChoiceExample(
        f"{split}-{row.line}",
        row.text("sent1"),
        [f"{beginning} {row.text(ending)}".strip() for ending in _ENDINGS],
        None if is_test else row.choice("label", len(_ENDINGS)),
    )
