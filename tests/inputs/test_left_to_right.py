"""Masked records become whole text, of which each next piece is asked for."""

import numpy as np
import tensorflow as tf

from official_bert.inputs import left_to_right


def convert(**batch):
    tensors = {name: tf.constant(value) for name, value in batch.items()}
    found = left_to_right.to_next_pieces(tensors)
    compiled = tf.function(left_to_right.to_next_pieces, jit_compile=True)
    for name, value in compiled(tensors).items():
        np.testing.assert_array_equal(found[name], value)
    return {name: value.numpy() for name, value in found.items()}


def test_one_text_in_a_row():
    found = convert(
        input_ids=[[2, 4, 11, 99, 3, 0, 0], [2, 10, 11, 12, 13, 14, 4]],
        input_mask=[[1, 1, 1, 1, 1, 0, 0], [1] * 7],
        masked_lm_positions=[[1, 3, 0], [6, 0, 0]],
        masked_lm_ids=[[10, 12, 0], [3, 0, 0]],
        masked_lm_weights=[[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        next_sentence_labels=[[1], [0]],
    )
    text = [[2, 10, 11, 12, 3, 0, 0], [2, 10, 11, 12, 13, 14, 3]]
    np.testing.assert_array_equal(found["input_ids"], text)
    np.testing.assert_array_equal(
        found["masked_lm_positions"], [[0, 1, 2, 3, 4, 5]] * 2
    )
    np.testing.assert_array_equal(found["masked_lm_ids"], np.array(text)[:, 1:])
    np.testing.assert_array_equal(
        found["masked_lm_weights"], [[1, 1, 1, 1, 0, 0], [1] * 6]
    )
    np.testing.assert_array_equal(found["next_sentence_labels"], [[1], [0]])
    assert found["masked_lm_weights"].dtype == np.float32
    assert found["input_ids"].dtype == np.int32


def test_several_texts_in_a_row():
    """The first piece of a text is not to be guessed from the one before."""
    found = convert(
        input_ids=[[2, 10, 3, 2, 4, 12, 3, 0]],
        input_mask=[[1, 1, 1, 2, 2, 2, 2, 0]],
        masked_lm_positions=[[4, 0]],
        masked_lm_ids=[[11, 0]],
        masked_lm_weights=[[1.0, 0.0]],
    )
    np.testing.assert_array_equal(
        found["input_ids"], [[2, 10, 3, 2, 11, 12, 3, 0]]
    )
    np.testing.assert_array_equal(
        found["masked_lm_weights"], [[1, 1, 0, 1, 1, 1, 0]]
    )


def test_masking_is_undone():
    random = np.random.RandomState(0)
    text = random.randint(5, 100, (20, 30)).astype(np.int32)
    masked = text.copy()
    positions, labels, weights = (
        np.zeros((20, 8), kind) for kind in (np.int32, np.int32, np.float32)
    )
    for row in range(20):
        count = random.randint(1, 9)
        chosen = np.sort(random.permutation(30)[:count])
        positions[row, :count] = chosen
        labels[row, :count] = text[row, chosen]
        weights[row, :count] = 1
        masked[row, chosen] = 4
    found = convert(
        input_ids=masked,
        input_mask=np.ones_like(text),
        masked_lm_positions=positions,
        masked_lm_ids=labels,
        masked_lm_weights=weights,
    )
    assert (masked != text).any()
    np.testing.assert_array_equal(found["input_ids"], text)
