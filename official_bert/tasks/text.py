"""Classification, multi-label classification and regression of texts."""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from official_bert.errors import InputError, listed, quoted
from official_bert.inputs import text_inputs
from official_bert.inputs.schemas import Feature, Schema, text_schema
from official_bert.metrics import classification, ranking, regression
from official_bert.options import AnswerOptions, Predict
from official_bert.options.answers import parse_thresholds
from official_bert.options.run_classifier import parse_class_weights
from official_bert.sources.heads import Head
from official_bert.tasks import calibration, documents, probabilities
from official_bert.tasks.calibration import NO_CALIBRATION, Calibration
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.predict_inputs import Input, has_rows, table_inputs
from official_bert.tasks.task import (
    Calibrated,
    ExampleFeature,
    Logits,
    Output,
    RowFeatures,
    Task,
    TransformersModel,
    WrongAnswer,
)
from official_bert.tokenization import Tokenizer

# {metric: (its function, the key of its main result)}.
_METRICS = {
    "accuracy": (classification.accuracy, "accuracy"),
    "accuracy_and_f1": (classification.accuracy_and_f1, "f1"),
    "matthews": (classification.matthews, "matthews_correlation"),
}


# {`task_type`: `problem_type` in transformers' configs}.
PROBLEM_TYPES = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}


def problem_type(task: Mapping[str, Any]) -> str | None:
    """Returns `problem_type` for the content of a `task.json`."""
    if task.get("activation") == "sigmoid":
        return None
    return PROBLEM_TYPES.get(task.get("task_type", ""))


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


