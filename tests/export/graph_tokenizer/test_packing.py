"""Rows are framed and shortened as elsewhere."""

import random

import numpy as np
import pytest
import tensorflow as tf

from official_bert.export.graph_packing import pack
from official_bert.inputs import text_inputs

MARKS = text_inputs.SpecialIds(cls=101, sep=102)


def draw(rng, num_segments):
    """Returns rows of segments of many lengths, none among them."""
    return [
        [
            [rng.randrange(1000, 2000) for _ in range(rng.randrange(12))]
            for _ in range(num_segments)
        ]
        for _ in range(40)
    ]


def ragged(rows, segment):
    return tf.ragged.constant([r[segment] for r in rows], tf.int32, 1)


def test_an_example():
    packed = pack(
        [tf.ragged.constant([[5, 6, 7]]), tf.ragged.constant([[8]])], 9, MARKS
    )

    assert {name: rows.numpy().tolist() for name, rows in packed.items()} == {
        "input_word_ids": [[101, 5, 6, 7, 102, 8, 102, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 1, 0, 0]],
        "input_type_ids": [[0, 0, 0, 0, 0, 1, 1, 0, 0]],
    }


@pytest.mark.parametrize("num_segments", [1, 2])
@pytest.mark.parametrize("seq_length", [4, 7, 8, 15, 30])
def test_equals_tensorflow_text(num_segments, seq_length):
    import tensorflow_text

    rows = draw(random.Random(seq_length), num_segments)
    segments = [ragged(rows, number) for number in range(num_segments)]

    packed = pack(segments, seq_length, MARKS, padding_id=9)

    room = seq_length - num_segments - 1
    ids, types = tensorflow_text.combine_segments(
        tensorflow_text.RoundRobinTrimmer(room).trim(segments), *MARKS
    )
    ids, mask = tensorflow_text.pad_model_inputs(ids, seq_length, pad_value=9)
    types, _ = tensorflow_text.pad_model_inputs(types, seq_length)
    np.testing.assert_array_equal(packed["input_word_ids"], ids)
    np.testing.assert_array_equal(packed["input_mask"], mask)
    np.testing.assert_array_equal(packed["input_type_ids"], types)


def shortened(ids_a, ids_b, room):
    """Shortens a pair as the 2018 release does, one piece after the other."""
    ids_a, ids_b = list(ids_a), list(ids_b)
    while len(ids_a) + len(ids_b) > room:
        (ids_a if len(ids_a) > len(ids_b) else ids_b).pop()
    return ids_a, ids_b


@pytest.mark.parametrize("seq_length", [4, 7, 8, 15, 30])
def test_equals_the_release(seq_length):
    rows = draw(random.Random(seq_length), 2)

    packed = pack(
        [ragged(rows, 0), ragged(rows, 1)], seq_length, MARKS, ends_empty=False
    )

    for number, (ids_a, ids_b) in enumerate(rows):
        room = seq_length - (3 if ids_b else 2)
        row = text_inputs.text_features(*shortened(ids_a, ids_b, room), MARKS)
        for name, expected in zip(packed, row.values(), strict=True):
            padded = expected + [0] * (seq_length - len(expected))
            assert packed[name][number].numpy().tolist() == padded


def test_shapes():
    words = tf.ragged.constant([[[1, 2], [3]], []], tf.int32, ragged_rank=2)
    call = tf.function(lambda length: pack([words], length, MARKS))

    assert pack([words], 6, MARKS)["input_word_ids"].numpy().tolist() == [
        [101, 1, 2, 3, 102, 0],
        [101, 102, 0, 0, 0, 0],
    ]
    assert call(tf.constant(3))["input_mask"].numpy().tolist() == [
        [1, 1, 1],
        [1, 1, 0],
    ]
    # Keras looks at the length that is known before there are rows.
    known = tf.function(lambda: pack([words], 6, MARKS)).get_concrete_function()
    assert known.output_shapes["input_type_ids"][1] == 6
    none = pack([words[:0], words[:0]], 5, MARKS)
    assert none["input_mask"].shape == (0, 5)
