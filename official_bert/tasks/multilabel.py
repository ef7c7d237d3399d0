"""Multi-label classification: each text has any number of labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from official_bert.inputs.schemas import Feature, Schema
from official_bert.metrics import classification
from official_bert.tasks import probabilities
from official_bert.tasks.classification import ClassificationTask
from official_bert.tasks.text import TextExample, Texts


class MultilabelTask(ClassificationTask):
    """Texts with a tuple of labels, which are predicted independently."""

    task_type = "multilabel"
    problem_type = "multi_label_classification"
    serving = "multilabel"
    answer_key = "labels"
    default_metric = "micro_f1"
    baseline_name = "always the labels of at least half of the training data"
    ranks_pairs = False
    has_thresholds = True

    def schema(self, max_seq_length: int) -> Schema:
        """Returns the features; `label_ids` has a 0 or 1 for each label."""
        label_ids = {"label_ids": Feature(len(self.labels))}
        return {**super().schema(max_seq_length), **label_ids}

    def labels_of(self, example: TextExample) -> Sequence[Any]:
        return tuple(example.label or ())

    def label_ids(self, example: TextExample) -> list[Any]:
        labels = self.labels_of(example)
        return [int(label in labels) for label in self.labels]

    def targets(self, examples: Texts) -> np.ndarray:
        ids = np.array([self.label_ids(example) for example in examples])
        return ids.astype(bool)

    def mean_target(self, training: Texts) -> np.ndarray:
        """Returns the share of examples with each label."""
        return self.targets(training).mean(axis=0)

    def activate(self, logits: np.ndarray) -> np.ndarray:
        return probabilities.sigmoid(logits / self.calibration.temperature)

    def chosen(self, answer: np.ndarray) -> list[int]:
        return [int(i) for i in np.flatnonzero(answer >= self.thresholds)]

    def prediction(self, answer: np.ndarray) -> list[str]:
        return [self.labels[index] for index in self.chosen(answer)]

    def probability(self, answer: np.ndarray, has_label: list[bool]) -> float:
        """Returns the product of the probabilities of all decisions."""
        return float(np.where(has_label, answer, 1 - answer).prod())

    def compare(self, targets: np.ndarray, answers: np.ndarray) -> Any:
        return classification.multilabel(targets, answers, self.labels)

    def balanced_weights(self, counts: np.ndarray, total: int) -> np.ndarray:
        """Returns (N - n) / n for n of N examples."""
        return (total - counts) / np.maximum(counts, 1)

    def all_thresholds(self, given: dict[str, float]) -> dict[str, float]:
        """Returns the threshold of each label; the key "" means all labels."""
        if "" in given:
            return dict.fromkeys(self.labels, given[""])
        known = zip(self.labels, self.thresholds.tolist(), strict=True)
        return dict(known) | given