class TextColumns(NamedTuple):
    """The text columns of the user's own tables."""

    names: tuple[str, ...]  # One column, or two for pairs: names or numbers.
    has_header: bool = True  # Whether TSV and CSV files have a header.


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextTask(Task):
    """A task on single texts or pairs of texts.

    Attributes:
        task_type: `classification`, `multilabel` or `regression`.
        labels: The labels, in the order of their ids; empty in regression.
        metric: For classification: `accuracy`, `accuracy_and_f1` or `matthews`.
        long_documents: What to do with texts that are too long.
        target_mean, target_deviation: In regression, the model learns the
            standardized targets (target - mean) / deviation.
        activation: In regression, what is applied to the number. `sigmoid`: as
            in cross-encoders of sentence-transformers.
        is_pair: Whether examples are pairs; None if unknown.
        columns: The text columns of the user's own data.
        best_metric: The main metric; "": that of the type or the benchmark.
        calibration: How logits become probabilities and labels.
        weighting: The value of --class_weights.
        has_weights: Whether the training examples have weights.
    """

    task_type: Annotated[str, tuple(PROBLEM_TYPES)]
    labels: tuple[str, ...]
    metric: Annotated[str, tuple(_METRICS)] = "accuracy"
    long_documents: LongDocuments = documents.TRUNCATE_TAIL
    target_mean: float = 0.0
    target_deviation: float = 1.0
    activation: Annotated[str, ("identity", "sigmoid")] = "identity"
    is_pair: bool | None = None
    columns: TextColumns | None = None
    best_metric: str = ""
    calibration: Calibration = NO_CALIBRATION
    weighting: str = "none"
    has_weights: bool = False

    kind = "text"
    head_kind = "sequence_classification"
    serving = "text"
    input_ending = "tsv"
    not_saved = (*Task.not_saved, "weighting", "has_weights")

    def __post_init__(self) -> None:
        temperature, thresholds = self.calibration
        if temperature <= 0 or len(thresholds) not in (0, len(self.labels)):
            raise ValueError(
                "`calibration` must have a temperature above 0, and no "
                f"thresholds or one for each label. Received: {temperature}, "
                f"{listed(thresholds)}."
            )

    @property
    def main_metric(self) -> str:
        """`best_metric`, or that of the type or the benchmark."""
        if self.best_metric:
            return self.best_metric
        if self.task_type == "classification":
            return _METRICS[self.metric][1]
        return "pearson" if self.task_type == "regression" else "micro_f1"

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
        num_labels = len(self.labels) if self.task_type == "multilabel" else 1
        is_float = self.task_type == "regression"
        weight = {"example_weights": Feature(1, is_float=True)}
        return {
            **text_schema(max_seq_length),
            **(weight if self.has_weights else {}),
            "label_ids": Feature(num_labels, is_float=is_float),
            "is_real_example": Feature(1),
        }

    def feature_rows(
        self, examples: Texts, tokenizer: Tokenizer, max_seq_length: int
    ) -> Iterator[ExampleFeature]:
        """Yields one feature per example; with windows, one per window."""
        special = text_inputs.special_ids(tokenizer.vocab)
        texts = (text for example in examples for text in example.texts)
        ids = tokenizer.tokenize_lines_to_ids(texts)
        for number, example in enumerate(examples):
            labels = self._label_ids(example)
            label = {"label_ids": labels, "is_real_example": [1]}
            if self.has_weights:
                weight = 1.0 if example.weight is None else example.weight
                label["example_weights"] = [weight]
            for pair in documents.cut(
                next(ids), next(ids), max_seq_length, self.long_documents
            ):
                row = text_inputs.text_features(*pair, special)
                yield ExampleFeature(number, row | label)

    def labels_of(self, example: TextExample) -> Sequence[Any]:
        """Returns the label or labels; none in regression."""
        if example.label is None or self.task_type == "regression":
            return ()
        is_multilabel = self.task_type == "multilabel"
        return tuple(example.label) if is_multilabel else (example.label,)

    def with_class_weights(self, value: str) -> "TextTask":
        """Returns the task with the weights of --class_weights.

        Raises `InputError` if they name unknown labels, or labels twice.
        """
        labels = [label for label, _ in parse_class_weights(value)]
        for label in labels:
            if label not in self.labels or labels.count(label) > 1:
                raise InputError(
                    f"--class_weights={value} must name labels of the task, "
                    f"each once: {listed(self.labels)}. Received: {label!r}."
                )
        return dataclasses.replace(self, weighting=value)

    def class_weights(self, training: Texts) -> tuple[float, ...]:
        """Returns the weights of all labels; see docs/finetuning.md.

        "balanced" means N / (C n) for a class with n of the N examples of C
        classes. In multi-label tasks, it means (N - n) / n. A label that no or
        all examples have gets the weight 1.
        """
        if self.weighting == "none":
            return ()
        if self.weighting != "balanced":
            weights = dict(parse_class_weights(self.weighting))
            return tuple(weights.get(label, 1.0) for label in self.labels)
        counts = collections.Counter(
            label for example in training for label in self.labels_of(example)
        )
        with_label = np.array([counts[label] for label in self.labels])
        if self.task_type == "multilabel":
            numerators = len(training) - with_label
        else:
            numerators = np.full(len(with_label), len(training) / len(counts))
        balanced = numerators / np.maximum(with_label, 1)
        is_mixed = balanced * with_label > 0
        return tuple(np.where(is_mixed, balanced, 1.0).tolist())

    def _label_ids(self, example: TextExample) -> list[Any]:
        """Returns the feature `label_ids`; zeros for an unknown label."""
        if self.task_type == "multilabel":
            labels = example.label or ()
            return [int(label in labels) for label in self.labels]
        if example.label is None:
            return [0]
        if self.task_type == "regression":
            return [(example.label - self.target_mean) / self.target_deviation]
        return [self.labels.index(example.label)]

    @property
    def loss_unit(self) -> float:
        """In regression, the variance of the targets."""
        return self.target_deviation**2

    def unscale(self, logits: Any) -> Any:
        """In regression, undoes the standardization of the targets."""
        if self.task_type != "regression":
            return logits
        return logits * self.target_deviation + self.target_mean

    def answers(self, features: RowFeatures, logits: Logits) -> list[Any]:
        """Returns probabilities [C]; in regression, the number [1]."""
        pool = np.max if self.long_documents.pooling == "max" else np.mean
        windows = features.by_example(logits)
        pooled = [self.unscale(pool(rows, axis=0)) for rows in windows]
        is_regression = self.task_type == "regression"
        if not pooled or (is_regression and self.activation == "identity"):
            return pooled
        activation = probabilities.softmax
        if self.task_type == "multilabel" or is_regression:
            activation = probabilities.sigmoid
        return list(activation(np.stack(pooled) / self.calibration.temperature))

    def outputs(
        self, features: RowFeatures, logits: Logits, answers: Sequence[Any]
    ) -> Iterator[Output]:
        """Yields the logits of the predicted labels, or the number.

        Without a predicted label, it is the most probable one. With windows,
        yields the share of each window in the mean, or the window with the
        maximum.
        """
        windows = features.by_example(range(len(features.rows)))
        for example, (scores, rows) in enumerate(
            zip(answers, windows, strict=True)
        ):
            for label in self._chosen(scores) or [int(scores.argmax())]:
                name = self.labels[label] if self.labels else "score"
                used = rows
                if self.long_documents.pooling == "max":
                    used = [max(rows, key=lambda row: logits[row][label])]
                terms = [((label,), self.target_deviation / len(used))]
                offset = self.target_mean / len(used)
                for row in used:
                    yield Output(example, row, name, terms, offset)

    def baseline(self, training: Texts, examples: Texts) -> dict[str, Any]:
        """Returns the metrics of the most frequent label, or of the mean."""
        targets = np.array([self._label_ids(example) for example in training])
        if self.task_type == "classification":
            targets = np.eye(len(self.labels))[targets[:, 0]]
        answer = self.unscale(targets.mean(axis=0))
        return self.metrics(examples, [answer] * len(examples))

    @property
    def baseline_name(self) -> str:
        if self.task_type == "multilabel":
            return "always the labels of at least half of the training data"
        is_number = self.task_type == "regression"
        return f"always the {'mean' if is_number else 'most frequent label'}"

    def predictions(self, answers: Sequence[np.ndarray]) -> list[Any]:
        """Returns a label, a list of labels or a number for each answer."""
        if self.task_type == "regression":
            return [float(scores[0]) for scores in answers]
        if self.task_type == "classification":
            return [self.labels[self._chosen(scores)[0]] for scores in answers]
        return [
            [self.labels[index] for index in self._chosen(scores)]
            for scores in answers
        ]

    def _chosen(self, scores: np.ndarray) -> list[int]:
        """Returns the indices of the predicted labels; of the number, [0]."""
        if self.task_type == "multilabel":
            chosen: list[int] = np.flatnonzero(
                scores >= self.thresholds
            ).tolist()
            return chosen
        return [int((scores - self.thresholds).argmax())]

    @functools.cached_property
    def thresholds(self) -> np.ndarray:
        """The threshold of each label, [C]; in regression, [1]."""
        default = (0.5,) * (len(self.labels) or 1)
        return np.array(self.calibration.thresholds or default)

    def wrong_answers(
        self, examples: Texts, answers: Any
    ) -> Iterator[WrongAnswer]:
        """Yields the wrong answers; none in regression."""
        predictions = self.predictions(answers)
        for example, scores, prediction in zip(
            examples, answers, predictions, strict=True
        ):
            labels = self.labels_of(example)
            predicted = self.labels_of(example._replace(label=prediction))
            if {*labels} != {*predicted}:
                yield WrongAnswer(
                    example,
                    prediction,
                    self._probability(scores, predicted),
                    self._probability(scores, labels),
                )

    def _probability(self, scores: np.ndarray, labels: Sequence[str]) -> float:
        """Returns the probability of a label.

        In multi-label tasks, this is the probability of exactly these labels,
        as if they were independent.
        """
        has_label = np.array([label in labels for label in self.labels])
        if self.task_type == "multilabel":
            return float(np.where(has_label, scores, 1 - scores).prod())
        return float(scores[has_label].sum())

    def metrics(self, examples: Texts, answers: Any) -> dict[str, Any]:
        if any(example.label is None for example in examples):
            return {}
        targets, scores = self._targets(examples), np.stack(answers)
        if self.task_type == "multilabel":
            return classification.multilabel(targets, scores, self.labels)
        if self.task_type == "regression":
            targets = self.unscale(targets)
            found = regression.pearson_and_spearman(targets, scores[:, 0])
            return found | self._ranking(examples, scores)
        predicted = scores.argmax(axis=1)
        per_class = classification.per_class(targets, predicted, self.labels)
        function, _ = _METRICS[self.metric]
        results = function(targets, predicted) | per_class
        if len(self.labels) == 2:
            results |= classification.rarer_of_two(targets, scores)
        return results | self._ranking(examples, scores)

    def _ranking(self, examples: Texts, answers: Any) -> dict[str, float]:
        """Returns the metrics of ranking the pairs of each query, if any."""
        groups = [example.group for example in examples]
        if None in groups:
            return {}
        # Not unscaled targets, in which 0 may be rounded to a positive number.
        labels = [example.label for example in examples]
        gains = [*map(self.labels.index, labels)] if self.labels else labels
        relevance = self.relevance(answers)
        return ranking.ranking_of_groups(groups, gains, relevance)

    @property
    def ranks_pairs(self) -> bool:
        return self.is_pair is not False and self.task_type != "multilabel"

    def relevance(self, answers: Any) -> np.ndarray:
        """Returns numbers [N] that rank pairs of a query and a document.

        In regression, they are the answers. In classification, they are the
        means of the labels' ids, as each label means more relevance than the
        one before it; with two labels, the probability of the second one.
        """
        scores = np.stack(answers)
        ids = np.arange(scores.shape[1]) if self.labels else np.ones(1)
        return scores @ ids.astype(scores.dtype)

    def calibrate(
        self, examples: Texts, answers: Any, *, fits: bool
    ) -> Calibrated:
        """Calibrates classifiers; see `tasks.calibration`."""
        are_known = all(example.label is not None for example in examples)
        if self.task_type == "regression" or not answers:
            return Calibrated(self, answers, {})
        task, scores = self, np.stack(answers)
        metrics: dict[str, float] = {}
        if are_known:
            targets = self._targets(examples)
            if fits:
                fitted, metrics = calibration.fit(targets, scores, self.labels)
                task = dataclasses.replace(self, calibration=fitted)
            else:
                metrics = calibration.measure(
                    self.calibration, targets, scores, self.labels
                )
        temperature = task.calibration.temperature
        if temperature != 1.0:
            answers = [*calibration.with_temperature(scores, temperature)]
        return Calibrated(task, answers, metrics)

    def _targets(self, examples: Texts) -> np.ndarray:
        """Returns classes or numbers, [N]; if multi-label, bool [N, C]."""
        targets = np.array([self._label_ids(example) for example in examples])
        is_multilabel = self.task_type == "multilabel"
        return targets.astype(bool) if is_multilabel else targets[:, 0]

    @property
    def uncalibrated(self) -> "TextTask":
        return dataclasses.replace(self, calibration=NO_CALIBRATION)

    def with_calibration_of(self, other: Task) -> "TextTask":
        if not isinstance(other, TextTask):
            return self
        return dataclasses.replace(self, calibration=other.calibration)

    def with_answer_options(self, options: AnswerOptions) -> "TextTask":
        if self.task_type == "regression":
            options.require_support(self.task_type)
        columns = self.columns
        if options.text_a_column:
            pair = (options.text_a_column, options.text_b_column)
            names = tuple(name for name in pair if name)
            columns = (columns or TextColumns(names))._replace(names=names)
        fitted = self.calibration if options.calibrated else NO_CALIBRATION
        task = dataclasses.replace(self, columns=columns, calibration=fitted)
        return task._with_threshold(options) if options.threshold else task

    def _with_threshold(self, options: AnswerOptions) -> "TextTask":
        """Returns the task with the thresholds of --threshold.

        Raises `InputError` if they do not fit the labels.
        """
        given = dict(parse_thresholds(options.threshold))
        known = dict(zip(self.labels, self.thresholds.tolist(), strict=True))
        if self.task_type == "multilabel":
            if "" in given:
                given = dict.fromkeys(self.labels, given[""])
            is_valid = True
        else:
            is_valid = (len(given), len(known)) == (1, 2)
            # The other label is predicted below the threshold.
            known = dict.fromkeys(self.labels, 1 - sum(given.values()))
        if not is_valid or given.keys() - known.keys():
            message = (
                "must name labels of the model or, if each text has one label, "
                f"one of two. The labels are {listed(self.labels)}."
            )
            raise options.error("threshold", message)
        thresholds = tuple((known | given).values())
        calibration = self.calibration._replace(thresholds=thresholds)
        return dataclasses.replace(self, calibration=calibration)

    def margin(self, answer: dict[str, Any]) -> float:
        """Returns the smallest difference from a threshold, if there are any.

        Otherwise, returns that between the two highest probabilities.
        """
        if self.task_type != "multilabel" and not self.calibration.thresholds:
            return super().margin(answer)
        scores = np.array([*answer["probabilities"].values()])
        return float(np.abs(scores - self.thresholds).min())

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
        if isinstance(texts, list) and texts[1:] == [None]:
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

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns `label` or `labels` with `probabilities`, or `score`."""
        [prediction] = self.predictions([answer])
        if self.task_type == "regression":
            return {"score": prediction}
        name = "label" if self.task_type == "classification" else "labels"
        scores = zip(self.labels, map(float, answer), strict=True)
        return {name: prediction, "probabilities": dict(scores)}

    @classmethod
    def of_transformers(cls, model: TransformersModel) -> "TextTask":
        """Returns the task; one output means regression.

        As in transformers and sentence-transformers, the answer is the sigmoid
        of the output, unless the model says otherwise.
        """
        labels, problem_type = model.labels, model.problem_type
        if problem_type == "regression" and len(labels) > 1:
            raise InputError(
                f"{model.where}: a regression model must have one label. "
                f"Received: {listed(labels)}. To convert only the encoder, add "
                "--skip='^classifier'."
            )
        if problem_type == PROBLEM_TYPES["multilabel"]:
            return cls(task_type="multilabel", labels=labels)
        if len(labels) == 1:
            is_number = problem_type == "regression"
            activation = "identity" if is_number else "sigmoid"
            return cls(task_type="regression", labels=(), activation=activation)
        return cls(task_type="classification", labels=labels)
