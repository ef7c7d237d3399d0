"""The interface between a task, the model and the commands.

A task makes features (the inputs of the model) from the examples of its data
set, names the head of the model, and decodes its logits into answers.
`modeling` builds layers and losses from the head.
"""

import abc
import dataclasses
import functools
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from official_bert.inputs import padding
from official_bert.inputs.padding import Unpadded
from official_bert.inputs.schemas import Feature, Schema
from official_bert.io import json_files
from official_bert.options import AnswerOptions, Predict, flags
from official_bert.runs import file_names
from official_bert.sources import task_file
from official_bert.sources.heads import NO_POOLING_HEAD, Head, PoolingHead
from official_bert.tasks.calibration import NO_CALIBRATION, Calibration
from official_bert.tasks.data_set import Examples, WrongAnswer
from official_bert.tasks.predict_inputs import Input
from official_bert.tokenization import Tokenizer
from official_bert.tokenization.vocab import warn_if_unknown

# The features of this many examples are in memory at the same time.
_EXAMPLES_PER_BLOCK = 16384

# Features in which the share of [UNK] is measured.
_FEATURES_TO_CHECK = 256

_Value = TypeVar("_Value")

# The logits of each feature, float32 without a batch dimension. Logits of
# sequences may be longer than the feature.
Logits = Sequence[np.ndarray]


