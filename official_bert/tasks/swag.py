"""SWAG (Zellers et al., 2018): which ending goes on.

`train.csv`, `val.csv` and `test.csv` have a header and the columns sent1, the
context; sent2, the beginning of the sentence to be completed; ending0 to
ending3; label, but for the test; and others. A pair is sent1, and sent2 with an
ending.
"""

import dataclasses
import os

from official_bert.tasks import tables
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.choice_data import ChoiceExample, read_label
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
            None
            if split == "test"
            else read_label(row, "label", len(_ENDINGS)),
        )
