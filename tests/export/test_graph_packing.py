"""Packing and windows in the graph equal packing and windows in Python."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from official_bert.export.graph_packing import cut, pack
from official_bert.inputs.text_inputs import text_features
from official_bert.tasks import long_texts
from official_bert.tasks.long_texts import LongDocuments

SPECIAL_IDS = (101, 102)
VOCAB = dict(zip(("[CLS]", "[SEP]"), SPECIAL_IDS, strict=True))
LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 17, 30]


def random_segments(seed, num_segments):
    """Returns segments of 40 rows with 0 to 11 tokens."""
    random = np.random.RandomState(seed)
    return [
        [random.randint(1000, 2000, random.randint(12)) for _ in range(40)]
        for _ in range(num_segments)
    ]


def ragged(rows):
    return tf.ragged.constant([[*map(int, row)] for row in rows], tf.int32, 1)


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
    np.testing.assert_array_equal(list(packed.values()), [ids, mask, types])


@pytest.mark.parametrize("seq_length", [3, 4, 5, 7, 8, 15, 30])
def test_pack_equals_the_inputs_of_training(seq_length):
    a, b = random_segments(seq_length, 2)

    segments = [ragged(a), ragged(b)]
    packed = pack(segments, seq_length, SPECIAL_IDS, ends_empty=False)

    rows = zip(*(column.numpy() for column in packed.values()), strict=True)
    for row, ids_a, ids_b in zip(rows, a, b, strict=True):
        [pair] = long_texts.cut(
            [*ids_a], [*ids_b], seq_length, long_texts.TRUNCATE_TAIL
        )
        expected = text_features(*pair, VOCAB)
        for found, values in zip(row, expected.values(), strict=True):
            padding = [0] * (seq_length - len(values))
            assert found.tolist() == values + padding


def test_packed_sequences_have_a_static_length_for_keras():
    words = tf.ragged.constant([[[1, 2], [3]], []], tf.int32, ragged_rank=2)
    known = tf.function(lambda: pack([words], 6, SPECIAL_IDS))
    shapes = known.get_concrete_function().output_shapes
    assert {shape[1] for shape in shapes.values()} == {6}


@pytest.mark.parametrize("max_seq_length", [5, 8, 11, 12])
@pytest.mark.parametrize(
    "long_documents",
    [
        LongDocuments("truncate_tail"),
        LongDocuments("head_tail"),
        *(LongDocuments("windows", stride) for stride in (0, 3, 100)),
    ],
    ids=lambda long_documents: f"{long_documents.mode} {long_documents.stride}",
)
def test_long_texts_are_cut_as_in_training(long_documents, max_seq_length):
    pairs = [
        (list(range(1000, 1000 + a)), list(range(2000, 2000 + b)))
        for a, b in itertools.product(LENGTHS, LENGTHS)
    ]

    ids_a, ids_b, example = cut(
        *map(ragged, zip(*pairs, strict=True)), max_seq_length, long_documents
    )

    columns = example.numpy(), ids_a.to_list(), ids_b.to_list()
    assert [*zip(*columns, strict=True)] == [
        (number, list(a), list(b))
        for number, pair in enumerate(pairs)
        for a, b in long_texts.cut(*pair, max_seq_length, long_documents)
    ]
