"""Classification of texts: the probabilities of labels, and one label each."""

import collections
import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from official_bert.errors import InputError, listed
from official_bert.metrics import classification
from official_bert.options import AnswerOptions
from official_bert.options.answers import parse_thresholds
from official_bert.options.run_classifier import parse_class_weights
from official_bert.tasks import calibration, probabilities
from official_bert.tasks.calibration import NO_CALIBRATION, Calibration
from official_bert.tasks.data_set import WrongAnswer
from official_bert.tasks.task import Calibrated
from official_bert.tasks.text import TextExample, Texts, TextTask


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationTask(TextTask):
    """Texts with one label each. An answer is the labels' probabilities, [C].

    Attributes:
        weighting: The value of --class_weights.
        answer_key: The key of a prediction in JSON.
    """

    weighting: str = "none"

    task_type = "classification"
    problem_type = "single_label_classification"
    serving = "classification"
    baseline_name = "always the most frequent label"
    answer_key = "label"
    not_saved = (*TextTask.not_saved, "weighting")

    @property
    def default_metric(self) -> str:
        return classification.METRICS[self.metric][1]

    def labels_of(self, example: TextExample) -> Sequence[Any]:
        return () if example.label is None else (example.label,)

    def label_ids(self, example: TextExample) -> list[Any]:
        return [*map(self.labels.index, self.labels_of(example))] or [0]

    def activate(self, logits: np.ndarray) -> np.ndarray:
        return probabilities.softmax(logits / self.calibration.temperature)

    def chosen(self, answer: np.ndarray) -> list[int]:
        return [int((answer - self.thresholds).argmax())]

    def prediction(self, answer: np.ndarray) -> Any:
        return self.labels[self.chosen(answer)[0]]

    def probability(self, answer: np.ndarray, has_label: list[bool]) -> float:
        """Returns the probability of the labels that `has_label` marks, [C]."""
        return float(answer[has_label].sum())

    def compare(self, targets: np.ndarray, answers: np.ndarray) -> Any:
        predicted = answers.argmax(axis=1)
        function, _ = classification.METRICS[self.metric]
        per_class = classification.per_class(targets, predicted, self.labels)
        results = function(targets, predicted) | per_class
        if len(self.labels) == 2:
            results |= classification.rarer_of_two(targets, answers)
        return results

    def mean_target(self, training: Texts) -> np.ndarray:
        """Returns the share of each label."""
        one_hot = np.eye(len(self.labels))[self.targets(training)]
        return one_hot.mean(axis=0)

    def balanced_weights(self, counts: np.ndarray, total: int) -> np.ndarray:
        """Returns N / (C n) for n of N examples of C classes with examples."""
        share = total / np.count_nonzero(counts)
        return share / np.maximum(counts, 1)

    def relevance(self, answers: Any) -> np.ndarray:
        """Returns the means of the labels' ids.

        Each label means more relevance than the one before it. With two labels,
        this is the probability of the second one.
        """
        scores = np.stack(answers)
        return scores @ np.arange(scores.shape[1]).astype(scores.dtype)

    @property
    def has_thresholds(self) -> bool:
        """Whether thresholds decide which labels are predicted."""
        return bool(self.calibration.thresholds)

    def all_thresholds(self, given: dict[str, float]) -> dict[str, float]:
        """Returns {label: threshold} for the values of --threshold.

        Returns {} unless one of two labels is given. The other label is
        predicted below its threshold.
        """
        if (len(given), len(self.labels)) != (1, 2):
            return {}
        return dict.fromkeys(self.labels, 1 - sum(given.values())) | given

    def with_class_weights(self, value: str) -> "ClassificationTask":
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

        If they are balanced, a label that no or all examples have gets the
        weight 1.
        """
        if self.weighting == "none":
            return ()
        if self.weighting != "balanced":
            weights = dict(parse_class_weights(self.weighting))
            return tuple(weights.get(label, 1.0) for label in self.labels)
        found = collections.Counter(
            label for example in training for label in self.labels_of(example)
        )
        counts = np.array([found[label] for label in self.labels])
        balanced = self.balanced_weights(counts, len(training))
        is_mixed = balanced * counts > 0
        return tuple(np.where(is_mixed, balanced, 1.0).tolist())

    @functools.cached_property
    def thresholds(self) -> np.ndarray:
        """The threshold of each label, [C]."""
        return np.array(self.calibration.thresholds or [0.5] * len(self.labels))

    def wrong_answers(
        self, examples: Texts, answers: Any
    ) -> Iterator[WrongAnswer]:
        for example, answer in zip(examples, answers, strict=True):
            prediction = self.prediction(answer)
            predicted, expected = (
                [label in self.labels_of(e) for label in self.labels]
                for e in (example._replace(label=prediction), example)
            )
            if predicted != expected:
                yield WrongAnswer(
                    example,
                    prediction,
                    self.probability(answer, predicted),
                    self.probability(answer, expected),
                )

    def calibrate(
        self, examples: Texts, answers: Any, *, fits: bool
    ) -> Calibrated:
        """Calibrates the answers; see `tasks.calibration`."""
        if not answers:
            return Calibrated(self, answers, {})
        scores = np.stack(answers)
        fitted, metrics = calibration.Fitted(self.calibration, {})
        if all(example.label is not None for example in examples):
            data = self.targets(examples), scores, self.labels
            if fits:
                fitted, metrics = calibration.fit(*data)
            elif fitted != NO_CALIBRATION:
                metrics = calibration.measure(*data, *fitted)
        if (temperature := fitted.temperature) != 1.0:
            answers = [*calibration.with_temperature(scores, temperature)]
        return Calibrated(self.with_calibration(fitted), answers, metrics)

    def with_calibration(self, calibration: Calibration) -> TextTask:
        return dataclasses.replace(self, calibration=calibration)

    def with_answer_options(self, options: AnswerOptions) -> TextTask:
        task: Any = super().with_answer_options(options)
        if not options.calibrated:
            task = task.with_calibration(NO_CALIBRATION)
        return task._with_threshold(options) if options.threshold else task

    def _with_threshold(self, options: AnswerOptions) -> TextTask:
        """Returns the task with the thresholds of --threshold.

        Raises `InputError` if they do not fit the labels.
        """
        given = dict(parse_thresholds(options.threshold))
        thresholds = self.all_thresholds(given)
        if thresholds.keys() != {*self.labels}:
            message = (
                "must name labels of a multi-label model, or one of the two "
                "labels of another classifier, such as spam=0.2. The labels "
                f"are {listed(self.labels)}."
            )
            raise options.error("threshold", message)
        return self.with_calibration(
            self.calibration._replace(thresholds=tuple(thresholds.values()))
        )

    def margin(self, answer: dict[str, Any]) -> float:
        """Returns the smallest difference from a threshold, if there are any.

        Otherwise, returns the difference of the two highest probabilities.
        """
        if not self.has_thresholds:
            return super().margin(answer)
        scores = np.array([*answer["probabilities"].values()])
        return float(np.abs(scores - self.thresholds).min())

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns `label` or `labels` with `probabilities`."""
        scores = dict(zip(self.labels, map(float, answer), strict=True))
        prediction = self.prediction(answer)
        return {self.answer_key: prediction, "probabilities": scores}
