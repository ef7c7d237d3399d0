"""The contract between a task, its data, the model and the commands.

A task reads examples, makes features (the inputs of the model) from them,
builds the model, computes its losses, and decodes its logits into answers.
`TextTask`, `ChoiceTask`, `TaggingTask` and `SquadTask` do so for one kind of
answer each.
"""

import abc
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.inputs import padding
from official_bert.inputs.padding import Row
from official_bert.inputs.schemas import Schema
from official_bert.modeling.pooling_head import NO_POOLING_HEAD, PoolingHead
from official_bert.tokenization import BatchTokenizer

# The features of this many examples are in memory at the same time.
_EXAMPLES_PER_BLOCK = 16384

_AnyTask = TypeVar("_AnyTask", bound="Task")
_Example = TypeVar("_Example")


class Features(abc.ABC):
    """Features of consecutive examples; a long example may have several.

    Attributes:
        examples: The examples.
    """

    examples: Sequence[Any]

    @property
    @abc.abstractmethod
    def lengths(self) -> Sequence[int]:
        """The number of tokens of each of the N features, without padding."""

    @abc.abstractmethod
    def batch(
        self, indices: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        """Returns the features with the given indices as one batch.

        Returns:
            {name: int32 or float32 array}, sequences [B, length], as in
            `Task.schema`. Missing features are all zeros.
        """


class FeatureRow(NamedTuple):
    """One feature as lists.

    Attributes:
        example: The index of its example.
        row: {name: values}, sequences not padded.
    """

    example: int
    row: Row


@dataclasses.dataclass(frozen=True)
class RowFeatures(Features):
    """Features that are kept as one row of lists each.

    Attributes:
        examples: The examples.
        rows: The features, in the order of the examples.
        schema: The shapes of the features.
    """

    examples: Sequence[Any]
    rows: Sequence[FeatureRow]
    schema: Schema

    @property
    def lengths(self) -> Sequence[int]:
        """The number of tokens; of several sequences, that of the longest."""
        return [padding.row_length(row) for _, row in self.rows]

    def batch(
        self, indices: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        """See `Features`."""
        rows = [self.rows[index].row for index in indices]
        return padding.pad_batch(self.schema, rows, length, batch_size)


class Outputs(NamedTuple):
    """The outputs of a model for N features.

    Attributes:
        logits: N float32 arrays without batch dimension. Along a sequence they
            may be longer than the feature.
        losses: float64 [N], the sum of each feature's losses.
        weights: float64 [N], the sum of the weights of these losses.
    """

    logits: Sequence[np.ndarray]
    losses: np.ndarray
    weights: np.ndarray


def shuffle_examples(examples: Sequence[_Example]) -> list[_Example]:
    """Returns training examples in random order, the same in every run.

    Training shuffles only a hundred features at a time, as in the original,
    which is not enough for a file sorted by labels or topics. With this seed
    the original shuffles SQuAD's questions.
    """
    order = list(examples)
    random.Random(12345).shuffle(order)
    return order


def saved_field(decode: Callable[..., Any], **options: Any) -> Any:
    """Declares a field of a task that is part of `task.json`.

    Args:
        decode: Returns the field's value, given the JSON value; an object is
            given as keyword arguments.
        options: Arguments of `dataclasses.field`.
    """
    return dataclasses.field(metadata={"decode": decode}, **options)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(abc.ABC):
    """A task that a model can be fine-tuned for.

    Attributes:
        data: The examples; not needed for predicting.
        pooling_head: The layers between BERT and the task's linear layer.
        kind: The name of the class in `task.json`.
        epoch_has_all_features: Whether an epoch consists of all features, or of
            as many as there are examples, as SQuAD's in the original.
        pad_to: How features are padded for predicting: max, or bucket where
            padding changes no answer. See `inputs.padding`.
    """

    data: Any = None
    pooling_head: PoolingHead = NO_POOLING_HEAD

    kind: ClassVar[str]
    epoch_has_all_features: ClassVar[bool] = True
    pad_to = "bucket"

    @property
    @abc.abstractmethod
    def main_metric(self) -> str:
        """The key of `metrics` by which models are compared; more is better."""

    def splits(self, mode: str) -> Sequence[str]:
        """Returns the names of the parts of the data.

        Args:
            mode: train, dev or test.
        """
        return [mode]

    def examples(self, split: str) -> Sequence[Any]:
        """Reads one part of the data.

        Raises:
            InputError: A file is missing or malformed.
        """
        return self.data.read(split)

    @abc.abstractmethod
    def schema(self, max_seq_length: int, *, is_training: bool) -> Schema:
        """Returns the names, shapes and types of a feature's values."""

    def featurize(
        self,
        examples: Sequence[Any],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
        *,
        is_training: bool,
    ) -> Iterator[Features]:
        """Yields the features of consecutive blocks of examples."""
        schema = self.schema(max_seq_length, is_training=is_training)
        for start in range(0, len(examples), _EXAMPLES_PER_BLOCK):
            block = examples[start : start + _EXAMPLES_PER_BLOCK]
            rows = self.feature_rows(block, tokenizer, max_seq_length)
            yield RowFeatures(block, list(rows), schema)

    def feature_rows(
        self,
        examples: Sequence[Any],
        tokenizer: BatchTokenizer,
        max_seq_length: int,
    ) -> Iterator[FeatureRow]:
        """Yields the features of examples, unless `featurize` is overridden."""
        raise NotImplementedError

    @abc.abstractmethod
    def build_model(self, config: BertConfig, bert: Any = None) -> Any:
        """Returns BERT and a head, one of `modeling.finetuning_models`.

        Args:
            config: The configuration of BERT.
            bert: A layer with the call arguments and outputs of `Bert`, to be
                used instead of a new one.
        """

    @abc.abstractmethod
    def losses(self, logits: Any, batch: dict[str, Any]) -> Any:
        """Returns float32 losses, [B] or [B, S]."""

    def weights(self, batch: dict[str, Any]) -> Any:
        """Returns the weight of each loss, 0 or 1."""
        return tf.cast(batch["is_real_example"][:, 0], tf.float32)

    @abc.abstractmethod
    def answers(self, features: Any, outputs: Outputs) -> list[Any]:
        """Returns one answer for each of `features.examples`.

        Args:
            features: A block that `featurize` yielded.
            outputs: The model's outputs for it.
        """

    @abc.abstractmethod
    def metrics(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, Any]:
        """Compares answers with the labels of the examples.

        Returns:
            {name: value}, ready for JSON; empty unless all labels are known.
        """

    @abc.abstractmethod
    def write_predictions(
        self,
        folder: str,
        split: str,
        examples: Sequence[Any],
        answers: Sequence[Any],
    ) -> None:
        """Writes the files of the original, or those of the benchmark."""

    @abc.abstractmethod
    def parse(self, given: Any, where: str) -> Any:
        """Returns the example that a JSON value describes, for predicting.

        Args:
            given: A text, a list, or an object.
            where: The position of the value, for error messages.

        Raises:
            InputError: The value does not fit the task.
        """

    @abc.abstractmethod
    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns an answer in the form that `predict.py` prints."""

    def to_json(self) -> dict[str, Any]:
        """Returns the content of `task.json`."""
        values = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if "decode" in field.metadata
        }
        return {
            "kind": self.kind,
            **{name: _to_json(value) for name, value in values.items()},
            **self.pooling_head.to_json(),
        }

    @classmethod
    def from_json(cls: type[_AnyTask], values: dict[str, Any]) -> _AnyTask:
        """Returns the task that `to_json` described, without data.

        Raises:
            TypeError, ValueError: A field is missing or malformed.
        """
        fields = {
            field.name: _from_json(field.metadata["decode"], values[field.name])
            for field in dataclasses.fields(cls)
            if "decode" in field.metadata and field.name in values
        }
        return cls(**fields, pooling_head=PoolingHead.from_json(values))


class FinetunedModel(NamedTuple):
    """A fine-tuned model and what is needed to use it.

    `model` is as `task.build_model` returns it, with its weights.
    """

    task: Task
    model: Any
    tokenizer: BatchTokenizer
    vocab_file: str
    max_seq_length: int


def _to_json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return value._asdict()
    return list(value) if isinstance(value, tuple) else value


def _from_json(decode: Callable[..., Any], value: Any) -> Any:
    if value is None:
        return None
    return decode(**value) if isinstance(value, dict) else decode(value)
