"""The interface of the files of a task: splits of examples."""

import abc
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from official_bert.errors import InputError
from official_bert.io import json_files, tables
from official_bert.io.rows import label_cell
from official_bert.options import FinetuningOptions
from official_bert.runs import file_names
from official_bert.sources import task_file

Examples = Sequence[Any]


class WrongAnswer(NamedTuple):
    """An answer that differs from the label of its example."""

    example: Any
    prediction: Any
    probability: float  # Of the prediction.
    label_probability: float


class DataSet(abc.ABC):
    """The files of a task.

    `variant` distinguishes data sets that one model may be evaluated on, such
    as languages. Each has its own result files. `uses_initializer_range` says
    whether new output weights have the config's `initializer_range`; otherwise,
    they have the standard deviation of the original, 0.02.
    """

    variant: str = ""
    uses_initializer_range = False

    def splits(self, mode: str) -> Sequence[str]:
        """Returns the splits of a mode: `train`, `dev` or `test`.

        MNLI has two development sets and two test sets.
        """
        return [mode]

    @property
    def input_ending(self) -> str:
        """The ending of the training file; "" if only the task has one."""
        return ""

    def results_names(self, name: str) -> list[str]:
        """Returns the names of result files, with and without the variant."""
        return [name, f"{name}_{self.variant}"] if self.variant else [name]

    @abc.abstractmethod
    def path(self, split: str) -> str:
        """Returns the path of a split; raises `InputError` without a file."""

    def paths(self, split: str) -> list[str]:
        """Returns the paths of a split, which may have several files."""
        return [self.path(split)]

    @abc.abstractmethod
    def read(self, split: str) -> Examples:
        """Reads one split; raises `InputError` for a malformed file."""

    def read_all(self, modes: Iterable[str]) -> dict[str, Examples]:
        """Returns {split: its examples} of all splits of some modes."""
        names = (split for mode in modes for split in self.splits(mode))
        return {split: self.read(split) for split in names}

    def read_early(
        self, options: FinetuningOptions
    ) -> dict[str, Examples] | None:
        """Reads the used splits before TensorFlow is imported.

        Returns None if they are invalid and `output_dir` has a model: they may
        belong to another task, which a comparison with that model reports.
        """
        try:
            return self.read_all(options.used_splits)
        except InputError:
            if not task_file.is_in(options.output_dir):
                raise
            return None

    def held_out_files(self) -> dict[str, str]:
        """Returns {name: text} of examples held out of the training data."""
        text = json_files.to_lines(self.held_out_objects())
        return {file_names.HELD_OUT: text} if text else {}

    def held_out_objects(self) -> Iterable[Mapping[str, Any]]:
        """Returns JSON objects of examples held out of the training data."""
        return ()

    def wrong_rows(
        self, wrong: Iterable[WrongAnswer], probability: str
    ) -> list[Sequence[Any]]:
        """Returns a header and wrong answers; [] if the data has no such table.

        The most probable answers are first or, for `label_probability`, the
        least probable labels.
        """
        return []

    def predictions_file(
        self, split: str, examples: Examples, predictions: Sequence[Any]
    ) -> dict[str, str]:
        """Returns {name: text} of a table of predictions."""
        ids = [example.guid for example in examples]
        table = predictions_table(ids, predictions)
        return {file_names.predictions(split, "tsv"): table}


def shuffle_examples(examples: Examples) -> list[Any]:
    """Returns training examples in a random order, the same in every run.

    The shuffle buffer of training, 100 features, is too small for a file that
    is sorted by label. The seed is the one that the original uses for SQuAD.
    """
    order = list(examples)
    random.Random(12345).shuffle(order)
    return order


def predictions_table(
    ids: Iterable[Any], predictions: Iterable[Any], id_column: str = "id"
) -> str:
    """Returns a TSV with a header, and an id and a prediction per line."""
    rows = zip(ids, map(label_cell, predictions), strict=True)
    return tables.to_tsv([(id_column, "prediction"), *rows])
