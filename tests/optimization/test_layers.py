"""Freezing and layer-wise learning rates go by the weights' paths."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.optimization import layers
from official_bert.optimization.adam import AdamWeightDecay
from official_bert.optimization.schedules import LinearWarmupDecay

PATHS = [
    "bert/embeddings/word_embeddings",
    "bert/encoder/layer_0/output/dense/kernel",
    "bert/encoder/layer_1/output/dense/kernel",
    "bert/encoder/layer_10/output/dense/kernel",
    "bert/pooler/dense/kernel",
    "output_weights",
]


class Weight:
    def __init__(self, path):
        self.path = path


@pytest.mark.parametrize(
    ("freeze", "left"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ("embeddings", [1, 2, 3, 4, 5]),
        ("1", [0, 1, 3, 4, 5]),
        ("embeddings,0-1", [3, 4, 5]),
        ("10,pooler", [0, 1, 2, 5]),
        ("embeddings,0-11,pooler", [5]),
    ],
)
def test_what_is_named_is_frozen(freeze, left):
    found = layers.trained(map(Weight, PATHS), freeze)
    assert [w.path for w in found] == [PATHS[i] for i in left]


def test_rates_fall_from_layer_to_layer():
    scales = layers.rate_scales(PATHS, 0.5, 12)
    powers = [13, 12, 11, 2, 0, 0]
    assert list(scales.values()) == [0.5**power for power in powers]


def test_an_update_is_scaled_as_a_whole():
    """The same weight and gradient, one with half the rate: half the step."""
    weights = [
        keras.Variable([1.0, -2.0], name=name) for name in ("one", "half")
    ]
    optimizer = AdamWeightDecay(
        weights,
        LinearWarmupDecay(0.1, num_train_steps=10, num_warmup_steps=0),
        rate_scales={"half": 0.5},
    )
    optimizer.apply([tf.constant([0.3, 0.4])] * 2)
    steps = [np.array([1.0, -2.0]) - w.numpy() for w in weights]
    np.testing.assert_allclose(steps[1], steps[0] / 2, rtol=1e-5)
    assert abs(steps[0]).min() > 0.1