class Features(abc.ABC):
    """Features of consecutive `examples`; a long example may have several."""

    examples: Examples

    @property
    @abc.abstractmethod
    def lengths(self) -> Sequence[int]:
        """The number of tokens of each feature, without padding."""

    @abc.abstractmethod
    def batch(
        self, indices: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        """Returns features as int32 or float32 arrays [`batch_size`, ...].

        Sequences are padded to `length`. Rows after the last feature are zeros.
        """

    def warn_if_unknown(self, tokenizer: Tokenizer, where: str = "") -> bool:
        """Warns if many tokens of the first features are [UNK].

        `where` names the data, such as " of test". Returns whether it warns.
        """
        lengths = self.lengths[:_FEATURES_TO_CHECK]
        indices = range(len(lengths))
        batch = self.batch(indices, max(lengths, default=1), len(lengths))
        ids = batch["input_ids"][batch["input_mask"] > 0]
        num_unknown = int(np.sum(ids == tokenizer.vocab["[UNK]"]))
        tokens = f"the first tokens{where}"
        return warn_if_unknown(num_unknown, ids.size, tokens)


class ExampleFeature(NamedTuple):
    """One feature: the index of its example, and its values, unpadded."""

    example: int
    values: Unpadded


class Output(NamedTuple):
    """A number to explain: a weighted sum of the logits of a feature.

    Attributes:
        example: The index of the example.
        feature: The index of the feature.
        name: What the model answers.
        terms: Indices of logits, and their weights.
        offset: Added to the sum.
        position: In tagging, the position of the tagged word's first token.
        choice: In multiple choice, the index of the choice.
    """

    example: int
    feature: int
    name: str
    terms: Sequence[tuple[tuple[int, ...], float]]
    offset: float = 0.0
    position: int | None = None
    choice: int | None = None

    def weights(self, shape: Sequence[int]) -> np.ndarray:
        """Returns the weights of all logits of the feature."""
        weights = np.zeros(shape)
        for index, weight in self.terms:
            weights[index] = weight
        return weights


@dataclasses.dataclass(frozen=True)
class RowFeatures(Features):
    """Features as lists, which `batch` pads to the shapes of `schema`."""

    examples: Examples
    rows: Sequence[ExampleFeature]
    schema: Schema

    @functools.cached_property
    def lengths(self) -> Sequence[int]:
        """The number of tokens of the longest sequence of each feature."""
        return [padding.row_length(row) for _, row in self.rows]

    def batch(
        self, indices: Sequence[int], length: int, batch_size: int
    ) -> dict[str, np.ndarray]:
        rows = [self.rows[index].values for index in indices]
        return padding.pad_batch(self.schema, rows, length, batch_size)

    def by_example(self, values: Iterable[_Value]) -> list[list[_Value]]:
        """Returns a list for each example: the values of its features."""
        grouped: list[list[_Value]] = [[] for _ in self.examples]
        for row, value in zip(self.rows, values, strict=True):
            grouped[row.example].append(value)
        return grouped


class TransformersModel(NamedTuple):
    """What the config of a transformers model says about its task."""

    where: str  # The start of messages.
    labels: tuple[str, ...]  # One per class, in order.
    problem_type: str | None
    num_positions: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task(abc.ABC):
    """A task that a model can be fine-tuned for.

    Attributes:
        data: The `DataSet` of a run; None in `predict.py` and for export.
        teacher: The `Teacher` of a run, if it has one.
        pooling_head: The layers between BERT and the task's linear layer.
        kind: The name of the class in `task.json`.
        head_kind: The kind of the model's head, a key of `heads.KINDS`.
        not_saved: The fields that are not keys of `task.json`.
        shares_features: Whether a teacher must have the student's features,
            because it answers for tokens, not for texts or words.
        finds_special_tokens: Whether texts may contain tokens such as [SEP], as
            in transformers.
        epoch_has_all_features: Whether an epoch contains all features. If not,
            it contains as many features as there are examples, as for SQuAD in
            the original.
        pad_to: How features are padded for prediction; see `inputs.padding`.
        input_ending: The ending of an input file of `predict.py`.
        baseline_name: The answer of `baseline`, in words.
        calibration: How logits become answers; only classifiers have one.
        serving: The signatures of an exported model, a key of
            `export.serving.SIGNATURES`.
    """

    data: Any = None
    teacher: Any = None
    pooling_head: PoolingHead = NO_POOLING_HEAD

    kind: ClassVar[str]
    head_kind: ClassVar[str]
    serving: ClassVar[str] = "logits"
    not_saved: ClassVar[tuple[str, ...]] = ("data", "teacher", "pooling_head")
    shares_features: ClassVar[bool] = False
    finds_special_tokens: ClassVar[bool] = False
    epoch_has_all_features: ClassVar[bool] = True
    pad_to = "bucket"
    input_ending = "jsonl"
    baseline_name = ""
    calibration = NO_CALIBRATION

    @property
    @abc.abstractmethod
    def main_metric(self) -> str:
        """The key of the metric that compares models; higher is better."""

    @property
    @abc.abstractmethod
    def head(self) -> Head:
        """The head of the model; its kind is `head_kind`."""

    @property
    def truncates(self) -> bool:
        """Whether texts that are too long are truncated."""
        return False

    def supports(self, flag: dataclasses.Field[Any]) -> bool:
        """Whether the flag with this field is for the kind or loss."""
        return flags.is_for(flag, self.kind, self.head.loss)

    def class_weights(self, training: Examples) -> tuple[float, ...]:
        """Returns the weight of each class in the loss; (): all equal."""
        return ()

    @property
    def loss_unit(self) -> float:
        """Evaluation multiplies losses by this, to undo target scaling."""
        return 1.0

    def unscale(self, logits: Any) -> Any:
        """Returns logits in the units of the data; only regression differs."""
        return logits

    @abc.abstractmethod
    def schema(self, max_seq_length: int) -> Schema:
        """Returns names, shapes and types of the features of a record."""

    def training_schema(self, max_seq_length: int) -> Schema:
        """Returns the schema of a training record, with a teacher's answers."""
        return (self.teacher or self).schema(max_seq_length)

    def featurize(
        self, examples: Examples, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[Features]:
        """Yields the features of consecutive blocks of examples."""
        schema = self.schema(max_seq_length)
        for start in range(0, len(examples), _EXAMPLES_PER_BLOCK):
            block = examples[start : start + _EXAMPLES_PER_BLOCK]
            rows = self.feature_rows(block, tokenizer, max_seq_length)
            yield RowFeatures(block, list(rows), schema)

    def feature_rows(
        self, examples: Examples, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[ExampleFeature]:
        """Yields the features of examples, for the default `featurize`."""
        raise NotImplementedError

    def labels_of(self, example: Any) -> Sequence[Any]:
        """Returns an example's classes, to be counted; none in SQuAD."""
        return ()

    def predictions(self, answers: Any) -> list[Any]:
        """Returns the predicted class of each answer or word; none in SQuAD."""
        return []

    def wrong_answers(
        self, examples: Examples, answers: Any
    ) -> Iterator[WrongAnswer]:
        """Yields the wrong answers; none if the task has no probabilities."""
        return iter(())

    @abc.abstractmethod
    def answers(self, features: Any, logits: Logits) -> list[Any]:
        """Returns one answer for each of `features.examples`."""

    def outputs(
        self, features: Any, logits: Logits, answers: Any
    ) -> Iterator[Output]:
        """Yields what to explain about the result of `answers`.

        A task without this method does not support --explain.
        """
        raise NotImplementedError

    def soft_answers(self, features: Any, logits: Logits) -> Sequence[Any]:
        """Returns the answers of a teacher: by default, `answers`."""
        return self.answers(features, logits)

    def soft_answers_schema(self, max_seq_length: int) -> Feature:
        """Returns the shape of a student's feature with soft answers.

        This is [C] or, if there is an answer for each token, [C, S], so that
        batches can trim S.
        """
        size = self.head.num_outputs
        if len(self.head.logits_shape) == 3:  # [B, S, C]
            return Feature(
                max_seq_length,
                "max_seq_length",
                is_float=True,
                num_choices=size,
            )
        return Feature(size, is_float=True)

    def divide_answers(
        self, features: Any, answers: Sequence[Any]
    ) -> Iterable[tuple[int, Any]]:
        """Returns the example of each feature, and the soft answer for it.

        By default, all features of an example have the same answer.
        """
        return ((n, answers[n]) for n, _ in features.rows)

    def as_teacher(self, student: "Task") -> "Task":
        """Returns this task for answering the examples of a student."""
        return self

    def has_label(self, example: Any) -> bool:
        """Whether a training example has a label."""
        return example.label is not None

    @property
    def ranks_pairs(self) -> bool:
        """Whether there is a `relevance` of pairs of texts."""
        return False

    def relevance(self, answers: Any) -> np.ndarray:
        """Returns numbers [N] that rank pairs of a query and a document."""
        raise NotImplementedError

    @abc.abstractmethod
    def metrics(self, examples: Examples, answers: Any) -> dict[str, Any]:
        """Returns the metrics of answers; {} if any label is unknown.

        The values can be written as JSON.
        """

    def calibrate(
        self, examples: Examples, answers: Any, *, fits: bool
    ) -> "Calibrated":
        """Returns the calibrated task, its answers, and their metrics.

        `answers` are not calibrated. If `fits`, a calibration is fitted to
        them; otherwise, the calibration of the task is applied. By default,
        and if there is none, nothing changes.
        """
        return Calibrated(self, answers, {})

    def with_calibration(self, calibration: Calibration) -> "Task":
        """Returns a classifier with another calibration; others unchanged."""
        return self

    def baseline(self, training: Examples, examples: Examples) -> Any:
        """Returns the metrics of a trivial answer, {} if the task has none."""
        return {}

    @property
    def input_hint(self) -> str:
        """Describes an input line of `predict.py`; starts with a comma."""
        return ""

    def prediction_files(
        self, split: str, examples: Examples, answers: Any
    ) -> dict[str, str]:
        """Returns {name: text} of the files to write; "" if there is no file.

        These are a line of scores per answer, and `DataSet.predictions_file`.
        `split` gives the names of the files, and may end with their variant.
        Tagging and SQuAD override this, and have other files.
        """
        lines = ("\t".join(map(str, scores)) + "\n" for scores in answers)
        predictions = self.predictions(answers)
        table = self.data.predictions_file(split, examples, predictions)
        return {file_names.scores(split): "".join(lines)} | table

    def with_tokenizer(self, tokenizer: Tokenizer) -> "Task":
        """Returns the task for predicting with a model's tokenizer."""
        return self

    def with_answer_options(self, options: AnswerOptions) -> "Task":
        """Returns the task with the values of flags that are set."""
        return self

    def read_inputs(self, options: Predict) -> Iterator[Input] | None:
        """Yields the inputs in a file of `predict.py`.

        Returns None, the default, if every line is an input.
        """
        return None

    @abc.abstractmethod
    def parse(self, value: Any, where: str) -> Any:
        """Returns the example that a JSON value describes, for predicting.

        Raises `InputError` if the value does not fit the task. The message
        begins with `where`, the position of the value.
        """

    @abc.abstractmethod
    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns an answer in the form that `predict.py` prints."""

    def margin(self, answer: dict[str, Any]) -> float:
        """Returns how certain a classifier is of an `answer_to_json`.

        This is the difference between the two highest probabilities.
        """
        values = answer["probabilities"]
        if isinstance(values, dict):
            values = values.values()
        second, first = sorted([0.0, *values])[-2:]
        return float(first - second)

    def to_json(self) -> dict[str, Any]:
        """Returns the keys of `task.json` that describe the task."""
        values: dict[str, Any] = {"kind": self.kind}
        for name in self._saved_fields():
            values[name] = _as_json(getattr(self, name))
        return values | self.pooling_head.to_json()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Task":
        """Returns the task that `to_json` described, without data.

        Raises `TypeError` or `ValueError` if a field is missing or malformed.
        """
        types = typing.get_type_hints(cls, include_extras=True)
        fields = {
            name: json_files.decode(values[name], types[name], name)
            for name in cls._saved_fields()
            if name in values
        }
        return cls(**fields, pooling_head=PoolingHead.from_json(values))

    @classmethod
    def of_transformers(cls, model: TransformersModel) -> "Task":
        """Returns the task of a model of transformers, with default values.

        Only the kinds of tasks in `heads.KINDS` override this. Raises
        `InputError` if the labels do not fit the problem.
        """
        raise NotImplementedError

    @classmethod
    def _saved_fields(cls) -> list[str]:
        names = [field.name for field in dataclasses.fields(cls)]
        return [name for name in names if name not in cls.not_saved]


def _as_json(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _as_json(item) for name, item in value._asdict().items()}
    return list(value) if isinstance(value, tuple) else value


class Calibrated(NamedTuple):
    """The result of `Task.calibrate`."""

    task: Task
    answers: Any
    metrics: dict[str, Any]


class FinetunedModel(NamedTuple):
    """A task and its fine-tuned model, from `build_model`."""

    task: Task
    model: Any
    tokenizer: Tokenizer
    max_seq_length: int

    def to_json(self) -> dict[str, Any]:
        """Returns the content of `task.json`."""
        lower = self.tokenizer.do_lower_case
        return task_file.describe(
            self.task.to_json(), self.max_seq_length, lower
        )
