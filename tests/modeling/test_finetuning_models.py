"""Fine-tuning models: their output layer, its inputs and its dropout."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.finetuning_models import (
    SequenceClassifier,
    SpanModel,
    TokenClassifier,
)

CONFIG = recorded.without_dropout(recorded.SMALL_CONFIG)


def test_initial_output_weights_do_not_depend_on_the_config():
    """The original implementation has a fixed standard deviation of 0.02."""
    config = dataclasses.replace(CONFIG, initializer_range=1.0)
    weights = SequenceClassifier(config, 500).output_weights.numpy()
    assert 0.016 < weights.std() < 0.019
    assert abs(weights).max() <= 0.0401


@pytest.fixture
def batch():
    random = np.random.RandomState(0)
    limits = {"input_ids": 30, "input_mask": 2, "segment_ids": 2}
    return {
        name: tf.constant(random.randint(0, limit, (4, 10)), tf.int32)
        for name, limit in limits.items()
    }


@pytest.mark.parametrize(
    ("kind", "has_dropout"),
    [(SequenceClassifier, True), (TokenClassifier, True), (SpanModel, False)],
)
def test_output_dropout_is_applied_except_in_span_models(
    batch, kind, has_dropout
):
    model = kind(CONFIG)
    same = np.allclose(model(batch), model(batch, training=True))
    assert same != has_dropout
