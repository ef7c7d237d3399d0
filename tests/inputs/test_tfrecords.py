"""Files written without TensorFlow equal files of protobuf and TensorFlow."""

import gzip

import numpy as np
import pytest
import tensorflow as tf

from official_bert.errors import InputError
from official_bert.inputs import tfrecords

EDGES = [0, 1, 127, 128, 255, 256, 2**14 - 1, 2**14, 30_521, 65_536, 2**21]
LARGE = [2**31 - 1, 2**31, 2**35, 2**62, 2**63 - 1, -1, -5, -(2**63)]
RANDOM = np.random.default_rng(0)


def by_protobuf(columns):
    for row in range(len(next(iter(columns.values())))):
        example = tf.train.Example()
        for name, array in columns.items():
            feature = example.features.feature[name]
            is_float = array.dtype == np.float32
            values = feature.float_list if is_float else feature.int64_list
            values.value.extend(array[row].tolist())
        yield example.SerializeToString(deterministic=True)


def rows_of(length):
    numbers = RANDOM.choice(EDGES, (3, length))
    mask = (numbers > 200).astype(np.int32)
    return {"ids": numbers, "mask": mask, "one": numbers[:, :1]}


@pytest.mark.parametrize(
    "columns",
    [
        *({"a": np.array([[n], [0], [n]], np.int64)} for n in EDGES + LARGE),
        *(rows_of(n) for n in (1, 2, 40, 127, 128, 384, 20_000)),
        {"x": RANDOM.choice(EDGES + LARGE, (200, 17))},
        {
            "weights": np.array([[0, 1, -0.1], [1e-45, np.inf, 3e38]], "f4"),
            "ids": np.array([[3], [400]]),
        },
        # Names are sorted by their bytes.
        dict.fromkeys([*"bBéz", "a_b", "ab", "x" * 200], np.ones((2, 3), int)),
        {"a": np.zeros((0, 4), np.int32)},
    ],
)
def test_encoded_examples_equal_those_of_protobuf(columns):
    found = list(tfrecords.encode_examples(columns))
    assert found == list(by_protobuf(columns))


DATA = [b"", b"x", bytes(range(256)) * 300, b"123456789"]


def test_file_equals_that_of_tensorflow(tmp_path):
    path = tmp_path / "records"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for data in DATA:
            writer.write(data)
    assert path.read_bytes() == tfrecords.join(DATA, compress=False)
    assert list(tfrecords.read(str(path))) == DATA
    assert tfrecords.count_records(str(path)) == 4


def test_compressed_parts_make_a_compressed_file(tmp_path):
    parts = [tfrecords.join(some, compress=True) for some in (DATA, [], DATA)]
    path = tmp_path / "records"
    path.write_bytes(b"".join(parts))
    assert len(path.read_bytes()) < 10_000
    data = tf.data.TFRecordDataset(str(path), "GZIP").as_numpy_iterator()
    assert list(data) == DATA * 2
    assert list(tfrecords.read(str(path))) == DATA * 2
    assert tfrecords.count_records(str(path)) == 8
    assert tfrecords.join(DATA, compress=True) == parts[0]


@pytest.mark.parametrize("store", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("begin", "end", "number"),
    [
        (-1, None, 4),
        (-24, None, 4),
        (17, 18, 2),  # Its length.
        (24, 25, 2),  # The checksum of its length.
        (28, 29, 2),  # Its data.
        (-3, -2, 4),  # The checksum of its data.
        (0, 8, 1),
    ],
)
def test_damaged_record_is_named(tmp_path, store, begin, end, number):
    data = bytearray(tfrecords.join(DATA, compress=False))
    data[begin:end] = b"?" if end else b""
    path = tmp_path / "records"
    path.write_bytes(store(data))
    for address in (str(path), f"file://{path}"):
        with pytest.raises(InputError, match=f"records: record {number} "):
            list(tfrecords.read(address))
