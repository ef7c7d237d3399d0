"""The GLUE benchmark (Wang et al., 2019): one row of `TASKS` per task.

Files are TSV without quoting; columns are counted from 0.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from official_bert import files
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.tasks import documents, tables
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tables import Row
from official_bert.tasks.text import TextExample, TextTask

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")


class Columns(NamedTuple):
    """The columns of a benchmark's TSV file.

    Attributes:
        text_a: Column of text A.
        text_b: Column of text B; None for single texts.
        label: Column of the label, -1 for the last one; None in test data.
        guid: Column of the example's name; None: examples are numbered.
        has_header: Whether the first line names the columns.
    """

    text_a: int
    text_b: int | None = None
    label: int | None = None
    guid: int | None = None
    has_header: bool = True

    @property
    def num_required(self) -> int:
        """The least number of columns of a line."""
        return 1 + max(
            self.text_a, self.text_b or 0, self.label or 0, self.guid or 0
        )

    def rows(
        self, path: str, *, skips_short_rows: bool = False
    ) -> Iterator[Row]:
        """Yields the lines with examples.

        Raises:
            InputError: A line has too few columns, and they are not skipped.
        """
        num_skipped = 0
        for row in tables.read_lines(path, has_header=self.has_header):
            if len(row.cells) >= self.num_required:
                yield row
            elif skips_short_rows:
                num_skipped += 1
            else:
                raise InputError(
                    f"{row.where}: must have at least {self.num_required} "
                    f"columns, separated by tabs. Received: {len(row.cells)}. "
                    "Check that the file belongs to the task of --task_name."
                )
        if num_skipped:
            logging.warning("%s: skipped %d short rows", path, num_skipped)

    def example(
        self, row: Row, labels: Sequence[str], guid: str
    ) -> TextExample:
        """Makes an example of a line; without `labels`, of a regression task.

        Raises:
            InputError: The label is invalid.
        """
        text_a = row.text(str(self.text_a))
        text_b = None if self.text_b is None else row.text(str(self.text_b))
        label: Any = None
        if self.label is not None:
            column = str(self.label % len(row.cells))
            label = row.text(column)
            if labels:
                row.require_label(column, label, labels)
            else:
                label = row.number(column)
        return TextExample(guid, text_a, text_b, label)


_PAIRS = Columns(1, 2, label=3)
_TEST_PAIRS = Columns(1, 2, guid=0)
_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}


class GlueTask(NamedTuple):
    """One task.

    Attributes:
        labels: In the order of their ids; empty in regression.
        train: Columns of train.tsv and the development sets.
        test: Columns of the test sets. `guid` is the benchmark's own id. CoLA's
            and MRPC's test examples are numbered, as in the original
            implementation.
        submission: {test split: the file to submit, without `.tsv`}.
        metric: A metric of `text.TextTask`.
        files: {split: file}. A split called like dev_mismatched, in addition to
            dev, is optional.
        skips_short_rows: Whether rows with too few columns, of which the
            published files have some, are skipped and counted.
    """

    labels: Sequence[str]
    train: Columns
    test: Columns
    submission: Mapping[str, str]
    metric: str = "accuracy"
    files: Mapping[str, str] = _FILES
    skips_short_rows: bool = False


TASKS = {
    "cola": GlueTask(
        _BINARY,
        Columns(3, label=1, has_header=False),
        Columns(1),
        {"test": "CoLA"},
        metric="matthews",
    ),
    "sst2": GlueTask(
        _BINARY, Columns(0, label=1), Columns(1, guid=0), {"test": "SST-2"}
    ),
    "mrpc": GlueTask(
        _BINARY,
        Columns(3, 4, label=0),
        Columns(3, 4),
        {"test": "MRPC"},
        metric="accuracy_and_f1",
    ),
    "stsb": GlueTask(
        (), Columns(7, 8, label=9), Columns(7, 8, guid=0), {"test": "STS-B"}
    ),
    "qqp": GlueTask(
        _BINARY,
        Columns(3, 4, label=5),
        _TEST_PAIRS,
        {"test": "QQP"},
        metric="accuracy_and_f1",
        skips_short_rows=True,
    ),
    "mnli": GlueTask(
        INFERENCE,
        Columns(8, 9, label=-1, guid=0),
        Columns(8, 9, guid=0),
        {"test": "MNLI-m", "test_mismatched": "MNLI-mm"},
        files={
            "train": "train.tsv",
            "dev": "dev_matched.tsv",
            "dev_mismatched": "dev_mismatched.tsv",
            "test": "test_matched.tsv",
            "test_mismatched": "test_mismatched.tsv",
        },
    ),
    "qnli": GlueTask(_ENTAILMENT, _PAIRS, _TEST_PAIRS, {"test": "QNLI"}),
    "rte": GlueTask(_ENTAILMENT, _PAIRS, _TEST_PAIRS, {"test": "RTE"}),
    "wnli": GlueTask(_BINARY, _PAIRS, _TEST_PAIRS, {"test": "WNLI"}),
    "ax": GlueTask(
        INFERENCE,
        _PAIRS,
        _TEST_PAIRS,
        {"test": "AX"},
        files={"test": "diagnostic.tsv"},
    ),
}


def make(options: RunClassifier) -> TextTask:
    """Returns the task of `--task_name`, ignoring case and hyphens."""
    name = options.task_name.lower().replace("-", "")
    long_documents = LongDocuments.from_options(options)
    return make_task(TASKS[name], options.data_dir, long_documents)


def make_task(
    task: GlueTask,
    data_dir: str,
    long_documents: LongDocuments = documents.TRUNCATE_TAIL,
) -> TextTask:
    """Returns a GLUE task on the files of a directory."""
    return TextTask(
        task_type="classification" if task.labels else "regression",
        labels=tuple(task.labels),
        metric=task.metric,
        is_pair=task.test.text_b is not None,
        data=GlueData(task, data_dir),
        long_documents=long_documents,
    )


@dataclasses.dataclass(frozen=True)
class GlueData:
    """The files of a task: a `text.TextData`."""

    task: GlueTask
    data_dir: str

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `mode`, and its mismatched set if there is one."""
        mismatched = f"{mode}_mismatched"
        if mismatched in self.task.files and files.exists(
            self._path(mismatched)
        ):
            return [mode, mismatched]
        return [mode]

    def _path(self, split: str) -> str:
        return os.path.join(self.data_dir, self.task.files[split])

    def read(self, split: str) -> list[TextExample]:
        """Reads a file."""
        if split not in self.task.files:
            raise InputError(
                f"This task has no {split} data, only a test set for a model "
                "trained on MNLI. Use --do_predict alone."
            )
        path = self._path(split)
        is_test = split.startswith("test")
        columns = self.task.test if is_test else self.task.train
        files.require(path, f"The {split} data")
        examples = []
        skips_short_rows = self.task.skips_short_rows
        for row in columns.rows(path, skips_short_rows=skips_short_rows):
            name: Any = row.line - 1
            if columns.guid is not None:
                name = row.text(str(columns.guid))
            guid = f"{split}-{name}"
            examples.append(columns.example(row, self.task.labels, guid))
        if not examples:
            raise tables.no_examples(path)
        return examples

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns the file to submit; scores are clipped to 0 to 5."""
        if not self.task.labels:
            predictions = [
                f"{min(max(score, 0.0), 5.0):.3f}" for score in predictions
            ]
        ids: Iterable[Any] = range(len(predictions))
        if self.task.test.guid is not None:
            ids = [example.guid.partition("-")[2] for example in examples]
        name = self.task.submission[split]
        text = tables.predictions_table(ids, predictions, "index")
        return f"{name}.tsv", text
