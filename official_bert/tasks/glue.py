"""The GLUE benchmark (Wang et al., 2019), and how each task's files look.

A task is one row of `TASKS`. Columns are counted from 0 and separated by tabs;
quotes are ordinary characters. A byte-order mark is dropped.
"""

import dataclasses
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from absl import logging

from official_bert import files
from official_bert.errors import InputError
from official_bert.tasks import tables
from official_bert.tasks.columns import Columns, predictions_table
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.text import TextTask
from official_bert.tasks.text_data import TextExample

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")


class GlueTask(NamedTuple):
    """One task.

    Attributes:
        labels: In the order of their ids; none for a number.
        train: Columns of train.tsv and the development set; None where the task
            has none.
        test: Columns of the test set. Its `guid` is what the benchmark calls an
            example; CoLA's and MRPC's are named after their lines, as in 2018.
        submission: The file that the benchmark wants, without `.tsv`.
        metric: As `text.TextTask` has it.
        dev_files: Of every development set.
        test_files: Of every test set.
        skips_short_rows: Whether rows with too few columns are left out, and
            counted, because the published files have some.
    """

    labels: Sequence[str]
    train: Columns | None
    test: Columns
    submission: Sequence[str]
    metric: str = "accuracy"
    dev_files: Sequence[str] = ("dev.tsv",)
    test_files: Sequence[str] = ("test.tsv",)
    skips_short_rows: bool = False


TASKS = {
    "cola": GlueTask(
        _BINARY,
        Columns(3, label=1, has_header=False),
        Columns(1),
        ("CoLA",),
        metric="matthews",
    ),
    "sst2": GlueTask(
        _BINARY, Columns(0, label=1), Columns(1, guid=0), ("SST-2",)
    ),
    "mrpc": GlueTask(
        _BINARY,
        Columns(3, 4, label=0),
        Columns(3, 4),
        ("MRPC",),
        metric="accuracy_and_f1",
    ),
    "stsb": GlueTask(
        (), Columns(7, 8, label=9), Columns(7, 8, guid=0), ("STS-B",)
    ),
    "qqp": GlueTask(
        _BINARY,
        Columns(3, 4, label=5),
        Columns(1, 2, guid=0),
        ("QQP",),
        metric="accuracy_and_f1",
        skips_short_rows=True,
    ),
    "mnli": GlueTask(
        INFERENCE,
        Columns(8, 9, label=-1, guid=0),
        Columns(8, 9, guid=0),
        ("MNLI-m", "MNLI-mm"),
        dev_files=("dev_matched.tsv", "dev_mismatched.tsv"),
        test_files=("test_matched.tsv", "test_mismatched.tsv"),
    ),
    "qnli": GlueTask(
        _ENTAILMENT, Columns(1, 2, label=3), Columns(1, 2, guid=0), ("QNLI",)
    ),
    "rte": GlueTask(
        _ENTAILMENT, Columns(1, 2, label=3), Columns(1, 2, guid=0), ("RTE",)
    ),
    "wnli": GlueTask(
        _BINARY, Columns(1, 2, label=3), Columns(1, 2, guid=0), ("WNLI",)
    ),
    "ax": GlueTask(
        INFERENCE,
        None,
        Columns(1, 2, guid=0),
        ("AX",),
        test_files=("diagnostic.tsv",),
    ),
}


def find(name: str) -> GlueTask | None:
    """Returns the task called `name`, in any case, with or without hyphen."""
    return TASKS.get(name.lower().replace("-", ""))


def make(
    task: GlueTask, data_dir: str, long_documents: LongDocuments
) -> TextTask:
    """Returns the task on the files of a folder."""
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
    """The files of a task: a `text_data.TextData`."""

    task: GlueTask
    data_dir: str

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `train`, `dev` or `test`, and what is there beside it."""
        if mode == "train":
            return ["train"]
        # Whoever has only the matched part of MNLI has it all, as in 2018.
        return [
            split
            for number, split in enumerate(self._names(mode))
            if number == 0 or files.exists(self._path(split))
        ]

    def _names(self, mode: str) -> Sequence[str]:
        named = self.task.dev_files if mode == "dev" else self.task.test_files
        return [mode, f"{mode}_mismatched"][: len(named)]

    def _path(self, split: str) -> str:
        mode = split.partition("_")[0]
        names: dict[str, Sequence[str]] = {
            "train": ("train.tsv",),
            "dev": self.task.dev_files,
            "test": self.task.test_files,
        }
        return os.path.join(self.data_dir, names[mode][_part(split)])

    def read(self, split: str) -> list[TextExample]:
        """Reads a file, of a layout that has been the same since 2018."""
        path = self._path(split)
        columns = self.task.train
        if split.startswith("test"):
            columns = self.task.test
        if columns is None:
            raise InputError(
                f"This task can only predict. Received: a run that needs "
                f"{path!r}. Give --do_predict alone, and a model for MNLI."
            )
        files.require(path, f"The {split} data")
        examples: list[TextExample] = []
        num_skipped = 0
        for number, cells in enumerate(tables.tab_separated(path)):
            if number == 0 and columns.has_header:
                continue
            if len(cells) < columns.least and self.task.skips_short_rows:
                num_skipped += 1
                continue
            where = f"{path}:{number + 1}"
            columns.require(cells, where)
            name = number if columns.guid is None else cells[columns.guid]
            examples.append(
                columns.example(
                    cells, self.task.labels, where, f"{split}-{name}"
                )
            )
        if num_skipped:
            logging.warning("%s: left out %d short rows", path, num_skipped)
        _require_some(examples, path)
        return examples

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns the file to hand in, whose scores go from 0 to 5."""
        if not self.task.labels:
            predictions = [
                f"{min(max(score, 0.0), 5.0):.3f}" for score in predictions
            ]
        ids: Iterable[Any] = range(len(predictions))
        if self.task.test.guid is not None:
            ids = [example.guid.partition("-")[2] for example in examples]
        name = self.task.submission[_part(split)]
        return f"{name}.tsv", predictions_table(ids, predictions)


def _part(split: str) -> int:
    """Returns 1 for MNLI's mismatched part, and else 0."""
    return 1 if split.endswith("_mismatched") else 0


def _require_some(examples: Sequence[TextExample], path: str) -> None:
    if not examples:
        raise InputError(
            f"{path}: must hold examples. Received: none. Check the file."
        )
