"""Batches hold all of every row, and little else."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.inputs import datasets, padding, schemas
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.row_encoding import encode_rows
from official_bert.inputs.schemas import Feature

SCHEMA = {**schemas.text_schema(64), "label_ids": Feature(1)}


def make_rows(number, seed=0):
    random = np.random.RandomState(seed)
    for index in range(number):
        length = random.randint(3, 65)
        yield {
            "input_ids": random.randint(1, 100, length).tolist(),
            "input_mask": [1] * length,
            "segment_ids": [0] * length,
            "label_ids": [index],
        }


def test_lengths_are_few_and_end_with_the_longest():
    up_to_80 = (8, 16, 24, 32, 40, 48, 56, 64, 72, 80)
    assert padding.buckets(128) == (*up_to_80, 96, 112, 128)
    assert padding.buckets(100) == (*up_to_80, 96, 100)
    assert padding.buckets(10) == (8, 10)
    assert padding.buckets(384)[10:] == (
        *(96, 112, 128, 144, 160, 176, 192, 224, 256, 288, 320, 352, 384),
    )
    assert padding.buckets(512)[-2:] == (480, 512)


@pytest.mark.parametrize(
    ("length", "padded"),
    [(1, 8), (8, 8), (9, 16), (17, 24), (113, 128), (128, 128)],
)
def test_the_next_length_is_taken(length, padded):
    assert padding.padded_length(length, 128, "bucket") == padded
    assert padding.padded_length(length, 128, "max") == 128


def test_long_rows_go_together_and_first():
    together = padding.batches_by_length([3, 9, 5, 9, 1], 2)
    assert together == [[1, 3], [2, 0], [4]]
    assert padding.batches_by_length([], 2) == []


def test_a_batch_holds_its_rows_and_zeros():
    rows = list(make_rows(3))
    batch = padding.pad_batch(SCHEMA, rows, 64, 5)
    for number, row in enumerate(rows):
        length = len(row["input_ids"])
        for name in ("input_ids", "input_mask", "segment_ids"):
            assert batch[name].shape == (5, 64)
            assert batch[name][number, :length].tolist() == row[name]
            assert not batch[name][number, length:].any()
            assert not batch[name][3:].any()
    assert batch["label_ids"].tolist() == [[0], [1], [2], [0], [0]]


def test_choices_are_padded_each_by_itself():
    schema = schemas.text_schema(8, num_choices=2)
    row = {name: [[1, 2, 3], [4]] for name in schema}
    assert padding.row_length(row) == 3
    batch = padding.pad_batch(schema, [row], 4, 1)
    assert batch["input_ids"].tolist() == [[[1, 2, 3, 0], [4, 0, 0, 0]]]


@pytest.fixture
def data(tmp_path):
    """100 records of different lengths."""
    path = str(tmp_path / "train.tf_record")
    with tf.io.TFRecordWriter(path) as writer:
        batch = padding.pad_batch(SCHEMA, list(make_rows(100)), 64, 100)
        for example in encode_rows(batch):
            writer.write(example)
    return RecordFiles([path], SCHEMA)


def batches(data, number, batch_size=4, **settings):
    keras.utils.set_random_seed(1)
    found = datasets.finetuning_batches(
        data,
        batch_size,
        seed=1,
        num_examples=number * batch_size,
        **settings,
    )
    return [{name: v.numpy() for name, v in batch.items()} for batch in found]


def labels(found):
    return [label for batch in found for label in batch["label_ids"][:, 0]]


def test_bucketed_batches_hold_whole_rows_in_random_order(data):
    rows = {row["label_ids"][0]: row["input_ids"] for row in make_rows(100)}
    found = batches(data, 200, pad_to="bucket")
    assert len(found) == 200
    for batch in found:
        length = batch["input_ids"].shape[1]
        longest = batch["input_mask"].sum(1).max()
        assert padding.padded_length(longest, 64, "bucket") == length
        for ids, label in zip(
            batch["input_ids"], batch["label_ids"], strict=True
        ):
            row = rows[label[0]]
            assert ids[: len(row)].tolist() == row
            assert not ids[len(row) :].any()
    widths = [batch["input_ids"].shape[1] for batch in found]
    assert set(widths) == set(padding.buckets(64))
    assert widths[:50] != sorted(widths[:50])


@pytest.mark.parametrize(
    ("number", "batch_size"), [(200, 4), (37, 4), (9, 32), (7, 100), (3, 200)]
)
def test_buckets_change_nothing_but_the_order(data, number, batch_size):
    padded = batches(data, number, batch_size)
    bucketed = batches(data, number, batch_size, pad_to="bucket")
    assert sorted(labels(bucketed)) == sorted(labels(padded))
    assert labels(bucketed) != labels(padded)


@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_the_same_seed_gives_the_same_order_anywhere(data, pad_to):
    whole = batches(data, 60, pad_to=pad_to)
    for start in (0, 12, 25, 37, 59, 60):
        rest = batches(data, 60, pad_to=pad_to, start=4 * start)
        for one, other in zip(whole[start:], rest, strict=True):
            for name in SCHEMA:
                np.testing.assert_array_equal(one[name], other[name])


def test_another_seed_gives_another_order_of_batches(data):
    """Of the same records, in which only lengths differ."""
    every = tf.data.TFRecordDataset(list(data.names)).batch(60)
    serialized = next(iter(every))
    orders = [
        [
            batch["label_ids"].numpy().ravel().tolist()
            for batch in datasets._by_length(SCHEMA, serialized, 4, seed)
        ]
        for seed in ((1, 0), (1, 0), (2, 0), (1, 1))
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]
    assert orders[0] != orders[3]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(orders[3])


def rest_of_a_run(data, pad_to):
    """What comes after five batches of 8, if the others are of 3."""
    keras.utils.set_random_seed(1)
    return datasets.finetuning_batches(
        *(data, 3),
        seed=1,
        num_examples=40 + 20 * 3,
        pad_to=pad_to,
        start=40,
    )


def test_a_run_may_go_on_with_another_batch_size(data):
    """As it must where memory did not suffice: nothing is lost or repeated."""
    whole = labels(batches(data, 25))
    found = [batch["label_ids"].numpy() for batch in rest_of_a_run(data, "max")]
    assert np.concatenate(found)[:, 0].tolist() == whole[40:]


def test_it_may_with_buckets_and_has_enough_batches(data):
    rest = list(rest_of_a_run(data, "bucket"))
    assert len(rest) >= 20
    assert {batch["label_ids"].shape[0] for batch in rest} == {3}


def test_without_buckets_rows_come_at_full_length_and_shuffled(data):
    found = batches(data, 25)
    assert {b["input_ids"].shape for b in found} == {(4, 64)}
    # The buffer of 100 has room for the next epoch's first ones.
    assert len(set(labels(found))) > 50
    assert labels(found) != sorted(labels(found))


def test_nothing_tunes_itself_and_keeps_a_run_waiting_at_its_end(data):
    # It does so in one run of some four only, after seconds.
    for batches in (
        datasets.training_batches(data, 4, seed=1),
        datasets.evaluation_batches(data, 4, 3),
        datasets.finetuning_batches(data, 4, seed=1, num_examples=12),
    ):
        assert batches.options().autotune.enabled is False
