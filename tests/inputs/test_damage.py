"""Damaged records are found exactly, and read around."""

import gzip
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.inputs import damage, datasets, framing, records, schemas
from official_bert.inputs.records import RecordFiles, RecordRange

SCHEMA = {"number": schemas.Feature(1)}
COUNT = 20
SIZE = 12 + len(records.encode(SCHEMA, {"number": [0]})) + 4
DATA, LENGTH, LENGTH_CHECK, DATA_CHECK = 15, 2, 9, SIZE - 2


def write(path, start=0):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(start, start + COUNT):
            writer.write(records.encode(SCHEMA, {"number": [number]}))
    assert path.stat().st_size == COUNT * SIZE
    return str(path)


def spoil(name, number, place):
    """Flips a bit of the record with a number, counted from 1."""
    with open(name, "rb+") as file:
        file.seek((number - 1) * SIZE + place)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "a.tfrecord")


def numbers(dataset):
    return [int(n) for batch in dataset for n in batch["number"][:, 0]]


def find(*names):
    return damage.find(RecordFiles(names, SCHEMA))


def test_good_files_stay_as_they_are(file):
    data, found = find(file)
    assert data == RecordFiles([file], SCHEMA)
    assert found == []


@pytest.mark.parametrize("place", [DATA, DATA_CHECK])
@pytest.mark.parametrize(
    ("spoiled", "ranges"),
    [
        ([5], [(0, 4), (5, 15)]),
        ([1], [(1, 19)]),
        ([20], [(0, 19)]),
        ([1, 2, 9, 20], [(2, 6), (9, 10)]),
    ],
)
def test_damaged_data_is_skipped_exactly(file, place, spoiled, ranges):
    for number in spoiled:
        spoil(file, number, place)
    data, found = find(file)
    assert found == [damage.Damage(file, spoiled, is_cut=False)]
    assert data.ranges == {file: ranges}
    assert data.num_records() == COUNT - len(spoiled)


@pytest.mark.parametrize("place", [LENGTH, LENGTH_CHECK])
@pytest.mark.parametrize(
    ("number", "ranges"), [(5, [(0, 4)]), (20, [(0, 19)]), (2, [(0, 1)])]
)
def test_a_damaged_length_ends_the_file(file, place, number, ranges):
    spoil(file, number, place)
    data, found = find(file)
    assert found == [damage.Damage(file, [number], is_cut=True)]
    assert data.ranges == {file: ranges}


@pytest.mark.parametrize("missing", [1, SIZE - 4, SIZE - 1])
def test_a_file_cut_short(file, missing):
    with open(file, "rb+") as stream:
        stream.truncate(COUNT * SIZE - missing)
    data, found = find(file)
    assert found == [damage.Damage(file, [20], is_cut=True)]
    assert data.ranges == {file: [(0, 19)]}


def test_data_of_no_example_is_skipped_exactly(tmp_path):
    good = records.encode(SCHEMA, {"number": [0]})
    path = tmp_path / "a.tfrecord"
    for spoiled, ranges in (([1, 4], [(1, 2), (4, 2)]), ([6], [(0, 5)])):
        for bad in (good[:-1], b""):
            data = [bad if n in spoiled else good for n in range(1, 7)]
            path.write_bytes(framing.join(data, compress=False))
            data, found = find(str(path))
            assert found == [damage.Damage(str(path), spoiled, is_cut=False)]
            assert data.ranges == {str(path): ranges}


def test_both_kinds_at_once(file):
    spoil(file, 3, DATA)
    spoil(file, 9, DATA)
    spoil(file, 10, LENGTH)
    data, found = find(file)
    assert data.ranges == {file: [RecordRange(0, 2), RecordRange(3, 5)]}
    assert str(found[0]) == f"{file}: record 3, 9, 10, and all behind it"


def test_a_file_without_any_good_record_is_left_out(file, tmp_path):
    other = write(tmp_path / "b.tfrecord", start=COUNT)
    spoil(file, 1, LENGTH)
    data, _ = find(file, other)
    assert data.names == [other]
    with pytest.raises(InputError, match=r"a\.tfrecord: must hold a TFRecord"):
        find(file)


