"""Batches hold every example; the same seeds give the same order."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from support import record_files

from official_bert.inputs import datasets, padding, schemas
from official_bert.inputs.records import RecordFiles
from official_bert.inputs.schemas import Feature


@pytest.fixture(autouse=True)
def seeded():
    """Any seed but one modulo 2**31 - 1, with which nothing is shuffled."""
    keras.utils.set_random_seed(1)


def numbers(path, *bounds):
    schema = {"input_ids": Feature(1)}
    examples = [{"input_ids": [number]} for number in range(*bounds)]
    return RecordFiles([record_files.write(path, examples)], schema)


def first_ids(dataset):
    return [int(i) for batch in dataset for i in batch["input_ids"][:, 0]]


def test_epoch_holds_every_record_once(tmp_path):
    data = numbers(tmp_path / "a", 10)
    for seed in (1, 2):
        batches = datasets.training_batches(data, 5, seed=seed)
        ids = first_ids(batches.take(4))
        assert sorted(ids[:10]) == sorted(ids[10:]) == list(range(10))
        assert ids[:10] != ids[10:]


def test_same_seed_gives_the_same_order_from_any_start(tmp_path):
    data = numbers(tmp_path / "a", 10)
    other = numbers(tmp_path / "b", 10, 17)
    both = data._replace(names=[*data.names, *other.names])

    def order(seed, start=0):
        dataset = datasets.training_batches(both, 3, seed=seed, start=start)
        return first_ids(dataset.take(20))

    assert order(1) == order(1) != order(2)
    assert order(1, start=12)[:48] == order(1)[12:]
    assert order(1, start=51)[:9] == order(1)[51:]  # After three epochs.


def test_evaluation_keeps_the_order_and_repeats_a_short_file(tmp_path):
    data = numbers(tmp_path / "a", 10)
    batches = datasets.evaluation_batches(data, 4, 3)
    assert first_ids(batches) == [*range(10), 0, 1]


SCHEMA = {**schemas.text_schema(64), "label_ids": Feature(1)}
LENGTHS = np.random.RandomState(0).randint(3, 65, 100)


def ids_of(label):
    random = np.random.RandomState(label)
    return random.randint(1, 100, LENGTHS[label]).tolist()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """100 examples of different lengths, labelled 0 to 99."""
    path = tmp_path_factory.mktemp("data") / "train.tf_record"
    examples = [
        {
            "input_ids": ids_of(label) + [0] * (64 - length),
            "input_mask": [1] * length + [0] * (64 - length),
            "segment_ids": [0] * 64,
            "label_ids": [label],
        }
        for label, length in enumerate(LENGTHS)
    ]
    return RecordFiles([record_files.write(path, examples)], SCHEMA)


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
    return [int(i) for batch in found for i in batch["label_ids"][:, 0]]


def test_bucketed_batches_hold_whole_examples_in_random_order(data):
    found = batches(data, 200, pad_to="bucket")
    assert len(found) == 200
    for batch in found:
        length = batch["input_ids"].shape[1]
        longest = batch["input_mask"].sum(1).max()
        assert padding.padded_length(longest, 64, "bucket") == length
        for ids, label in zip(
            batch["input_ids"], batch["label_ids"][:, 0], strict=True
        ):
            expected = ids_of(label)
            assert ids.tolist() == expected + [0] * (length - len(expected))
    widths = [batch["input_ids"].shape[1] for batch in found]
    assert set(widths) == set(padding.buckets(64))
    assert widths[:50] != sorted(widths[:50])


@pytest.mark.parametrize(
    ("number", "batch_size"), [(200, 4), (37, 4), (9, 32), (7, 100), (3, 200)]
)
def test_buckets_change_only_the_order(data, number, batch_size):
    padded = batches(data, number, batch_size)
    bucketed = batches(data, number, batch_size, pad_to="bucket")
    assert sorted(labels(bucketed)) == sorted(labels(padded))
    assert labels(bucketed) != labels(padded)


@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_run_continues_with_the_same_batches_from_any_start(data, pad_to):
    whole = batches(data, 60, pad_to=pad_to)
    for start in (0, 12, 25, 37, 59, 60):
        rest = batches(data, 60, pad_to=pad_to, start=4 * start)
        for one, other in zip(whole[start:], rest, strict=True):
            for name in SCHEMA:
                np.testing.assert_array_equal(one[name], other[name])


def test_seed_and_pool_decide_the_order_of_bucketed_batches(data):
    every = tf.data.TFRecordDataset(list(data.names)).batch(60)
    serialized = next(iter(every))
    one, same, *others = (
        labels(datasets._batches_by_length(SCHEMA, serialized, 4, seed))
        for seed in ((1, 0), (1, 0), (2, 0), (1, 1))
    )
    assert one == same
    for other in others:
        assert one != other
        assert sorted(one) == sorted(other)


@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_run_continues_with_another_batch_size(data, pad_to):
    """As it must if memory did not suffice."""
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


def test_autotuning_is_off(data):
    # It would delay the exit by seconds, in one of some four runs.
    for batches in (
        datasets.training_batches(data, 4, seed=1),
        datasets.evaluation_batches(data, 4, 3),
        datasets.finetuning_batches(data, 4, seed=1, num_examples=12),
    ):
        assert batches.options().autotune.enabled is False


@pytest.mark.parametrize("jit_compile", [False, True])
def test_every_token_of_a_text_but_the_last_is_labelled_with_the_next(
    jit_compile,
):
    batch = {  # The last row holds two packed texts.
        "input_ids": [
            *[[2, 4, 11, 99, 3, 0, 0], [2, 10, 11, 12, 13, 14, 4]],
            [2, 10, 3, 2, 4, 3, 0],
        ],
        "input_mask": [[1] * 5 + [0] * 2, [1] * 7, [1, 1, 1, 2, 2, 2, 0]],
        "masked_lm_positions": [[1, 3, 0], [6, 0, 0], [4, 0, 0]],
        "masked_lm_ids": [[10, 12, 0], [3, 0, 0], [11, 0, 0]],
        "masked_lm_weights": [[1.0, 1.0, 0.0], *[[1.0, 0.0, 0.0]] * 2],
        "next_sentence_labels": [[1], [0], [1]],
    }
    function = tf.function(datasets.to_next_tokens, jit_compile=jit_compile)
    found = function({name: tf.constant(v) for name, v in batch.items()})
    text = [
        *[[2, 10, 11, 12, 3, 0, 0], [2, 10, 11, 12, 13, 14, 3]],
        [2, 10, 3, 2, 11, 3, 0],
    ]
    expected = {
        "input_ids": text,
        "masked_lm_positions": [[0, 1, 2, 3, 4, 5]] * 3,
        "masked_lm_ids": np.array(text)[:, 1:],
        "masked_lm_weights": [
            *[[1, 1, 1, 1, 0, 0], [1] * 6],
            [1, 1, 0, 1, 1, 0],
        ],
        "next_sentence_labels": [[1], [0], [1]],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)
    assert found["masked_lm_weights"].dtype == np.float32
    assert found["input_ids"].dtype == np.int32
