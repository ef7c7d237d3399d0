"""Tasks on single texts or pairs: what all their types share.

The types are in `classification`, `multilabel` and `regression`.
"""

import abc
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from absl import logging

from official_bert.errors import InputError, listed, quoted
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import ranking
from official_bert.metrics.classification import METRICS
from official_bert.options import AnswerOptions, Predict
from official_bert.sources.heads import Head
from official_bert.tasks import long_texts, task
from official_bert.tasks.calibration import NO_CALIBRATION, Calibration
from official_bert.tasks.long_texts import LongDocuments
from official_bert.tasks.predict_inputs import Input, has_rows, table_inputs
from official_bert.tokenization import Tokenizer

_Item = TypeVar("_Item")


def key_of(text: str) -> str:
    """Returns a key that is the same for texts that count as equal."""
    return " ".join(text.lower().split())


class TextExample(NamedTuple):
    """A text or a pair of texts.

    `label` is one of the task's labels, in multi-label tasks a tuple of labels,
    in regression a number; None if unknown. `weight` is the weight in the
    training loss; None: 1. `group` is the query of a pair that is ranked.
    """

    guid: str  # The example's name, such as "dev-12".
    text_a: str
    text_b: str | None = None
    label: Any = None
    weight: float | None = None
    group: str | None = None

    @property
    def texts(self) -> tuple[str, str]:
        """Both texts; the second is empty for single texts."""
        return self.text_a, self.text_b or ""


Texts = Sequence[TextExample]


def warn_of_empty_texts(
    items: Iterable[_Item], example_of: Callable[[_Item], Any] = lambda x: x
) -> Iterator[_Item]:
    """Yields items; warns at the end if texts or pairs are empty.

    `example_of` returns the example in an item; by default, the item.
    """
    empty = list[str]()
    for item in items:
        yield item
        example = example_of(item)
        is_text = isinstance(example, TextExample)
        if is_text and not "".join(example.texts).strip():
            empty.append(example.guid)
    if empty:
        logging.warning(
            f"Empty texts: {listed(empty)}. Their predictions are meaningless"
        )


