"""Models and a working directory for the tests of `predict.py`."""

import json

import pytest
from support import tiny
from support.predictions import set_stdin

from official_bert.commands import predict
from official_bert.options import Predict


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    return tiny.save_both(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session")
def tuned(models):
    return str(models / "tuned")


@pytest.fixture(scope="session")
def pretrained(models):
    return str(models / "pretrained")


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
