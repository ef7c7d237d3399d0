"""Helpers of the tests of `predict.py`, which are split by input format."""

import functools
import io
import sys

import pytest

from official_bert.inference.predictor import Predictor
from official_bert.tasks.text import TextColumns
from official_bert.tasks.text_types import TYPES
from support import tiny


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
    expected = predictor_of(model_dir)(items)
    assert [a["label"] for a in found] == [a["label"] for a in expected]
    for answer, other in zip(found, expected, strict=True):
        assert answer.keys() == other.keys()
        assert answer["probabilities"] == pytest.approx(
            other["probabilities"], abs=1e-6
        )


def save_own_model(
    folder, *columns, task_type="classification", has_header=True
):
    """Saves a model for a user's own tables; returns its run directory."""
    task = TYPES[task_type](
        labels=() if task_type == "regression" else ("no", "yes"),
        is_pair=len(columns) == 2,
        columns=TextColumns(columns, has_header),
    )
    return tiny.save_finetuned(folder / "own", task)
