"""Many numbers at once are written as `json` writes them one by one."""

import json

import numpy as np
import pytest

from official_bert.inference import decimals


def one_by_one(values):
    return [
        json.dumps([round(float(x), 6) for x in row])[1:-1].encode()
        for row in values
    ]


@pytest.mark.parametrize(
    "scale", [1e-7, 1e-6, 3e-5, 1e-3, 1, 12, 300, 9e3, 1e6, 1e20]
)
def test_equals_json_at_every_size(scale):
    values = np.random.RandomState(0).normal(size=(50, 70)) * scale
    values = values.astype(np.float32)
    assert decimals.format_rows(values) == one_by_one(values)


def test_equals_json_where_it_is_delicate():
    edges = [0.0, 1e-7, 5e-7, 1e-6, 1e-5, 9.9e-5, 1e-4, 0.1, 0.5, 0.999999]
    edges += [0.9999999, 1.0, 9.5, 10.0, 100.000001, 9999.999, 9999.9999]
    values = np.array([edges, np.negative(edges)], np.float32)
    found = decimals.format_rows(values)
    assert found == one_by_one(values)
    assert found[1].startswith(b"-0.0, -0.0, ")
    assert b"1e-05, 9.9e-05, 0.0001, 0.1," in found[0]
    # Halves of the last decimal, which go to the even side.
    ties = np.arange(-4097, 4097, 2, dtype=np.float32)[:, np.newaxis] / 2**7
    assert decimals.format_rows(ties) == one_by_one(ties)
    strange = np.array([[1.5, np.nan], [np.inf, -np.inf]], np.float32)
    assert decimals.format_rows(strange) == one_by_one(strange)


def test_blocks_meet():
    """More rows, and longer ones, than are written at once."""
    for shape in ((5000, 7), (3, 10_000), (1, 1)):
        values = np.random.RandomState(1).normal(size=shape)
        values = values.astype(np.float32)
        assert decimals.format_rows(values) == one_by_one(values)
