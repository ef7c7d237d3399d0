"""Records are parsed as they were written; wrong ones are named."""

import gzip
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from support import record_files

from official_bert.errors import InputError
from official_bert.inputs import datasets, records, schemas
from official_bert.inputs.records import RecordFiles

SCHEMA = schemas.pretraining_schema(6, 2)


def example(number):
    return {
        "input_ids": [number, 2, 3, 0, 0, 0],
        "input_mask": [1, 1, 1, 0, 0, 0],
        "segment_ids": [0, 0, 1, 0, 0, 0],
        "masked_lm_positions": [1, 0],
        "masked_lm_ids": [9, 0],
        "masked_lm_weights": [1.0, 0.0],
        "next_sentence_labels": [1],
    }


@pytest.fixture
def file(tmp_path):
    return record_files.write(tmp_path / "a.tfrecord", map(example, range(10)))


def test_examples_are_parsed_as_they_were_written():
    serialized = record_files.serialize([example(3), example(4)])
    batch = records.parse(SCHEMA, tf.constant(serialized))
    for name, tensor in batch.items():
        expected = [example(n)[name] for n in (3, 4)]
        np.testing.assert_array_equal(tensor, expected)
        is_float = name == "masked_lm_weights"
        assert tensor.dtype == (tf.float32 if is_float else tf.int32)


def check(name, vocab_size=100, schema=SCHEMA):
    records.check_files(RecordFiles([name], schema), vocab_size)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("missing", [1, 8, 20])
def test_truncated_file_is_named_with_its_record(tmp_path, compress, missing):
    path = tmp_path / "a.tfrecord"
    record_files.write(path, map(example, range(10)), compress)
    path.write_bytes(path.read_bytes()[:-missing])
    with pytest.raises(InputError, match=r"a\.tfrecord: record \d+ "):
        check(str(path))


@pytest.mark.parametrize("content", [b"", b"hello\n", b"no record file\n" * 19])
def test_file_without_records_is_an_error(tmp_path, content):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"a\.txt"):
        check(str(path))


@pytest.mark.parametrize("name", ["a.gz", "compressed.tfrecord"])
def test_compressed_records_are_read_whatever_their_name(file, name):
    path = pathlib.Path(file).with_name(name)
    path.write_bytes(gzip.compress(pathlib.Path(file).read_bytes()))
    both = RecordFiles([str(path), file], SCHEMA)
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


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ((100, schemas.pretraining_schema(9, 2)), "9.*--max_seq_length=6"),
        ((100, schemas.pretraining_schema(6, 20)), "_predictions_per_seq=2"),
        ((100, {**SCHEMA, "new": schemas.Feature(1)}), "feature `new`"),
        ((100, schemas.packed_schema(6, 2, 2)), "--pack_sequences"),
        ((3, SCHEMA), "vocab_size=3"),
    ],
)
def test_records_that_do_not_fit_are_an_error(file, expected, message):
    check(file)
    with pytest.raises(InputError, match=f"record 1.*{message}"):
        check(file, *expected)


def test_wrong_record_in_the_middle_is_named(tmp_path):
    path = record_files.write(
        tmp_path / "a.tfrecord", map(example, [1, 2, 3, 77, -5])
    )
    data = RecordFiles([path], SCHEMA)
    records.check_files(data, 50)
    for vocab_size, message in [
        (50, r"record 4: `input_ids` .*vocab_size=50.* 77"),
        (100, r"record 5: `input_ids` .*vocab_size=100.* -5"),
    ]:
        with pytest.raises(InputError, match=message):
            records.check_all_records(data, vocab_size)
    with open(path, "rb+") as stream:
        stream.seek(-30, 2)
        stream.write(b"????")
    with pytest.raises(InputError, match=r"a\.tfrecord: record 5 "):
        records.check_all_records(data, 100)
