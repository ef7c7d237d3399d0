"""Regression: a number for each text, such as the similarity of a pair."""

from typing import Any

import numpy as np

from official_bert.inputs.schemas import Feature
from official_bert.metrics import regression
from official_bert.options import AnswerOptions
from official_bert.tasks import probabilities
from official_bert.tasks.text import TextExample, Texts, TextTask


class RegressionTask(TextTask):
    """Texts with a number each. An answer is a number, [1]."""

    task_type = "regression"
    problem_type = "regression"
    serving = "regression"
    default_metric = "pearson"
    baseline_name = "always the mean"
    label_feature = Feature(1, is_float=True)

    @property
    def loss_unit(self) -> float:
        """The variance of the targets."""
        return self.target_deviation**2

    def scale(self, numbers: Any) -> Any:
        """Standardizes numbers, as the model learns them."""
        return (numbers - self.target_mean) / self.target_deviation

    def unscale(self, logits: Any) -> Any:
        """Undoes `scale`."""
        return logits * self.target_deviation + self.target_mean

    def label_ids(self, example: TextExample) -> list[Any]:
        return [0 if example.label is None else self.scale(example.label)]

    def activate(self, logits: np.ndarray) -> np.ndarray:
        numbers = self.unscale(logits)
        if self.activation != "sigmoid":
            return numbers
        # In float32, all numbers above 17 have the same sigmoid.
        return probabilities.sigmoid(numbers.astype(np.float64))

    def prediction(self, answer: np.ndarray) -> float:
        return float(answer[0])

    def compare(self, targets: np.ndarray, answers: np.ndarray) -> Any:
        numbers = self.unscale(targets)
        return regression.pearson_and_spearman(numbers, answers[:, 0])

    def mean_target(self, training: Texts) -> np.ndarray:
        return self.unscale(super().mean_target(training))

    def relevance(self, answers: Any) -> np.ndarray:
        """Returns the answers."""
        return np.stack(answers)[:, 0]

    def with_answer_options(self, options: AnswerOptions) -> TextTask:
        options.require_support(self.task_type)
        return super().with_answer_options(options)

    def answer_to_json(self, example: Any, answer: Any) -> dict[str, Any]:
        """Returns the number as `score`."""
        return {"score": self.prediction(answer)}
