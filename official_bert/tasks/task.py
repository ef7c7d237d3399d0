"""What a task is: the contract between data, model and the commands.

A task reads examples, makes rows of features of them, says which model reads
the rows and what its loss is, and makes answers of the logits. Four classes do
so, one for each kind: `text.TextTask`, `choice.ChoiceTask`,
`tagging.TaggingTask`, and `squad.task.SquadTask`. Which data they read and what
is measured is said by rows, as in `glue.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from official_bert.config import BertConfig
from official_bert.inputs.padding import Row
from official_bert.inputs.schemas import Schema
from official_bert.tokenization import BatchTokenizer


class FeatureRow(NamedTuple):
    """One row that the model reads.

    Attributes:
        example: The number of its example among those featurized together. A
            long one has several rows, one after the other.
        row: {feature: values}, sequences not padded.
        made_of: What the task needs again to make an answer.
    """

    example: int
    row: Row
    made_of: Any = None


class Output(NamedTuple):
    """What the model says of one row.

    Attributes:
        logits: float32 array without the batch; along a sequence it may be
            longer than the row.
        loss: The sum of the row's losses.
        weight: How many losses that is the sum of.
    """

    logits: np.ndarray
    loss: float
    weight: float


class Task(Protocol):
    """A task that a model can be fine-tuned for."""

    @property
    def main_metric(self) -> str:
        """Which of `metrics` says which model is the better; higher is."""

    # Whether an epoch sees all rows, or only as many as there are examples, as
    # the 2018 release does in SQuAD.
    epoch_has_all_rows: ClassVar[bool]

    @property
    def pad_to(self) -> str:
        """How rows are padded to be predicted, max or bucket: see `padding`.

        bucket wherever padding changes no answer.
        """

    def splits(self, mode: str) -> Sequence[str]:
        """Returns the parts of the data: most tasks have one for each mode.

        Args:
            mode: train, dev or test.
        """

    def examples(self, split: str) -> Sequence[Any]:
        """Reads one part of the data.

        Raises:
            InputError: The files are missing or not what they should be.
        """

    def schema(self, max_seq_length: int, *, is_training: bool) -> Schema:
        """Returns what a row holds."""

    def featurize(
        self,
        examples: Iterable[Any],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
        *,
        is_training: bool,
    ) -> Iterator[FeatureRow]:
        """Yields the rows of examples, in their order."""

    def build_model(self, config: BertConfig, bert: Any = None) -> Any:
        """Returns a `modeling.finetuning_models` model: BERT and a head.

        Args:
            config: Of BERT.
            bert: What is called like `Bert`, in its place.
        """

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns the float32 losses of a batch: [B], or [B, S] per piece."""

    def weights(self, batch: dict[str, Any]) -> Any:
        """Returns what each of the losses counts, 0 or 1."""

    def answers(
        self,
        examples: Sequence[Any],
        rows: Sequence[FeatureRow],
        outputs: Sequence[Output],
    ) -> list[Any]:
        """Makes one answer for each example.

        Args:
            examples: What was featurized.
            rows: What they became.
            outputs: One for each row.
        """

    def metrics(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, Any]:
        """Compares answers with what the examples say, if they do.

        Returns:
            {name: number, or what the numbers are of}, ready for JSON; empty
            where the right answers are not known.
        """

    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[Any],
        answers: Sequence[Any],
    ) -> None:
        """Writes the files that the 2018 release, or the benchmark, has."""

    def to_json(self) -> dict[str, Any]:
        """Returns what is needed to make the task again without its data."""

    def parse(self, given: Any, where: str) -> Any:
        """Makes an example of one JSON value, to predict.

        Args:
            given: A text, a pair of texts, or an object.
            where: What to begin an error with.
        """

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns an answer as people read it."""


def of_examples(
    rows: Sequence[FeatureRow], outputs: Sequence[Output], num_examples: int
) -> list[list[Output]]:
    """Returns the outputs of each example's rows."""
    found: list[list[Output]] = [[] for _ in range(num_examples)]
    for row, output in zip(rows, outputs, strict=True):
        found[row.example].append(output)
    return found
