"""Standard input for `predict.py`, and comparisons of its answers."""

import functools
import io
import sys

import numpy as np

from official_bert.inference.predictor import Predictor


def set_stdin(monkeypatch, data):
    """Replaces standard input with `data`, which arrives in parts."""

    class Parts(io.BytesIO):
        def read1(self, size=-1):
            return self.readline(7)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Parts(data)))


predictor_of = functools.cache(Predictor.from_dir)


def check(found, items, model_dir):
    """Asserts that answers equal those of a `Predictor`."""
    assert [answer.pop("input") for answer in found] == items
    assert_equal_answers(found, predictor_of(model_dir)(items), atol=1e-6)


def assert_equal_answers(found, expected, **tolerance):
    """Compares numbers within a tolerance, and all other values exactly."""
    assert _without_numbers(found) == _without_numbers(expected)
    found, expected = ([*numbers(value)] for value in (found, expected))
    np.testing.assert_allclose(found, expected, **(tolerance or {"atol": 1e-5}))


def numbers(value):
    """Yields all numbers of a JSON value."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict | list):
        values = value.values() if isinstance(value, dict) else value
        for item in values:
            yield from numbers(item)


def _without_numbers(value):
    if isinstance(value, dict):
        return {name: _without_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_numbers(item) for item in value]
    return None if isinstance(value, float) else value
