"""Records: what is written is what is read, and what is wrong is named."""

import gzip
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.inputs import datasets, framing, records, schemas
from official_bert.inputs.records import RecordFiles

SCHEMA = schemas.pretraining_schema(6, 2)


def values(number):
    return {
        "input_ids": [number, 2, 3, 0, 0, 0],
        "input_mask": [1, 1, 1, 0, 0, 0],
        "segment_ids": [0, 0, 1, 0, 0, 0],
        "masked_lm_positions": [1, 0],
        "masked_lm_ids": [9, 0],
        "masked_lm_weights": [1.0, 0.0],
        "next_sentence_labels": [1],
    }


def write(path, numbers, schema=SCHEMA):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in numbers:
            writer.write(records.encode(schema, values(number)))
    return str(path)


@pytest.fixture(autouse=True)
def seeded():
    """Whatever other tests left: with 0, `starting.set_seed`, none shuffles."""
    keras.utils.set_random_seed(1)


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "a.tfrecord", range(10))


def test_bytes_are_deterministic():
    one = records.encode(SCHEMA, values(3))
    other = records.encode(dict(reversed(SCHEMA.items())), values(3))
    assert one == other


def test_parse_gives_back_what_was_encoded():
    serialized = [records.encode(SCHEMA, values(n)) for n in (3, 4)]
    batch = records.parse(SCHEMA, tf.constant(serialized))
    for name, tensor in batch.items():
        expected = [values(n)[name] for n in (3, 4)]
        np.testing.assert_array_equal(tensor, expected)
        is_float = name == "masked_lm_weights"
        assert tensor.dtype == (tf.float32 if is_float else tf.int32)


def test_count(file):
    assert framing.count_records(file) == 10


def check(name, vocab_size=100, schema=SCHEMA):
    records.check_files(RecordFiles([name], schema), vocab_size)


def test_a_good_file_passes(file):
    check(file)


@pytest.mark.parametrize("missing", [1, 8, 300])
def test_a_file_cut_short_is_named_with_its_record(file, missing):
    with open(file, "rb+") as stream:
        stream.truncate(stream.seek(0, 2) - missing)
    with pytest.raises(InputError, match=r"a\.tfrecord: record \d+: must be"):
        check(file)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello\n", b"just some text that is no record file\n" * 9],
)
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.txt.*must"):
        check(str(path))


def test_a_damaged_record_is_refused(file):
    with open(file, "rb+") as stream:
        stream.seek(40)
        stream.write(b"????")
    with pytest.raises(InputError, match=r"a\.tfrecord: must hold TFRecords"):
        check(file)


def zipped(file, name):
    path = pathlib.Path(file).with_name(name)
    path.write_bytes(gzip.compress(pathlib.Path(file).read_bytes()))
    return str(path)


@pytest.mark.parametrize("name", ["a.gz", "zipped.tfrecord"])
def test_compressed_records_are_read_whatever_their_name(file, name):
    both = RecordFiles([zipped(file, name), file], SCHEMA)
    plain = RecordFiles([file, file], SCHEMA)
    records.check_files(both, 100)
    records.check_all_records(both, 100)
    assert both.num_records() == 20

    def ids(dataset):
        return [b["input_ids"].numpy().tolist() for b in dataset.take(9)]

    for batches in (
        lambda data: datasets.evaluation_batches(data, 4, 9),
        lambda data: datasets.training_batches(data, 4, seed=3),
    ):
        assert ids(batches(both)) == ids(batches(plain))


def test_compressed_records_are_checked(file, tmp_path):
    name = zipped(write(tmp_path / "b", [101]), "b.gz")
    with pytest.raises(InputError, match="record 1: `input_ids` must be"):
        check(name)
    data = pathlib.Path(zipped(file, "a.gz")).read_bytes()
    (tmp_path / "a.gz").write_bytes(data[:-20])
    with pytest.raises(InputError, match=r"a\.gz: record \d+: must be comp"):
        check(str(tmp_path / "a.gz"))


def test_another_length_is_named_with_its_flag(file):
    schema = schemas.pretraining_schema(128, 2)
    with pytest.raises(
        InputError, match=r"`input_ids` must have 128.*--max_seq_length=6"
    ):
        check(file, schema=schema)


def test_another_number_of_predictions_is_named_with_its_flag(file):
    schema = schemas.pretraining_schema(6, 20)
    with pytest.raises(InputError, match="--max_predictions_per_seq=2"):
        check(file, schema=schema)


def test_records_of_something_else_are_refused(tmp_path):
    path = write(tmp_path / "a", [1], {"input_ids": SCHEMA["input_ids"]})
    with pytest.raises(InputError, match="must have a feature `input_mask`"):
        check(path)


def test_ids_beyond_the_vocabulary_are_refused(file):
    with pytest.raises(InputError, match="below the model's vocab_size=3"):
        check(file, vocab_size=3)


def test_negative_ids_are_refused(tmp_path):
    path = write(tmp_path / "a.tfrecord", [-1])
    with pytest.raises(InputError, match=r"below the model's .* Received: -1"):
        check(path)


def test_a_fault_in_the_middle_is_found(tmp_path):
    path = write(tmp_path / "a.tfrecord", [1, 2, 3, 77, 5])
    data = RecordFiles([path], SCHEMA)
    records.check_files(data, 50)
    with pytest.raises(InputError, match=r"record 4: `input_ids` must be bel"):
        records.check_all_records(data, 50)
    with open(path, "rb+") as stream:
        stream.seek(-30, 2)
        stream.write(b"????")
    with pytest.raises(
        InputError, match="Record 5 cannot be read: corrupted record at 888"
    ):
        records.check_all_records(data, 100)


def first_ids(dataset):
    return [int(i) for batch in dataset for i in batch["input_ids"][:, 0]]


def test_an_epoch_holds_every_record_once(file):
    for seed in (1, 2):
        batches = datasets.training_batches(
            RecordFiles([file], SCHEMA), 5, seed=seed
        )
        ids = first_ids(batches.take(4))
        assert sorted(ids[:10]) == sorted(ids[10:]) == list(range(10))
        assert ids[:10] != ids[10:]


def test_same_seed_same_order(file, tmp_path):
    other = write(tmp_path / "b.tfrecord", range(10, 17))
    both = RecordFiles([file, other], SCHEMA)

    def order(seed):
        dataset = datasets.training_batches(both, 3, seed=seed)
        return first_ids(dataset.take(20))

    assert order(1) == order(1) != order(2)


def test_start_goes_on_where_an_earlier_run_stopped(file):
    whole = datasets.training_batches(RecordFiles([file], SCHEMA), 3, seed=1)
    rest = datasets.training_batches(
        RecordFiles([file], SCHEMA), 3, seed=1, start=12
    )
    assert first_ids(rest.take(5)) == first_ids(whole.take(9))[12:]


def test_evaluation_keeps_order_and_reads_again_when_short(file):
    batches = datasets.evaluation_batches(RecordFiles([file], SCHEMA), 4, 3)
    assert first_ids(batches) == [*range(10), 0, 1]
