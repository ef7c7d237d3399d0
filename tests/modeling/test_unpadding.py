import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from support import recorded

from official_bert.modeling.finetuning_models import (
    ChoiceClassifier,
    SentenceEncoder,
    SequenceClassifier,
    TokenClassifier,
)
from official_bert.modeling.layers import StepContext
from official_bert.modeling.unpadding import Unpadding
from official_bert.sources.heads import PoolingHead
from official_bert.training.step import recompute_in_backward

# 196 tokens in 40 rows of 9 positions.
LENGTHS = 1 + np.arange(40) % 9
MASK = (np.arange(9) < LENGTHS[:, np.newaxis]).astype(np.int32)

BILSTM = PoolingHead("none", 4)


def test_removed_positions_are_padding_and_do_not_come_back():
    mask = MASK.copy()
    mask[4] = [1, 0, 1, 0, 0, 0, 0, 0, 1]
    mask[7] = 0
    x = np.arange(1.0, 40 * 9 * 2 + 1, dtype=np.float32).reshape(40, 9, 2)
    kept = Unpadding.of(tf.constant(mask))
    num_rows = kept.positions.shape[0]
    assert mask.sum() < num_rows < 1.05 * (mask.sum() + 1)
    rows = kept.remove(tf.constant(x)).numpy()
    assert rows.shape == (num_rows, 2)
    is_token = mask.astype(bool)
    expected = x[is_token]
    assert {tuple(row) for row in rows} >= {tuple(row) for row in expected}
    restored = kept.restore(tf.constant(rows)).numpy()
    np.testing.assert_array_equal(restored[is_token], expected)
    np.testing.assert_array_equal(restored[:, 0], x[:, 0])


def test_batch_without_padding_keeps_all_positions():
    kept = Unpadding.of(tf.ones([3, 50], tf.int32))
    np.testing.assert_array_equal(kept.positions, np.arange(150))


def keep_all(layer, x):
    """Returns random bits with which dropout keeps everything."""
    return tf.fill(tf.shape(x), tf.constant(65535, tf.uint16))


@pytest.mark.slow
@pytest.mark.parametrize("recompute", [None, recompute_in_backward])
@pytest.mark.parametrize("is_left_to_right", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        SequenceClassifier,
        functools.partial(SequenceClassifier, pooling_head=BILSTM),
        ChoiceClassifier,
        TokenClassifier,
        SentenceEncoder,
    ],
)
def test_removing_padding_changes_no_results(make, is_left_to_right, recompute):
    config = dataclasses.replace(
        recorded.SMALL_CONFIG,
        num_hidden_layers=3,
        is_left_to_right=is_left_to_right,
    )
    model = recorded.assign(make(config), 5)
    shape = (20, 2, 9) if make is ChoiceClassifier else (40, 9)
    random = np.random.RandomState(0)
    batch = {
        "input_ids": random.randint(0, 30, MASK.shape),
        "input_mask": MASK,
        "segment_ids": random.randint(0, 2, MASK.shape),
    }
    batch = {k: tf.constant(v.reshape(shape)) for k, v in batch.items()}

    def run(removes_padding):
        context = StepContext(keep_all, None, recompute, removes_padding)
        with tf.GradientTape() as tape:
            outputs = model(batch, training=context)
            if make is TokenClassifier:
                outputs *= MASK[..., np.newaxis]
            loss = tf.reduce_sum(tf.sin(3.0 * outputs))
        weights = {w.path: w.value for w in model.learning_variables}
        return {"outputs": outputs, **tape.gradient(loss, weights)}

    expected, found = run(False), run(True)
    recorded.assert_all_close(found, expected, rtol=1e-4, atol=1e-4)