def test_an_epoch_holds_every_good_record_once(file, tmp_path):
    other = write(tmp_path / "b.tfrecord", start=COUNT)
    spoil(file, 4, DATA)
    spoil(file, 9, DATA)
    spoil(other, 11, LENGTH)
    data, _ = find(file, other)
    good = sorted({*range(30)} - {3, 8})
    assert data.num_records() == len(good) == 28
    batches = datasets.training_batches(data, 14, seed=1).take(4)
    order = numbers(batches)
    assert sorted(order[:28]) == sorted(order[28:]) == good
    assert order == numbers(batches)
    for start in (14, 42):
        rest = datasets.training_batches(data, 14, seed=1, start=start)
        assert numbers(rest.take(1)) == order[start : start + 14]
    assert numbers(datasets.evaluation_batches(data, 14, 2)) == good


def test_a_message_names_twenty(file):
    found = damage.Damage("f", [*range(1, 100)], is_cut=False)
    assert str(found).endswith(" 19, 20 and 79 more")


def test_what_is_behind_a_damaged_length_is_not_counted(file, caplog):
    spoil(file, 3, DATA)
    _, found = find(file)
    damage.report(found)
    assert "Skipped 1 damaged records:" in caplog.text
    spoil(file, 9, LENGTH)
    _, found = find(file)
    damage.report(found)
    assert "Skipped 2 damaged records, and a number that is" in caplog.text


def test_files_elsewhere_are_read_as_well(file):
    spoil(file, 3, DATA)
    spoil(file, 9, LENGTH)
    address = f"file://{file}"
    data, found = find(address)
    assert found == [damage.Damage(address, [3, 9], is_cut=True)]
    assert data.ranges == {address: [(0, 2), (3, 5)]}


def test_a_name_does_not_say_whether_a_file_is_compressed(tmp_path):
    name = write(tmp_path / "plain.gz")
    assert find(name) == (RecordFiles([name], SCHEMA), [])


def test_a_compressed_file(file, tmp_path):
    packed = gzip.compress(pathlib.Path(file).read_bytes())
    path = tmp_path / "packed"
    path.write_bytes(packed)
    assert find(str(path)) == (RecordFiles([str(path)], SCHEMA), [])

    spoil(file, 3, DATA)
    path.write_bytes(gzip.compress(pathlib.Path(file).read_bytes()))
    data, found = find(str(path))
    assert found == [damage.Damage(str(path), [3], is_cut=False)]
    batches = datasets.evaluation_batches(data, COUNT - 1, 1)
    assert numbers(batches) == [0, 1, *range(3, COUNT)]

    path.write_bytes(packed[:-40])
    data, [damaged] = find(str(path))
    assert damaged.is_cut
    [(first, length)] = data.ranges[str(path)]
    assert first == 0
    assert 0 < length < COUNT
    batches = datasets.evaluation_batches(data, length, 1)
    assert numbers(batches) == list(range(length))


def compressed(path, count):
    """Writes records that pack badly, so that they take several buffers."""
    random = np.random.default_rng(0)
    schema = {"number": schemas.Feature(64)}
    rows = random.integers(0, 2**60, (count, 64))
    parts = (records.encode(schema, {"number": row}) for row in rows)
    path.write_bytes(framing.join(parts, compress=True))
    return schema


@pytest.mark.parametrize("spoil_end", [True, False])
def test_compressed_records_are_read_as_far_as_tensorflow_can(
    tmp_path, spoil_end
):
    """It unpacks ahead, and takes nothing but the end for the end."""
    path = tmp_path / "a.gz"
    schema = compressed(path, 4000)
    data = bytearray(path.read_bytes())
    if spoil_end:
        data += bytes(100)  # As some tapes and copies have it.
    else:
        data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found, [damaged] = damage.find(RecordFiles([str(path)], schema))
    assert damaged.is_cut
    number = sum(part.length for part in found.ranges[str(path)])
    assert 1000 < number <= 4000
    read = datasets._files(found).flat_map(datasets._records)
    assert sum(1 for _ in read) == number
