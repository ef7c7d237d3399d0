import keras
import numpy as np
import pytest
from support import record_files

from official_bert.inputs import datasets, padding, schemas
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.schemas import Feature

SCHEMA = {**schemas.text_schema(64), "label_ids": Feature(1)}
LENGTHS = np.random.RandomState(0).randint(3, 65, 100)


def ids_of(label):
    random = np.random.RandomState(label)
    return random.randint(1, 100, LENGTHS[label]).tolist()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """100 examples of different lengths, labeled 0 to 99, in two files."""
    folder = tmp_path_factory.mktemp("data")
    examples = [
        {
            "input_ids": ids_of(label) + [0] * (64 - length),
            "input_mask": [1] * length + [0] * (64 - length),
            "segment_ids": [0] * 64,
            "label_ids": [label],
        }
        for label, length in enumerate(LENGTHS)
    ]
    parts = {"a": examples[:60], "b": examples[60:]}
    return RecordFiles(
        [record_files.write(folder / name, parts[name]) for name in parts],
        SCHEMA,
    )


def labels(batches):
    return [int(i) for batch in batches for i in batch["label_ids"][:, 0]]


def test_epoch_holds_every_record_once(data):
    for seed in (1, 2):
        found = datasets.training_batches(data, 5, seed=seed).take(40)
        one, other = np.reshape(labels(found), (2, 100)).tolist()
        assert sorted(one) == sorted(other) == list(range(100))
        assert one != other


@pytest.mark.slow
def test_same_seed_gives_the_same_order_from_any_start(data):
    def order(seed, start=0, number=120):
        found = datasets.training_batches(data, 3, seed=seed, start=start)
        return labels(found.take(number))

    assert order(1) == order(1) != order(2)
    assert order(1, start=12, number=116) == order(1)[12:]
    assert order(1, start=300, number=20) == order(1)[300:]


def test_evaluation_keeps_the_order_and_repeats_a_short_file(data):
    found = datasets.evaluation_batches(data, 40, 3)
    assert labels(found) == [*range(100), *range(20)]


def batches(data, number, batch_size=4, **settings):
    keras.utils.set_random_seed(1)
    found = datasets.finetuning_batches(
        data, batch_size, seed=1, num_examples=number * batch_size, **settings
    )
    return list(found.as_numpy_iterator())


def test_bucketed_batches_hold_whole_examples_in_random_order(data):
    found = batches(data, 200, pad_to="bucket")
    assert len(found) == 200
    for batch in found:
        length = batch["input_ids"].shape[1]
        longest = batch["input_mask"].sum(1).max()
        assert padding.padded_length(longest, 64, "bucket") == length
        expected = [ids_of(label) for label in batch["label_ids"][:, 0]]
        assert batch["input_ids"].tolist() == [
            ids + [0] * (length - len(ids)) for ids in expected
        ]
    widths = [batch["input_ids"].shape[1] for batch in found]
    assert set(widths) == set(padding.buckets(64))
    assert widths[:50] != sorted(widths[:50])


@pytest.mark.parametrize(("number", "batch_size"), [(37, 4), (9, 32), (3, 200)])
def test_buckets_change_only_the_order(data, number, batch_size):
    padded = labels(batches(data, number, batch_size))
    bucketed = labels(batches(data, number, batch_size, pad_to="bucket"))
    assert sorted(bucketed) == sorted(padded)
    assert bucketed != padded


def test_batches_of_any_lengths_can_be_cut_to_the_longest(data):
    found = batches(data, 37, trims=True)
    for batch, padded in zip(found, batches(data, 37), strict=True):
        longest = padding.padded_length(
            padded["input_mask"].sum(1).max(), 64, "bucket"
        )
        cut = {k: v[:, :longest] for k, v in padded.items()}
        np.testing.assert_equal(batch, cut)


@pytest.mark.slow
@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_run_continues_with_the_same_batches_from_any_start(data, pad_to):
    whole = batches(data, 60, pad_to=pad_to)
    for start in (0, 12, 25, 37, 59, 60):
        rest = batches(data, 60, pad_to=pad_to, start=4 * start)
        np.testing.assert_equal(rest, whole[start:])


@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_run_continues_with_another_batch_size(data, pad_to):
    """Users reduce the batch size if memory does not suffice."""
    found = batches(data, 34, 3, pad_to=pad_to, start=42)
    assert len(found) >= 20
    assert {len(batch["label_ids"]) for batch in found} == {3}
    if pad_to == "max":  # No example is lost or repeated.
        assert labels(found) == labels(batches(data, 26))[42:102]


def test_unbucketed_batches_are_shuffled_at_full_length(data):
    found = batches(data, 25)
    assert {b["input_ids"].shape for b in found} == {(4, 64)}
    # The shuffle buffer of 100 also holds examples of the next epoch.
    assert len(set(labels(found))) > 50
    assert labels(found) != sorted(labels(found))


def test_buckets_are_few_and_end_with_the_maximum():
    assert padding.buckets(10) == (6, 8, 10)
    below_64 = (*range(6, 32, 2), *range(32, 64, 4))
    assert padding.buckets(100) == (*below_64, *range(64, 100, 8), 100)
    above_128 = (*range(128, 256, 16), *range(256, 513, 32))
    assert padding.buckets(512)[-len(above_128) :] == above_128


def test_length_is_padded_to_the_next_bucket():
    for length, padded in [(1, 6), (6, 6), (7, 8), (113, 120), (128, 128)]:
        assert padding.padded_length(length, 128, "bucket") == padded
        assert padding.padded_length(length, 128, "max") == 128


def test_batches_start_with_the_longest_examples():
    batches, lengths = [], [3, 9, 5, 9, 1]

    def run(indices):
        batches.append(indices)
        return [lengths[index] for index in indices]

    found = padding.map_by_length(run, lengths, 2, in_parallel=False)
    assert (batches, found) == ([[1, 3], [2, 0], [4]], lengths)
    assert padding.map_by_length(run, [], 2) == []


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
