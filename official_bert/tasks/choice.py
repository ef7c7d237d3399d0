"""Multiple choice: which of several continuations is right (section 4.4).

Each choice is paired with the context and scored on its own::

    [CLS] He opens the door . [SEP] He sees a dog . [SEP]    0.9
    [CLS] He opens the door . [SEP] He eats the sky . [SEP]  0.1
"""

import dataclasses
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import classification
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import ChoiceClassifier
from official_bert.tasks import documents, tables
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.task import (
    FeatureRow,
    Outputs,
    RowFeatures,
    Task,
    saved_field,
)
from official_bert.tokenization import BatchTokenizer


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
        question: A text that is prepended to every choice; optional.
    """

    context: str = "context"
    choices: str = "choices"
    question: str = "question"

    def example(
        self, given: Mapping[str, Any], guid: str, where: str, num_choices: int
    ) -> ChoiceExample:
        """Makes an example, without label, of a JSON object.

        Raises:
            InputError: A text is missing or the number of choices is wrong;
                the message begins with `where`.
        """
        context, choices = given.get(self.context), given.get(self.choices)
        question = given.get(self.question) or ""
        if not isinstance(choices, list) or len(choices) != num_choices:
            raise InputError(
                f"{where}: {self.choices!r} must be a list of {num_choices} "
                f"texts, as in all examples. Received: {choices!r}."
            )
        for text in (context, question, *choices):
            if not isinstance(text, str):
                raise InputError(
                    f"{where}: {self.context!r}, {self.question!r} and "
                    f"{self.choices!r} must be texts. Received: {text!r}."
                )
        texts = [f"{question} {choice}".strip() for choice in choices]
        return ChoiceExample(guid, str(context), texts)


DEFAULT_COLUMNS = ChoiceColumns()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoiceTask(Task):
    """Multiple choice.

    Attributes:
        num_choices: C, the number of choices of every example.
        long_documents: How texts are cut, other than into windows.
        columns: The keys of JSON objects.
        data: The data set: `read(split)` returns the examples.
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

    def schema(
        self, max_seq_length: int, *, is_training: bool = True
    ) -> Schema:
        """Returns the features of C sequences and the number of the label."""
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
        """Yields one feature per example, of C sequences."""
        special = text_inputs.special_ids(tokenizer.vocab)
        texts = (text for e in examples for text in (e.context, *e.choices))
        ids = documents.token_ids(texts, tokenizer)
        for number, example in enumerate(examples):
            context = next(ids)
            sequences = []
            for _ in example.choices:
                [pair] = documents.cut(
                    context, next(ids), max_seq_length, self.long_documents
                )
                sequences.append(text_inputs.text_features(*pair, special))
            row: dict[str, Any] = {
                name: [sequence[name] for sequence in sequences]
                for name in sequences[0]
            }
            row |= {"label_ids": [example.label or 0], "is_real_example": [1]}
            yield FeatureRow(number, row)

    def build_model(
        self, config: BertConfig, bert: Any = None
    ) -> ChoiceClassifier:
        """Returns BERT with one output, the score of a choice."""
        return ChoiceClassifier(
            config, pooling_head=self.pooling_head, bert=bert
        )

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns cross-entropies [B]."""
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
        """Returns the accuracy."""
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
        """Writes the probabilities, and a table of ids and predictions."""
        tables.write_scores(folder, split, answers)
        text = tables.predictions_table(
            (example.guid for example in examples),
            [answer.argmax() for answer in answers],
        )
        path = os.path.join(folder, f"{split}_predictions.tsv")
        files.write_text(path, text)

    def parse(self, given: Any, where: str) -> ChoiceExample:
        """Makes an example of an object with `columns` or default keys."""
        if not isinstance(given, dict):
            raise InputError(
                f"{where}: must be an object with {self.columns.context} and "
                f"{self.columns.choices}. Received: {given!r}."
            )
        has_own_keys = {*self.columns[:2]} <= given.keys()
        columns = self.columns if has_own_keys else DEFAULT_COLUMNS
        return columns.example(given, where, where, self.num_choices)

    def answer_to_json(
        self, example: ChoiceExample, answer: np.ndarray
    ) -> dict[str, Any]:
        """Returns number and text of the choice, and all probabilities."""
        choice = int(answer.argmax())
        return {
            "choice": choice,
            "text": example.choices[choice],
            "probabilities": [float(score) for score in answer],
        }
