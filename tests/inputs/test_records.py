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
    examples = [example(3), example(4)]
    serialized = record_files.serialize(examples)
    for name, tensor in records.parse(SCHEMA, serialized).items():
        np.testing.assert_array_equal(tensor, [e[name] for e in examples])
        is_float = name == "masked_lm_weights"
        assert tensor.dtype == (tf.float32 if is_float else tf.int32)


def check(name, vocab_size=100, schema=SCHEMA):
    records.check_files(RecordFiles([name], schema), vocab_size)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: gzip.compress(data)[:-8],
        lambda data: b"hello\n",
        lambda data: b"",
    ],
)
def test_damaged_or_empty_file_is_named(file, damage):
    path = pathlib.Path(file)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"a\.tfrecord(: record \d+ |.*empty)"):
        check(file)


@pytest.mark.parametrize("name", ["a.gz", "compressed.tfrecord"])
def test_compressed_records_are_read_whatever_their_name(file, name):
    path = pathlib.Path(file).with_name(name)
    path.write_bytes(gzip.compress(pathlib.Path(file).read_bytes()))
    data = RecordFiles([str(path), file], SCHEMA)
    records.check_files(data, 100)
    records.check_files(data, 100, limit=None)
    assert data.num_records() == 20
    evaluated = datasets.evaluation_batches(data, 20, 1)
    [ids] = (batch["input_ids"][:, 0].numpy().tolist() for batch in evaluated)
    assert ids == [*range(10), *range(10)]
    [batch] = datasets.training_batches(data, 20, seed=3).take(1)
    assert sorted(batch["input_ids"][:, 0].numpy()) == sorted(ids)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ((100, schemas.pretraining_schema(9, 2)), "9.*--max_seq_length=6"),
        ((100, schemas.pretraining_schema(6, 20)), "_predictions_per_seq=2"),
        ((100, schemas.pretraining_schema(9, 20)), "=6 .*_per_seq=2"),
        ((100, {**SCHEMA, "new": schemas.Feature(1)}), "feature `new`"),
        ((100, schemas.packed_schema(SCHEMA, 2)), "one .* out --pack_seq"),
        ((3, SCHEMA), "vocab_size=3"),
    ],
)
def test_records_that_do_not_fit_are_an_error(file, expected, message):
    check(file)
    with pytest.raises(InputError, match=f"record 1.*{message}"):
        check(file, *expected)


def test_records_of_multiple_choice_fit_their_schema(tmp_path):
    row = {name: [1] * 6 for name in schemas.TEXT_INPUTS}
    name = record_files.write(tmp_path / "a.tfrecord", [row])
    check(name, schema=schemas.text_schema(3, num_choices=2))
    message = r"must have 4 values in .*, but has 6.* Pass --max_seq_length=3\."
    with pytest.raises(InputError, match=message):
        check(name, schema=schemas.text_schema(2, num_choices=2))


def test_wrong_record_in_the_middle_is_named(tmp_path):
    path = tmp_path / "a.tfrecord"
    record_files.write(path, map(example, [1, 2, 3, 77, -5]))
    data = RecordFiles([str(path)], SCHEMA)
    records.check_files(data, 50)
    for vocab_size, message in [
        (50, r"record 4: `input_ids` .*vocab_size=50.* 77"),
        (100, r"record 5: `input_ids` .*vocab_size=100.* -5"),
    ]:
        with pytest.raises(InputError, match=message):
            records.check_files(data, vocab_size, limit=None)
    content = path.read_bytes()
    path.write_bytes(content[:-30] + b"????" + content[-26:])
    with pytest.raises(InputError, match=r"a\.tfrecord: record 5 "):
        records.check_files(data, 100, limit=None)


MASKING = {
    "max_predictions_per_seq": [2],
    "max_ngram": [1],
    "mask_id": [4],
    "vocab_size": [50],
    "mask_share": [0.8],
    "random_share": [0.1],
}
UNMASKED = {
    "input_ids": [2, 7, 3, 0, 0, 0],
    "input_mask": [1, 1, 1, 0, 0, 0],
    "segment_ids": [0] * 6,
    "word_starts": [0, 1, 0, 0, 0, 0],
    "num_to_predict": [1],
    "next_sentence_labels": [1],
}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"max_ngram": []}, "`max_ngram` must have one value.* none"),
        ({"max_ngram": [1, 2]}, "`max_ngram` must have one value.* 1, 2"),
        ({"max_ngram": [-1]}, "`max_ngram` .*at least 0.* -1"),
        ({"mask_id": [0.5]}, "`mask_id` .* int64_list"),
        ({"random_share": [float("nan")]}, "`random_share` .* nan"),
        ({"max_ngram": [11]}, "`max_ngram` .* 11"),
        ({"word_starts": [0, 6, 0, 0, 0, 0]}, "`word_starts` .*below 6.* 6"),
        ({"next_sentence_labels": [2]}, "`next_sentence_labels` .*below 2.* 2"),
    ],
)
def test_damaged_unmasked_instance_is_named(tmp_path, damage, message):
    def check_record(record):
        name = record_files.write(tmp_path / "a.tfrecord", [record])
        masking = records.read_masking(name)
        schema = schemas.unmasked_schema(6)
        records.check_files(RecordFiles([name], schema, masking), 100)

    check_record({**UNMASKED, **MASKING})
    with pytest.raises(InputError, match=f"record 1: {message}"):
        check_record({**UNMASKED, **MASKING, **damage})
