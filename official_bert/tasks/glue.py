"""The GLUE benchmark (Wang et al., 2019): one row of `TASKS` per task.

Files are TSV without quoting; columns are counted from 0.
"""

import dataclasses
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from official_bert.errors import InputError, quoted
from official_bert.io import files, tables
from official_bert.io.rows import Row
from official_bert.options import RunClassifier
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.data_set import DataSet, predictions_table
from official_bert.tasks.headers import looks_like_header
from official_bert.tasks.regression import RegressionTask
from official_bert.tasks.text import TextExample, TextTask

_BINARY = ("0", "1")
_ENTAILMENT = ("entailment", "not_entailment")
INFERENCE = ("contradiction", "entailment", "neutral")

_ADVICE = (
    "Check that the file belongs to the task of --task_name. For your own "
    "data, use --train_file."
)

# Names of columns without texts. In copies of the data sets, such as those on
# the Hugging Face Hub, columns have another order.
_WITHOUT_TEXTS = ("id", "idx", "index", "label")

# A text that pandas put in quotes, because it has quotes.
_QUOTED = re.compile(r'"[^"]*(""[^"]*)+"')


class Layout(NamedTuple):
    """The numbers of the columns of a benchmark's TSV file.

    Some published files have lines with too few columns, which
    `skips_short_rows` skips.
    """

    text_a: int
    text_b: int | None = None  # None for single texts.
    label: int | None = None  # -1: the last column. None in test data.
    guid: int | None = None  # The example's name; None: its number.
    has_header: bool = True  # Whether the first line names the columns.
    skips_short_rows: bool = False


_PAIRS = Layout(1, 2, label=3)
_TEST_PAIRS = Layout(1, 2, guid=0)
_FILES = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}


class GlueTask(NamedTuple):
    """A row of `TASKS`: one GLUE task.

    `test.guid` is the column of the benchmark's own ids. CoLA and MRPC have
    none: their test examples are numbered, as in the original implementation.
    """

    labels: Sequence[str]  # Sorted by their ids; empty in regression.
    train: Layout  # Layout of training and development sets.
    test: Layout  # Layout of test sets.
    submission: str  # The name of the file to submit, without `.tsv`.
    metric: str = "accuracy"  # A key of `classification.METRICS`.
    files: Mapping[str, str] = _FILES  # Mismatched sets may be missing.


TASKS = {
    "cola": GlueTask(
        _BINARY,
        Layout(3, label=1, has_header=False),
        Layout(1),
        "CoLA",
        metric="matthews",
    ),
    "sst2": GlueTask(_BINARY, Layout(0, label=1), Layout(1, guid=0), "SST-2"),
    "mrpc": GlueTask(
        _BINARY,
        Layout(3, 4, label=0),
        Layout(3, 4),
        "MRPC",
        metric="accuracy_and_f1",
    ),
    "stsb": GlueTask((), Layout(7, 8, label=9), Layout(7, 8, guid=0), "STS-B"),
    "qqp": GlueTask(
        _BINARY,
        Layout(3, 4, label=5, skips_short_rows=True),
        _TEST_PAIRS._replace(skips_short_rows=True),
        "QQP",
        metric="accuracy_and_f1",
    ),
    "mnli": GlueTask(
        INFERENCE,
        Layout(8, 9, label=-1, guid=0),
        Layout(8, 9, guid=0),
        "MNLI-m",
        files={
            "train": "train.tsv",
            "dev": "dev_matched.tsv",
            "dev_mismatched": "dev_mismatched.tsv",
            "test": "test_matched.tsv",
            "test_mismatched": "test_mismatched.tsv",
        },
    ),
    "qnli": GlueTask(_ENTAILMENT, _PAIRS, _TEST_PAIRS, "QNLI"),
    "rte": GlueTask(_ENTAILMENT, _PAIRS, _TEST_PAIRS, "RTE"),
    "wnli": GlueTask(_BINARY, _PAIRS, _TEST_PAIRS, "WNLI"),
    "ax": GlueTask(
        INFERENCE, _PAIRS, _TEST_PAIRS, "AX", files={"test": "diagnostic.tsv"}
    ),
}


def make(options: RunClassifier) -> TextTask:
    """Returns the task of `--task_name`."""
    return task_on(GlueData(TASKS[options.resolved_task], options.data_dir))


def task_on(data: "GlueData") -> TextTask:
    """Returns the task of a GLUE data set, or of XNLI."""
    row = data.row
    task = ClassificationTask if row.labels else RegressionTask
    return task(
        labels=tuple(row.labels),
        metric=row.metric,
        is_pair=row.test.text_b is not None,
        data=data,
    )