class TextColumns(NamedTuple):
    """The text columns of the user's own tables."""

    names: tuple[str, ...]  # One column, or two for pairs: names or numbers.
    has_header: bool = True  # Whether TSV and CSV files have a header.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextTask(task.Task):
    """A task on single texts or pairs of texts.

    Each type of answer is a subclass, a row of `text_types.TYPES`, and defines
    the abstract methods. All types have the same keys in `task.json`: the
    fields of this class.

    Attributes:
        labels: The labels, in the order of their ids; empty in regression.
        metric: In classification, a key of `metrics.classification.METRICS`.
        long_documents: What to do with texts that are too long.
        target_mean, target_deviation: In regression, the model learns the
            standardized targets (target - mean) / deviation.
        activation: In regression, what is applied to the number. `sigmoid`: as
            in cross-encoders of sentence-transformers.
        is_pair: Whether examples are pairs; None if unknown.
        columns: The text columns of the user's own data.
        best_metric: The main metric; "": that of the type or the benchmark.
        calibration: How logits become probabilities and labels.
        has_weights: Whether the training examples have weights.
        task_type: The name of the type in `task.json`, and of the loss.
        problem_type: The name of the type in configs of transformers.
    """

    labels: tuple[str, ...]
    metric: Annotated[str, tuple(METRICS)] = "accuracy"
    long_documents: LongDocuments = long_texts.TRUNCATE_TAIL
    target_mean: float = 0.0
    target_deviation: float = 1.0
    activation: Annotated[str, ("identity", "sigmoid")] = "identity"
    is_pair: bool | None = None
    columns: TextColumns | None = None
    best_metric: str = ""
    calibration: Calibration = NO_CALIBRATION
    has_weights: bool = False

    task_type: ClassVar[str]
    problem_type: ClassVar[str]
    kind = "text"
    head_kind = "sequence_classification"
    input_ending = "tsv"
    label_feature = Feature(1)  # `label_ids`.
    not_saved = (*task.Task.not_saved, "has_weights")

    def __post_init__(self) -> None:
        temperature, thresholds = self.calibration
        if temperature <= 0 or len(thresholds) not in (0, len(self.labels)):
            raise ValueError(
                "`calibration` must have a temperature above 0, and no "
                f"thresholds or one for each label. Received: {temperature}, "
                f"{listed(thresholds)}."
            )

    @property
    @abc.abstractmethod
    def default_metric(self) -> str:
        """The main metric without `best_metric`."""

    @abc.abstractmethod
    def label_ids(self, example: TextExample) -> list[Any]:
        """Returns the values of `label_ids`; zeros for an unknown label."""

    @abc.abstractmethod
    def activate(self, logits: np.ndarray) -> np.ndarray:
        """Returns the answers [N, C] for logits [N, C]."""

    @abc.abstractmethod
    def prediction(self, answer: np.ndarray) -> Any:
        """Returns a label, a list of labels or a number."""

    @abc.abstractmethod
    def compare(self, targets: np.ndarray, answers: np.ndarray) -> Any:
        """Returns the metrics of answers [N, C] for `targets`."""

    def chosen(self, answer: np.ndarray) -> list[int]:
        """Returns the indices of the predicted labels; [0] for a number."""
        return [int(answer.argmax())]

    def targets(self, examples: Texts) -> np.ndarray:
        """Returns classes or numbers, [N]; if multi-label, bool [N, C]."""
        return np.array([self.label_ids(example)[0] for example in examples])

    def mean_target(self, training: Texts) -> np.ndarray:
        """Returns the answer of the baseline, [C]."""
        ids = np.array([self.label_ids(example) for example in training])
        return ids.mean(axis=0)

    @property
    def main_metric(self) -> str:
        """`best_metric`, or that of the type or the benchmark."""
        return self.best_metric or self.default_metric

    @property
    def head(self) -> Head:
        """One output per label; one in regression."""
        size = len(self.labels) or 1
        return Head(self.head_kind, size, self.task_type, self.pooling_head)

    @property
    def truncates(self) -> bool:
        """Whether long texts are truncated."""
        return self.long_documents.mode != "windows"

    def schema(self, max_seq_length: int) -> Schema:
        """Returns the original's features; in regression, labels are floats."""
        weight = {"example_weights": Feature(1, is_float=True)}
        return {
            **text_schema(max_seq_length),
            **(weight if self.has_weights else {}),
            "label_ids": self.label_feature,
            "is_real_example": Feature(1),
        }

    def feature_rows(
        self, examples: Texts, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[task.ExampleFeature]:
        """Yields one feature per example; with windows, one per window."""
        texts = (text for example in examples for text in example.texts)
        ids = tokenizer.tokenize_lines_to_ids(texts)
        for number, example in enumerate(examples):
            labels = self.label_ids(example)
            label = {"label_ids": labels, "is_real_example": [1]}
            if self.has_weights:
                weight = 1.0 if example.weight is None else example.weight
                label["example_weights"] = [weight]
            for pair in long_texts.cut(
                next(ids), next(ids), max_seq_length, self.long_documents
            ):
                row = text_inputs.text_features(*pair, tokenizer.vocab)
                yield task.ExampleFeature(number, row | label)

    def answers(
        self, features: task.RowFeatures, logits: task.Logits
    ) -> list[Any]:
        """Returns probabilities [C]; in regression, the number [1]."""
        pool = np.max if self.long_documents.pooling == "max" else np.mean
        groups = features.by_example(logits)
        pooled = [
            pool(rows, axis=0) if len(rows) > 1 else rows[0] for rows in groups
        ]
        return list(self.activate(np.stack(pooled))) if pooled else []

    def outputs(
        self, features: task.RowFeatures, logits: task.Logits, answers: Any
    ) -> Iterator[task.Output]:
        """Yields the logits of the predicted labels, or the number.

        Without a predicted label, it is the most probable one. With windows,
        yields the share of each window in the mean, or the window with the
        maximum.
        """
        windows = features.by_example(range(len(features.rows)))
        for example, (scores, rows) in enumerate(
            zip(answers, windows, strict=True)
        ):
            for label in self.chosen(scores) or [int(scores.argmax())]:
                name = self.labels[label] if self.labels else "score"
                used = rows
                if self.long_documents.pooling == "max":
                    used = [max(rows, key=lambda row: logits[row][label])]
                terms = [((label,), self.target_deviation / len(used))]
                offset = self.target_mean / len(used)
                for row in used:
                    yield task.Output(example, row, name, terms, offset)

    def predictions(self, answers: Sequence[np.ndarray]) -> list[Any]:
        return [self.prediction(answer) for answer in answers]

    def baseline(self, training: Texts, examples: Texts) -> dict[str, Any]:
        """Returns the metrics of the most frequent label, or of the mean."""
        answer = self.mean_target(training)
        return self.metrics(examples, [answer] * len(examples))

    def metrics(self, examples: Texts, answers: Any) -> dict[str, Any]:
        if any(example.label is None for example in examples):
            return {}
        scores = np.stack(answers)
        found = self.compare(self.targets(examples), scores)
        return found | self._ranking(examples, scores)

    def _ranking(self, examples: Texts, answers: Any) -> dict[str, float]:
        """Returns the metrics of ranking the pairs of each query, if any."""
        groups = [example.group for example in examples]
        if None in groups:
            return {}
        # Not unscaled targets, in which 0 may be rounded to a positive number.
        labels = [example.label for example in examples]
        gains = [*map(self.labels.index, labels)] if self.labels else labels
        return ranking.ranking_of_groups(groups, gains, self.relevance(answers))

    @property
    def ranks_pairs(self) -> bool:
        return self.is_pair is not False

    def with_answer_options(self, options: AnswerOptions) -> "TextTask":
        columns = self.columns
        if options.text_a_column:
            pair = (options.text_a_column, options.text_b_column)
            names = tuple(name for name in pair if name)
            columns = (columns or TextColumns(names))._replace(names=names)
        return dataclasses.replace(self, columns=columns)

    def read_inputs(self, options: Predict) -> Iterator[Input] | None:
        if not (self.columns and has_rows(options)):
            return None
        flag_names = ("--text_column", "--text_b_column")
        names, has_header = self.columns
        flags = dict(zip(names, flag_names, strict=False))
        return table_inputs(
            options, names, trained_header=has_header, flags=flags
        )

    @property
    def input_hint(self) -> str:
        if self.is_pair and not self.columns:
            return ", two texts per line, separated by a tab"
        return ""

    def parse(self, value: Any, where: str) -> TextExample:
        """Makes an example from a text, a list of two texts, or an object.

        An object has the columns of the training data, or text_a and text_b, or
        text and text_pair, as in transformers.
        """
        texts = value
        if isinstance(value, dict):
            texts = self._texts_of_object(value)
        elif isinstance(value, str):
            texts = [value]
        is_pair = isinstance(texts, list) and len(texts) == 2
        if is_pair and texts[1] is None:
            texts = texts[:1]
        is_list = isinstance(texts, list) and len(texts) in (1, 2)
        if not is_list or not all(isinstance(text, str) for text in texts):
            keys = "text_a and, for pairs, text_b"
            if self.columns:
                keys = " and ".join(self.columns.names)
            raise InputError(
                f"{where}: must be a text, a pair of texts, or an object with "
                f"{keys}. Received: {quoted(value)}."
            )
        if self.is_pair not in (None, len(texts) == 2):
            expected = "one text"
            if self.is_pair:
                expected = 'a pair of texts, ["text a", "text b"] in JSON'
            raise InputError(
                f"{where}: must be {expected}, like the training data. "
                f"Received: {quoted(value)}."
            )
        return TextExample(where, *texts)

    def _texts_of_object(self, value: dict[str, Any]) -> list[Any]:
        names = self.columns.names if self.columns else ()
        if names and all(name in value for name in names):
            return [value[name] for name in names]
        return [
            value.get("text_a", value.get("text")),
            value.get("text_b", value.get("text_pair")),
        ]

    def to_json(self) -> dict[str, Any]:
        types = {"kind": self.kind, "task_type": self.task_type}
        return types | super().to_json()
