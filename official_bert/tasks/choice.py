"""Multiple choice, and SWAG (section 4.4; Zellers et al., 2018).

Each choice is paired with the context and scored on its own::

    [CLS] He opens the door . [SEP] He sees a dog . [SEP]    0.9
    [CLS] He opens the door . [SEP] He eats the sky . [SEP]  0.1
"""

import dataclasses
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import InputError, quoted
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import classification
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import ChoiceClassifier
from official_bert.options import RunClassifier
from official_bert.tasks import documents, tables
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tables import Row
from official_bert.tasks.task import (
    DataSet,
    FeatureRow,
    Outputs,
    RowFeatures,
    Task,
    saved_field,
)
from official_bert.tokenization import BatchTokenizer


class ChoiceExample(NamedTuple):
    """A context and its possible continuations."""

    guid: str  # The example's name, such as "dev-12".
    context: str  # Text A of every pair.
    choices: Sequence[str]  # Text B of each pair.
    label: int | None = None  # The number of the right choice, from 0.


Examples = Sequence[ChoiceExample]


class ChoiceColumns(NamedTuple):
    """The keys of an example's JSON object."""

    context: str = "context"  # Text A.
    choices: str = "choices"  # The list of texts B.
    question: str = "question"  # Optional; prepended to every choice.

    def example(
        self, given: Mapping[str, Any], where: str, num_choices: int
    ) -> ChoiceExample:
        """Makes an example, without label, of a JSON object.

        Its `guid` is `where`, with which the message of an `InputError` begins.
        """
        context, choices = given.get(self.context), given.get(self.choices)
        question = given.get(self.question) or ""
        if not isinstance(choices, list) or len(choices) != num_choices:
            raise InputError(
                f"{where}: {self.choices!r} must be a list of {num_choices} "
                f"texts, as in all examples. Received: {quoted(choices)}."
            )
        for text in (context, question, *choices):
            if not isinstance(text, str):
                raise InputError(
                    f"{where}: {self.context!r}, {self.question!r} and "
                    f"{self.choices!r} must be texts. Received: {quoted(text)}."
                )
        texts = [f"{question} {choice}".strip() for choice in choices]
        return ChoiceExample(where, str(context), texts)


DEFAULT_COLUMNS = ChoiceColumns()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceTask(Task):
    """Multiple choice among C = `num_choices`.

    `long_documents` says how texts are cut, other than into windows; `columns`
    are the keys of JSON objects.
    """

    num_choices: int = saved_field(int)
    long_documents: LongDocuments = saved_field(
        LongDocuments, default=documents.TRUNCATE_TAIL
    )
    columns: ChoiceColumns = saved_field(ChoiceColumns, default=DEFAULT_COLUMNS)

    kind = "choice"
    main_metric = "accuracy"

    def __post_init__(self) -> None:
        """Checks that texts are not cut into windows."""
        if self.long_documents.mode == "windows":
            raise InputError(
                "--long_document=windows is not supported in multiple choice. "
                "Use truncate_tail or head_tail."
            )

    def schema(self, max_seq_length: int, *, is_training: bool) -> Schema:
        """Returns the features of C sequences and the number of the label."""
        return {
            **text_schema(max_seq_length, self.num_choices),
            "label_ids": Feature(1),
            "is_real_example": Feature(1),
        }

    def feature_rows(
        self, examples: Examples, tokenizer: BatchTokenizer, max_seq_length: int
    ) -> Iterator[FeatureRow]:
        """Yields one feature per example, of C sequences."""
        special = text_inputs.special_ids(tokenizer.vocab)
        texts = (text for e in examples for text in (e.context, *e.choices))
        ids = documents.token_ids(texts, tokenizer)
        how = self.long_documents
        for number, example in enumerate(examples):
            context = next(ids)
            sequences = []
            for choice in itertools.islice(ids, len(example.choices)):
                [pair] = documents.cut(context, choice, max_seq_length, how)
                sequences.append(text_inputs.text_features(*pair, special))
            row = {k: [s[k] for s in sequences] for k in sequences[0]}
            others = {"label_ids": [example.label or 0], "is_real_example": [1]}
            yield FeatureRow(number, {**row, **others})

    def build_model(self, config: BertConfig, bert: Any = None) -> Any:
        """Returns BERT with one output, the score of a choice."""
        head = self.pooling_head
        return ChoiceClassifier(config, pooling_head=head, bert=bert)

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns cross-entropies [B]."""
        return losses.cross_entropy(logits, batch["label_ids"][:, 0])

    def answers(self, features: RowFeatures, outputs: Outputs) -> list[Any]:
        """Returns probabilities [C]."""
        if not outputs.logits:
            return []
        return list(tf.nn.softmax(np.stack(outputs.logits)).numpy())

    def metrics(self, examples: Examples, answers: Any) -> dict[str, Any]:
        """Returns the accuracy."""
        targets = [e.label for e in examples if e.label is not None]
        if len(targets) < len(examples):
            return {}
        return classification.accuracy(targets, np.argmax(answers, axis=1))

    def write_predictions(
        self, directory: str, split: str, examples: Examples, answers: Any
    ) -> None:
        """Writes the probabilities, and a table of ids and predictions."""
        choices = [answer.argmax() for answer in answers]
        table = self.data.predictions_file(split, examples, choices)
        tables.write_predictions(directory, split, answers, table)

    def parse(self, given: Any, where: str) -> ChoiceExample:
        """Makes an example of an object with `columns` or default keys."""
        columns = self.columns
        if not isinstance(given, dict):
            raise InputError(
                f"{where}: must be an object with {columns.context} and "
                f"{columns.choices}. Received: {quoted(given)}."
            )
        if not given.keys() >= {columns.context, columns.choices}:
            columns = DEFAULT_COLUMNS
        return columns.example(given, where, self.num_choices)

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns number and text of the choice, and all probabilities."""
        choice = int(answer.argmax())
        text, scores = example.choices[choice], list(map(float, answer))
        return {"choice": choice, "text": text, "probabilities": scores}


_ENDINGS = ("ending0", "ending1", "ending2", "ending3")


def make_swag(options: RunClassifier) -> ChoiceTask:
    """Returns SWAG, choosing the ending of a sentence."""
    data = SwagData(options.data_dir)
    return ChoiceTask(num_choices=len(_ENDINGS), data=data)


@dataclasses.dataclass(frozen=True)
class SwagData(DataSet):
    """SWAG's files. Text B is sent2, the second sentence, with an ending."""

    data_dir: str

    def read(self, split: str) -> list[ChoiceExample]:
        """Reads `train.csv`, `val.csv` or `test.csv`, which has no labels."""
        name = "val" if split == "dev" else split
        rows = tables.read(os.path.join(self.data_dir, f"{name}.csv"), "csv")
        return [_swag_example(row, split) for row in rows]


def _swag_example(row: Row, split: str) -> ChoiceExample:
    context, beginning = row.text("sent1"), row.text("sent2")
    choices = [f"{beginning} {row.text(name)}".strip() for name in _ENDINGS]
    label = None if split == "test" else row.choice("label", len(_ENDINGS))
    return ChoiceExample(f"{split}-{row.line}", context, choices, label)
