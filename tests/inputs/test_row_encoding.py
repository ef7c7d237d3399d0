"""Examples written many at a time are those of protobuf, byte by byte."""

import numpy as np
import pytest

from official_bert.inputs import records
from official_bert.inputs.row_encoding import encode_rows
from official_bert.inputs.schemas import Feature

EDGES = [0, 1, 127, 128, 255, 256, 2**14 - 1, 2**14, 30_521, 65_536, 2**21]
LARGE = [2**31 - 1, 2**31, 2**35, 2**62, 2**63 - 1, -1, -5, -(2**63)]


def protobuf(columns):
    schema = {
        name: Feature(a.shape[1], is_float=a.dtype == np.float32)
        for name, a in columns.items()
    }
    num_rows = len(next(iter(columns.values())))
    for row in range(num_rows):
        values = {name: a[row].tolist() for name, a in columns.items()}
        yield records.encode(schema, values)


def check(columns):
    assert list(encode_rows(columns)) == list(protobuf(columns))


@pytest.mark.parametrize("number", EDGES + LARGE)
def test_every_size_of_number(number):
    check({"a": np.array([[number], [0], [number]], np.int64)})


@pytest.mark.parametrize("length", [1, 2, 40, 127, 128, 384, 20_000])
def test_every_length_of_row(length):
    random = np.random.default_rng(length)
    numbers = random.choice(EDGES, (3, length))
    mask = (numbers > 200).astype(np.int32)
    check({"ids": numbers, "mask": mask, "one": numbers[:, :1]})


def test_every_mixture_of_numbers():
    random = np.random.default_rng(0)
    check({"x": random.choice(EDGES + LARGE, (200, 17))})


def test_floats():
    floats = np.array([[0, 1, -0.1], [1e-45, np.inf, 3e38]], np.float32)
    check({"weights": floats, "ids": np.array([[3], [400]])})


def test_names_are_sorted_by_their_bytes():
    one = np.ones((2, 3), np.int32)
    check(dict.fromkeys(["b", "B", "a_b", "ab", "é", "z", "x" * 200], one))


def test_no_rows():
    assert list(encode_rows({"a": np.zeros((0, 4), np.int32)})) == []
