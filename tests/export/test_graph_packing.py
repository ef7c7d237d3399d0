"""Sequences and windows of the graph equal those of Python."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from official_bert.export.graph_packing import fit, pack
from official_bert.export.serving.tagging_signatures import _make_windows
from official_bert.inputs.text_inputs import SpecialIds, text_features
from official_bert.tasks import documents
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tagging import make_windows

SPECIAL_IDS = SpecialIds(cls=101, sep=102)
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 30]


def random_segments(seed, num_segments):
    """Returns segments of 40 rows with 0 to 11 tokens."""
    rng = random.Random(seed)
    return [
        [
            [rng.randrange(1000, 2000) for _ in range(rng.randrange(12))]
            for _ in range(40)
        ]
        for _ in range(num_segments)
    ]


def ragged(rows):
    return tf.ragged.constant(rows, tf.int32, 1)


@pytest.mark.parametrize("num_segments", [1, 2])
@pytest.mark.parametrize("seq_length", [4, 7, 8, 15, 30])
def test_pack_equals_tensorflow_text(num_segments, seq_length):
    import tensorflow_text

    segments = list(map(ragged, random_segments(seq_length, num_segments)))

    packed = pack(segments, seq_length, SPECIAL_IDS, padding_id=9)

    room = seq_length - num_segments - 1
    ids, types = tensorflow_text.combine_segments(
        tensorflow_text.RoundRobinTrimmer(room).trim(segments), *SPECIAL_IDS
    )
    ids, mask = tensorflow_text.pad_model_inputs(ids, seq_length, pad_value=9)
    types, _ = tensorflow_text.pad_model_inputs(types, seq_length)
    np.testing.assert_array_equal(packed["input_word_ids"], ids)
    np.testing.assert_array_equal(packed["input_mask"], mask)
    np.testing.assert_array_equal(packed["input_type_ids"], types)


@pytest.mark.parametrize("seq_length", [5, 7, 8, 15, 30])
def test_pack_equals_the_inputs_of_training(seq_length):
    a, b = random_segments(seq_length, 2)

    packed = pack(
        [ragged(a), ragged(b)], seq_length, SPECIAL_IDS, ends_empty=False
    )

    for number, (ids_a, ids_b) in enumerate(zip(a, b, strict=True)):
        [(ids_a, ids_b)] = documents.cut(
            ids_a, ids_b, seq_length, documents.TRUNCATE_TAIL
        )
        row = text_features(ids_a, ids_b, SPECIAL_IDS)
        for name, expected in zip(packed, row.values(), strict=True):
            padded = expected + [0] * (seq_length - len(expected))
            assert packed[name][number].numpy().tolist() == padded


def test_pack_takes_words_and_lengths_that_are_tensors():
    words = tf.ragged.constant([[[1, 2], [3]], []], tf.int32, ragged_rank=2)
    call = tf.function(lambda length: pack([words], length, SPECIAL_IDS))

    assert pack([words], 6, SPECIAL_IDS)["input_word_ids"].numpy().tolist() == [
        [101, 1, 2, 3, 102, 0],
        [101, 102, 0, 0, 0, 0],
    ]
    assert call(tf.constant(3))["input_mask"].numpy().tolist() == [
        [1, 1, 1],
        [1, 1, 0],
    ]
    # Keras needs the static shape.
    known = tf.function(lambda: pack([words], 6, SPECIAL_IDS))
    shapes = known.get_concrete_function().output_shapes
    assert shapes["input_type_ids"][1] == 6
    nothing = pack([words[:0], words[:0]], 5, SPECIAL_IDS)
    assert nothing["input_mask"].shape == (0, 5)


@pytest.mark.parametrize("max_seq_length", [5, 8, 11, 12])
@pytest.mark.parametrize(
    "how",
    [
        LongDocuments("truncate_tail"),
        LongDocuments("head_tail"),
        LongDocuments("windows"),
        LongDocuments("windows", 3),
        LongDocuments("windows", 100),
    ],
    ids=lambda how: f"{how.mode} {how.stride}",
)
def test_long_texts_are_cut_as_in_training(how, max_seq_length):
    pairs = [
        (list(range(1000, 1000 + a)), list(range(2000, 2000 + b)))
        for a, b in itertools.product(LENGTHS, LENGTHS)
    ]

    found = fit(*map(ragged, zip(*pairs, strict=True)), max_seq_length, how)

    assert list(
        zip(
            found.example.numpy().tolist(),
            found.ids_a.to_list(),
            found.ids_b.to_list(),
            strict=True,
        )
    ) == [
        (example, list(a), list(b))
        for example, pair in enumerate(pairs)
        for a, b in documents.cut(*pair, max_seq_length, how)
    ]


@pytest.mark.parametrize("room", [3, 4, 9, 22])
def test_sentences_are_read_in_the_windows_of_training(room):
    random = np.random.RandomState(room)
    sentences = [
        random.randint(1, 1 + random.randint(1, room + 1), length).tolist()
        for length in (0, 1, 2, 9, 30, 0, 60, 5)
    ]
    starts = np.cumsum([0, *(len(sizes) for sizes in sentences)])
    expected = [
        [int(word + start) for word in window]
        for start, sizes in zip(starts, sentences, strict=False)
        for window in make_windows(sizes, 0, len(sizes), room)
    ]

    found = tf.function(_make_windows)(
        tf.constant(starts, tf.int64),
        tf.constant(np.cumsum([0, *itertools.chain(*sentences)]), tf.int64),
        room,
    )

    assert len(expected) > len(sentences)
    assert np.stack(found, axis=1).tolist() == expected