def _check_header(path: str, columns: Layout) -> None:
    """Warns if the first line, which is skipped, looks like data.

    Raises `InputError` if it names other columns where the texts should be.
    """
    lines = itertools.islice(files.numbered_lines(path), 100)
    first, *others = [text.split("\t") for _, text in lines] or [[]]
    if not looks_like_header(first, others):
        logging.warning(
            f"{path}:1: this line is skipped, although it looks like data: "
            f"{quoted(first)}. Files of this task begin with a header, which "
            "the original implementation skips. Add a header"
        )
    for column, name in enumerate(first):
        is_text = column in (columns.text_a, columns.text_b)
        if is_text and name.lower() in _WITHOUT_TEXTS:
            raise InputError(
                f"{path}:1: column {column}, counted from 0, must have texts. "
                f"Received: {name!r}. {_ADVICE}"
            )


@dataclasses.dataclass(frozen=True)
class GlueData(DataSet):
    """The files of a GLUE task."""

    row: GlueTask
    data_dir: str

    def path(self, split: str) -> str:
        if split not in self.row.files:
            raise InputError(
                f"This task has no {split} data, only a test set for a model "
                "trained on MNLI. Use --do_predict alone."
            )
        return os.path.join(self.data_dir, self.row.files[split])

    def splits(self, mode: str) -> Sequence[str]:
        """Returns `mode`, and its mismatched set if there is one."""
        mismatched = f"{mode}_mismatched"
        if mismatched in self.row.files and files.exists(self.path(mismatched)):
            return [mode, mismatched]
        return [mode]

    def columns(self, split: str) -> Layout:
        return self.row.test if split.startswith("test") else self.row.train

    def rows(self, split: str) -> Iterator[Row]:
        """Yields the rows that contain examples."""
        path, columns = self.path(split), self.columns(split)
        used = (columns.text_a, columns.text_b, columns.label, columns.guid)
        num_required = 1 + max(column or 0 for column in used)
        num_skipped = 0
        files.require(path, "The table")
        if columns.has_header:
            _check_header(path, columns)
        for line, text in files.numbered_lines(path):
            if columns.has_header and line == 1:
                continue
            cells = tables.by_number(text.split("\t"))
            if len(cells) >= num_required:
                yield Row(path, line, cells, [*cells])
            elif columns.skips_short_rows:
                num_skipped += 1
            else:
                raise InputError(
                    f"{path}:{line}: must have at least {num_required} "
                    f"columns, separated by tabs. Received: {len(cells)}. "
                    f"{_ADVICE}"
                )
        if num_skipped:
            logging.warning(
                f"{path}: skipped {num_skipped} rows with too few columns"
            )

    def read(self, split: str) -> list[TextExample]:
        examples = [self._example(row, split) for row in self.rows(split)]
        if not examples:
            raise tables.no_examples(self.path(split))
        texts = itertools.chain.from_iterable(e.texts for e in examples)
        if num_quoted := len([*filter(_QUOTED.fullmatch, texts)]):
            logging.warning(
                f"{self.path(split)}: {num_quoted} texts are in quotes, with "
                "quotes inside doubled, as pandas writes them. In the files of "
                "this task, all quotes are text. In pandas, use "
                "quoting=csv.QUOTE_NONE"
            )
        return examples

    def _example(self, row: Row, split: str) -> TextExample:
        text_a, text_b, label_column, guid, *_ = self.columns(split)
        name = row.line - 1 if guid is None else row.text(str(guid))
        label: Any = None
        if label_column is not None:
            column = str(label_column % len(row.cells))
            if self.row.labels:
                label = row.text(column)
                try:
                    row.require_label(column, label, self.row.labels)
                except InputError as error:
                    raise InputError(f"{error} {_ADVICE}") from error
            else:
                label = row.number(column)
        return TextExample(
            f"{split}-{name}",
            row.text(str(text_a)),
            None if text_b is None else row.text(str(text_b)),
            label,
        )

    def predictions_file(
        self, split: str, examples: Sequence[Any], predictions: Sequence[Any]
    ) -> dict[str, str]:
        """Returns the file to submit. Scores of STS-B are clipped to 0 to 5."""
        if not self.row.labels:
            predictions = [
                f"{min(max(score, 0.0), 5.0):.3f}" for score in predictions
            ]
        ids: Iterable[Any] = range(len(predictions))
        if self.row.test.guid is not None:
            ids = [example.guid.partition("-")[2] for example in examples]
        name = self.row.submission
        if split == "test_mismatched":
            name = "MNLI-mm"
        return {f"{name}.tsv": predictions_table(ids, predictions, "index")}
