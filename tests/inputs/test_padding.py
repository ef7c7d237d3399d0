"""Examples are padded to few lengths."""

from official_bert.inputs import padding, schemas
from official_bert.inputs.schemas import Feature


def test_buckets_are_few_and_end_with_the_maximum():
    assert padding.buckets(10) == (8, 10)
    assert padding.buckets(100) == (*range(8, 81, 8), 96, 100)
    above_128 = (*range(144, 192, 16), *range(192, 513, 32))
    assert padding.buckets(512)[10:] == (96, 112, 128, *above_128)


def test_length_is_padded_to_the_next_bucket():
    for length, padded in [(1, 8), (8, 8), (9, 16), (113, 128), (128, 128)]:
        assert padding.padded_length(length, 128, "bucket") == padded
        assert padding.padded_length(length, 128, "max") == 128


def test_batches_start_with_the_longest_examples():
    batches = padding.batches_by_length([3, 9, 5, 9, 1], 2)
    assert batches == [[1, 3], [2, 0], [4]]
    assert padding.batches_by_length([], 2) == []


def test_batch_is_filled_with_zeros():
    schema = {"ids": Feature(8, "max_seq_length"), "label_ids": Feature(1)}
    one = {"ids": [1, 2, 3], "label_ids": [4]}
    rows = [one, {"ids": [5], "label_ids": [6]}]
    batch = padding.pad_batch(schema, rows, length=4, batch_size=3)
    assert batch["ids"].tolist() == [[1, 2, 3, 0], [5, 0, 0, 0], [0] * 4]
    assert batch["label_ids"].tolist() == [[4], [6], [0]]


def test_each_choice_is_padded():
    schema = schemas.text_schema(8, num_choices=2)
    row = {name: [[1, 2, 3], [4]] for name in schema}
    assert padding.row_length(row) == 3
    batch = padding.pad_batch(schema, [row], 4, 1)
    assert batch["input_ids"].tolist() == [[[1, 2, 3, 0], [4, 0, 0, 0]]]
