"""Multiple choice: which of several continuations is right?

See section 4.4 of the paper. Every choice is packed with the context as a pair,
and scored by itself::

    [CLS] He opens the door . [SEP] He sees a dog . [SEP]    0.9
    [CLS] He opens the door . [SEP] He eats the sky . [SEP]  0.1
"""

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.inputs.text_inputs import SpecialIds
from official_bert.metrics import classification
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import ChoiceClassifier
from official_bert.tasks import documents, tables
from official_bert.tasks.documents import Ids, LongDocuments
from official_bert.tasks.tables import Row
from official_bert.tasks.task import (
    FeatureRow,
    Outputs,
    RowFeatures,
    Task,
    saved_field,
)
from official_bert.tokenization import BatchTokenizer

# The number of examples that are tokenized together.
_BLOCK = 256


class ChoiceExample(NamedTuple):
    """A context and its possible continuations.

    Attributes:
        guid: The example's name, such as "dev-12".
        context: Text A of every pair.
        choices: Text B of each pair.
        label: The number of the right choice, from 0; None if unknown.
    """

    guid: str
    context: str
    choices: Sequence[str]
    label: int | None = None


class ChoiceColumns(NamedTuple):
    """The keys of an example's JSON object.

    Attributes:
        context: Text A.
        choices: The list of texts B.
        question: A text prepended to every choice; optional.
    """

    context: str = "context"
    choices: str = "choices"
    question: str = "question"


DEFAULT_COLUMNS = ChoiceColumns()


