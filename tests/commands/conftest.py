"""Models and a working directory for the tests of `predict.py`."""

import functools
import json

import pytest
from support import tiny
from support.predictions import set_stdin

from official_bert.commands import predict
from official_bert.options import Predict
from official_bert.tasks.text import TextColumns
from official_bert.tasks.text_types import TYPES


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return tiny.save_both(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def tuned(models):
    return str(models / "tuned")


@pytest.fixture(scope="session")
def pretrained(models):
    return str(models / "pretrained")


@pytest.fixture(scope="session")
def own_model(tmp_path_factory):
    """A function that returns a model for a user's own tables, saved once."""

    @functools.cache
    def save(*columns, task_type="classification", has_header=True):
        task = TYPES[task_type](
            labels=() if task_type == "regression" else ("no", "yes"),
            is_pair=len(columns) == 2,
            columns=TextColumns(columns, has_header),
        )
        return tiny.save_finetuned(tmp_path_factory.mktemp("own") / "out", task)

    return save


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def ask(folder, monkeypatch, capsys):
    """A function that runs the command on `data` and returns its answers."""

    def run(data, name="a.txt", **options):
        set_stdin(monkeypatch, data)
        if name != "-":
            (folder / name).write_bytes(data)
        predict.main(Predict(input_file=name, **options))
        out = capsys.readouterr().out
        return [json.loads(line) for line in out.splitlines()]

    return run
