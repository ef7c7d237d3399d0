"""What one would score knowing nothing but how often things occur."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.inputs import records
from official_bert.inputs.records import RecordFiles


class Baseline(NamedTuple):
    """A model that always gives the same answer.

    Attributes:
        answer: The commonest label of the training data.
        accuracy: The share of evaluated labels that equal it, from 0 to 1.
    """

    answer: int
    accuracy: float


def always_the_same(
    train: RecordFiles,
    held_out: RecordFiles,
    feature: str,
    weight: str | None = None,
) -> Baseline:
    """Guesses for every label the one that is commonest in training.

    Args:
        train: Files whose labels are counted.
        held_out: Files it is measured on.
        feature: The labels, such as `masked_lm_ids`.
        weight: The feature that is 0 where there is no label, if any is.
    """
    answer = int(np.bincount(_labels(train, feature, weight)).argmax())
    labels = _labels(held_out, feature, weight)
    return Baseline(answer, float(np.mean(labels == answer)))


def _labels(data: RecordFiles, feature: str, weight: str | None) -> np.ndarray:
    """Returns all labels of some files, one after the other."""
    labels = []
    for serialized in tf.data.TFRecordDataset(list(data.names)).batch(1000):
        batch = records.parse(data.schema, serialized)
        values = batch[feature].numpy()
        labels.append(values[batch[weight].numpy() > 0] if weight else values)
    return np.concatenate([part.ravel() for part in labels])
