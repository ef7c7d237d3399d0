"""Classification, multi-label classification and regression of texts."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import classification, regression
from official_bert.modeling import losses
from official_bert.modeling.finetuning_models import SequenceClassifier
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

# {metric: its function, the main one of its results}.
_METRICS = {
    "accuracy": (classification.accuracy, "accuracy"),
    "accuracy_and_f1": (classification.accuracy_and_f1, "f1"),
    "matthews": (classification.matthews, "matthews_correlation"),
}


class TextExample(NamedTuple):
    """A text or a pair of texts.

    Attributes:
        guid: The example's name, such as "dev-12".
        text_a: The text.
        text_b: The second text of a pair.
        label: One of the task's labels; in multi-label tasks a tuple of labels;
            in regression a number; None if unknown.
    """

    guid: str
    text_a: str
    text_b: str | None = None
    label: Any = None


class TextColumns(NamedTuple):
    """The text columns of the user's own tables.

    Attributes:
        names: The column of the text, or both columns of a pair, by name or
            number.
        has_header: Whether the first line of TSV and CSV names the columns.
    """

    names: Sequence[str]
    has_header: bool = True

    @classmethod
    def from_json(cls, names: list[str], has_header: bool) -> "TextColumns":
        """Returns the value of `TextTask.columns` in `task.json`."""
        return cls(tuple(names), has_header)


class TextData(Protocol):
    """A data set of a `TextTask`."""

    def splits(self, mode: str) -> Sequence[str]:
        """Returns the splits that belong to `train`, `dev` or `test`."""

    def read(self, split: str) -> list[TextExample]:
        """Reads one split.

        Raises:
            InputError: A file is missing or malformed.
        """

    def submission(
        self,
        split: str,
        examples: Sequence[TextExample],
        predictions: Sequence[Any],
    ) -> tuple[str, str]:
        """Returns name and content of the file with the predictions.

        Args:
            split: The predicted split.
            examples: Its examples.
            predictions: What `TextTask.predictions` returns.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextTask(Task):
    """A task on single texts or pairs of texts.

    Attributes:
        task_type: `classification`, `multilabel` or `regression`.
        labels: In the order of their ids; empty in regression.
        metric: In classification: `accuracy`, `accuracy_and_f1` or `matthews`.
        long_documents: What to do with texts that are too long.
        is_pair: Whether examples are pairs; None if unknown.
        columns: The text columns of the user's own data.
        data: The data set.
    """

    task_type: str = saved_field(str)
    labels: tuple[str, ...] = saved_field(tuple)
    metric: str = saved_field(str, default="accuracy")
    long_documents: LongDocuments = saved_field(
        LongDocuments, default=documents.TRUNCATE_TAIL
    )
    is_pair: bool | None = saved_field(bool, default=None)
    columns: TextColumns | None = saved_field(
        TextColumns.from_json, default=None
    )
    data: TextData | None = None

    kind = "text"

    @property
    def main_metric(self) -> str:
        """Pearson's correlation, micro F1, or the metric of the benchmark."""
        if self.task_type == "classification":
            return _METRICS[self.metric][1]
        return "pearson" if self.task_type == "regression" else "micro_f1"

    def splits(self, mode: str) -> Sequence[str]:
        """Returns the splits of the data set."""
        assert self.data is not None
        return self.data.splits(mode)

    def schema(
        self, max_seq_length: int, *, is_training: bool = True
    ) -> Schema:
        """Returns the original's features; in regression, labels are floats."""
        is_multilabel = self.task_type == "multilabel"
        return {
            **text_schema(max_seq_length),
            "label_ids": Feature(
                len(self.labels) if is_multilabel else 1,
                is_float=self.task_type == "regression",
            ),
            "is_real_example": Feature(1),
        }

    def feature_rows(
        self,
        examples: Sequence[TextExample],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
    ) -> Iterator[FeatureRow]:
        """Yields one feature per example; with windows, one per window."""
        special = text_inputs.special_ids(tokenizer.vocab)
        texts = (text for e in examples for text in (e.text_a, e.text_b or ""))
        ids = documents.token_ids(texts, tokenizer)
        how = self.long_documents
        for number, example in enumerate(examples):
            labels = self._label_ids(example)
            for pair in documents.cut(
                next(ids), next(ids), max_seq_length, how
            ):
                row: dict[str, Any] = {
                    **text_inputs.text_features(*pair, special),
                    "label_ids": labels,
                    "is_real_example": [1],
                }
                yield FeatureRow(number, row)

    def _label_ids(self, example: TextExample) -> list[Any]:
        """Returns the feature `label_ids`; zeros for an unknown label."""
        if self.task_type == "multilabel":
            given = example.label or ()
            return [int(label in given) for label in self.labels]
        if example.label is None:
            return [0]
        if self.task_type == "regression":
            return [example.label]
        return [self.labels.index(example.label)]

    def build_model(
        self, config: BertConfig, bert: Any = None
    ) -> SequenceClassifier:
        """Returns BERT with one output per label; one in regression."""
        num_outputs = len(self.labels) or 1
        return SequenceClassifier(
            config, num_outputs, self.pooling_head, bert=bert
        )

    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns cross-entropies or squared errors [B]."""
        labels = batch["label_ids"]
        if self.task_type == "multilabel":
            return losses.binary_cross_entropy(logits, labels)
        if self.task_type == "regression":
            return losses.squared_error(logits[:, 0], labels[:, 0])
        return losses.cross_entropy(logits, labels[:, 0])

    def answers(
        self, features: RowFeatures, outputs: Outputs
    ) -> list[np.ndarray]:
        """Returns probabilities [C]; in regression, the number [1]."""
        pool = np.max if self.long_documents.pooling == "max" else np.mean
        windows: list[list[np.ndarray]] = [[] for _ in features.examples]
        for row, logits in zip(features.rows, outputs.logits, strict=True):
            windows[row.example].append(logits)
        pooled = [pool(parts, axis=0) for parts in windows]
        if not pooled or self.task_type == "regression":
            return pooled
        is_multilabel = self.task_type == "multilabel"
        activation = tf.sigmoid if is_multilabel else tf.nn.softmax
        return list(activation(np.stack(pooled)).numpy())

    def predictions(self, answers: Sequence[np.ndarray]) -> list[Any]:
        """Returns the label, the list of labels or the number per answer."""
        if self.task_type == "regression":
            return [float(scores[0]) for scores in answers]
        if self.task_type == "classification":
            return [self.labels[scores.argmax()] for scores in answers]
        return [
            [self.labels[i] for i in np.flatnonzero(scores >= 0.5)]
            for scores in answers
        ]

    def metrics(
        self, examples: Sequence[TextExample], answers: Sequence[np.ndarray]
    ) -> dict[str, Any]:
        """Returns the metrics of the task, and those of each class."""
        if any(example.label is None for example in examples):
            return {}
        targets = np.array([self._label_ids(example) for example in examples])
        scores = np.stack(answers)
        if self.task_type == "multilabel":
            return classification.multilabel(targets, scores, self.labels)
        if self.task_type == "regression":
            return regression.pearson_and_spearman(targets[:, 0], scores[:, 0])
        predicted = scores.argmax(axis=1)
        function, _ = _METRICS[self.metric]
        return {
            **function(targets[:, 0], predicted),
            **classification.per_class(targets[:, 0], predicted, self.labels),
        }

    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[TextExample],
        answers: Sequence[np.ndarray],
    ) -> None:
        """Writes `test_results.tsv` and the file of `TextData.submission`."""
        tables.write_scores(folder, split, answers)
        assert self.data is not None
        name, text = self.data.submission(
            split, examples, self.predictions(answers)
        )
        files.write_text(os.path.join(folder, name), text)

    def parse(self, given: Any, where: str) -> TextExample:
        """Makes an example of a text, a list of two texts, or an object.

        An object has the columns of the training data, or text_a and text_b.
        """
        texts = given
        if isinstance(given, dict):
            texts = self._texts_of_object(given)
        elif isinstance(given, str):
            texts = [given]
        if isinstance(texts, list) and len(texts) == 2 and texts[1] is None:
            texts = texts[:1]
        if (
            not isinstance(texts, list)
            or len(texts) not in (1, 2)
            or not all(isinstance(text, str) for text in texts)
        ):
            keys = "text_a and, for pairs, text_b"
            if self.columns:
                keys = " and ".join(self.columns.names)
            raise InputError(
                f"{where}: must be a text, a pair of texts, or an object with "
                f"{keys}. Received: {given!r}."
            )
        if self.is_pair not in (None, len(texts) == 2):
            expected = "a pair of texts" if self.is_pair else "one text"
            raise InputError(
                f"{where}: must be {expected}, like the training data. "
                f"Received: {given!r}. For pairs in tables, use "
                "--text_b_column."
            )
        return TextExample(where, *texts)

    def _texts_of_object(self, given: dict[str, Any]) -> list[Any]:
        names = self.columns.names if self.columns else ()
        if names and all(name in given for name in names):
            return [given[name] for name in names]
        return [given.get("text_a", given.get("text")), given.get("text_b")]

    def answer_to_json(
        self, example: TextExample, answer: np.ndarray
    ) -> dict[str, Any]:
        """Returns `label` or `labels` with `probabilities`, or `score`."""
        [prediction] = self.predictions([answer])
        if self.task_type == "regression":
            return {"score": prediction}
        name = "label" if self.task_type == "classification" else "labels"
        scores = zip(self.labels, map(float, answer), strict=True)
        return {name: prediction, "probabilities": dict(scores)}
