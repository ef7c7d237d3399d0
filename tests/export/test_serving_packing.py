"""Rows made in a graph are those that fine-tuning reads."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official_bert.export.serving import packing, tagging_signatures
from official_bert.inputs import text_inputs
from official_bert.inputs.text_inputs import SpecialIds
from official_bert.tasks import documents
from official_bert.tasks.documents import LongDocuments
from official_bert.tasks.tagging import make_windows

MARKS = SpecialIds(101, 102)
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 30]


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
    expected = [
        (example, list(a), list(b))
        for example, pair in enumerate(pairs)
        for a, b in documents.cut(*pair, max_seq_length, how)
    ]

    found = packing.cut(
        tf.ragged.constant([a for a, _ in pairs], tf.int32),
        tf.ragged.constant([b for _, b in pairs], tf.int32),
        max_seq_length,
        how,
    )

    rows = zip(
        found.example.numpy().tolist(),
        found.ids_a.to_list(),
        found.ids_b.to_list(),
        strict=True,
    )
    assert list(rows) == expected


def test_pairs_are_packed_as_in_training():
    pairs = [([1, 2], [3]), ([4], []), ([], []), ([], [5, 6, 7])]

    found = packing.pack(
        tf.ragged.constant([a for a, _ in pairs], tf.int32),
        tf.ragged.constant([b for _, b in pairs], tf.int32),
        MARKS,
    )

    for number, pair in enumerate(pairs):
        for name, values in text_inputs.text_features(*pair, MARKS).items():
            padded = values + [0] * (found[name].shape[1] - len(values))
            assert found[name][number].numpy().tolist() == padded


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

    found = tf.function(tagging_signatures._make_windows)(
        tf.constant(starts, tf.int64),
        tf.constant(np.cumsum([0, *itertools.chain(*sentences)]), tf.int64),
        room,
    )

    assert len(expected) > len(sentences)
    assert np.stack(found, axis=1).tolist() == expected