class ChoiceData(Protocol):
    """A data set of a `ChoiceTask`."""

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads `train`, `dev` or `test`.

        Raises:
            InputError: The file is missing or malformed.
        """


def make_example(
    given: Mapping[str, Any],
    guid: str,
    where: str,
    num_choices: int,
    columns: ChoiceColumns = DEFAULT_COLUMNS,
) -> ChoiceExample:
    """Makes an example without label of a JSON object.

    Args:
        given: The object.
        guid: The example's name.
        where: The prefix of error messages.
        num_choices: The required number of choices.
        columns: The keys.

    Raises:
        InputError: A text is missing, or the number of choices is wrong.
    """
    context, choices = given.get(columns.context), given.get(columns.choices)
    question = given.get(columns.question) or ""
    if not isinstance(choices, list) or len(choices) != num_choices:
        raise InputError(
            f"{where}: {columns.choices!r} must be a list of {num_choices} "
            f"texts, as in all examples. Received: {choices!r}."
        )
    for text in (context, question, *choices):
        if not isinstance(text, str):
            raise InputError(
                f"{where}: {columns.context!r}, {columns.question!r} and "
                f"{columns.choices!r} must be texts. Received: {text!r}."
            )
    texts = [f"{question} {choice}".strip() for choice in choices]
    return ChoiceExample(guid, str(context), texts)


def read_label(row: Row, column: str, num_choices: int) -> int:
    """Returns the number of the right choice, from 0."""
    number = row.number(column)
    if number not in range(num_choices):
        raise row.error(
            column, f"be the number of a choice, 0 to {num_choices - 1}", number
        )
    return int(number)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceTask(Task):
    """Multiple choice.

    Attributes:
        num_choices: C: how many every example has.
        long_documents: How to shorten texts; each choice is one sequence.
        columns: Where JSON objects have what.
    """

    num_choices: int = saved_field(int)
    long_documents: LongDocuments = saved_field(
        LongDocuments, default=documents.TRUNCATE_TAIL
    )
    columns: ChoiceColumns = saved_field(ChoiceColumns, default=DEFAULT_COLUMNS)
    data: ChoiceData | None = None

    kind = "choice"

    def __post_init__(self) -> None:
        """Raises `InputError` for what cannot be."""
        if self.long_documents.mode == "windows":
            raise InputError(
                "Multiple choice reads a sequence for each choice. Received: "
                "--long_document=windows. Choose truncate_tail or head_tail."
            )

    @property
    def main_metric(self) -> str:
        """The share of right answers."""
        return "accuracy"

    def schema(
        self, max_seq_length: int, *, is_training: bool = True
    ) -> Schema:
        """Returns the features of C sequences, and the right one's number."""
        return {
            **text_schema(max_seq_length, self.num_choices),
            "label_ids": Feature(1),
            "is_real_example": Feature(1),
        }

    def feature_rows(
        self,
        examples: Sequence[ChoiceExample],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
    ) -> Iterator[FeatureRow]:
        """Yields one row for each example, each text feature C lists."""
        marks = text_inputs.special_ids(tokenizer.vocab)
        remaining = enumerate(examples)
        while block := list(itertools.islice(remaining, _BLOCK)):
            texts = [t for _, e in block for t in (e.context, *e.choices)]
            ids = iter(tokenizer.tokenize_lines_to_ids(texts))
            for number, example in block:
                context = next(ids)
                choices = list(itertools.islice(ids, len(example.choices)))
                row = self._row(context, choices, max_seq_length, marks)
                row["label_ids"] = [example.label or 0]
                row["is_real_example"] = [1]
                yield FeatureRow(number, row)

    def _row(
        self,
        context: Ids,
        choices: Sequence[Ids],
        max_seq_length: int,
        marks: SpecialIds,
    ) -> dict[str, list[Any]]:
        rows = []
        for choice in choices:
            [pair] = documents.cut(
                context, choice, max_seq_length, self.long_documents
            )
            rows.append(text_inputs.text_features(*pair, marks))
        return {name: [row[name] for row in rows] for name in rows[0]}

    def build_model(
        self, config: BertConfig, bert: Any = None
    ) -> ChoiceClassifier:
        """Returns BERT with one output, which scores a choice."""
        return ChoiceClassifier(
            config, pooling_head=self.pooling_head, bert=bert
        )

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns [B]: cross-entropies of the right choices."""
        return losses.cross_entropy(logits, batch["label_ids"][:, 0])

    def answers(
        self, features: RowFeatures, outputs: Outputs
    ) -> list[np.ndarray]:
        """Returns probabilities [C]."""
        if not outputs.logits:
            return []
        return list(tf.nn.softmax(np.stack(outputs.logits)).numpy())

    def metrics(
        self, examples: Sequence[ChoiceExample], answers: Sequence[np.ndarray]
    ) -> dict[str, Any]:
        """Returns the accuracy; nothing without the right choices."""
        targets = [e.label for e in examples if e.label is not None]
        if len(targets) < len(examples):
            return {}
        return classification.accuracy(targets, np.argmax(answers, axis=1))

    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[ChoiceExample],
        answers: Sequence[np.ndarray],
    ) -> None:
        """Writes probabilities, and a table of ids and chosen numbers."""
        tables.write_scores(folder, split, answers)
        rows: list[tuple[Any, Any]] = [("id", "prediction")]
        for example, answer in zip(examples, answers, strict=True):
            rows.append((example.guid, answer.argmax()))
        path = os.path.join(folder, f"{split}_predictions.tsv")
        files.write_text(path, tables.to_tsv(rows))

    def parse(self, given: Any, where: str) -> ChoiceExample:
        """Takes an object with the columns of training, or the usual ones."""
        if not isinstance(given, dict):
            raise InputError(
                f"{where}: must be an object with {self.columns.context} and "
                f"{self.columns.choices}. Received: {given!r}."
            )
        is_own = {self.columns.context, self.columns.choices} <= given.keys()
        columns = self.columns if is_own else DEFAULT_COLUMNS
        return make_example(given, where, where, self.num_choices, columns)

    def answer_to_json(
        self, example: ChoiceExample, answer: np.ndarray
    ) -> dict[str, Any]:
        """Returns the choice, its text, and all probabilities."""
        choice = int(answer.argmax())
        return {
            "choice": choice,
            "text": example.choices[choice],
            "probabilities": [float(score) for score in answer],
        }
