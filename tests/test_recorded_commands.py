"""Command lines of the original write the files that were recorded."""

import json
import re

import numpy as np
import pytest
from support import command_lines
from support.run_outputs import read_json, read_json_lines, weights

from official_bert.commands import (
    extract_features,
    run_classifier,
    run_pretraining,
    run_squad,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def run(golden, tmp_path, monkeypatch):
    """A function that runs a recorded command line, with output in `tmp_path`.

    It returns the directory of the recorded files.
    """
    directory = golden / "e2e"
    monkeypatch.chdir(directory)

    def run_recorded(command, name):
        _, *arguments = read_json(directory / "commands.json")[name]
        line = " ".join(arguments).replace("WORK", str(tmp_path))
        command_lines.run(command, line)
        return directory / "expected"

    return run_recorded


def assert_equal_texts(*texts, **tolerance):
    """Compares two texts exactly, but for the values of their decimals.

    Returns the decimals of both texts.
    """
    decimal = re.compile(r"-?\d+(?:\.\d+|e-\d+)(?:e-\d+)?")
    assert decimal.sub("DECIMAL", texts[0]) == decimal.sub("DECIMAL", texts[1])
    found, wanted = (np.float64(decimal.findall(text)) for text in texts)
    np.testing.assert_allclose(found, wanted, **tolerance)
    return found, wanted


PROBABILITIES = ("eval_results.txt", "test_results.tsv")
ANSWERS = ("predictions.json", "nbest_predictions.json")
ANSWERS_OR_NONE = (*ANSWERS, "null_odds.json")
CLOSE = {"rtol": 2e-6}
ROUNDED = {"rtol": 1e-5, "atol": 1e-5}


@pytest.mark.parametrize(
    ("command", "name", "output", "files", "tolerance"),
    [
        (run_classifier, "run_classifier_CoLA", "CoLA", PROBABILITIES, CLOSE),
        (run_classifier, "run_classifier_MRPC", "MRPC", PROBABILITIES, CLOSE),
        (run_squad, "run_squad_v1", "sqv1", ANSWERS, ROUNDED),
        (run_squad, "run_squad_v2", "sqv2", ANSWERS_OR_NONE, ROUNDED),
    ],
)
def test_files_of_fine_tuned_models_equal_the_recorded_ones(
    run, tmp_path, command, name, output, files, tolerance
):
    expected = run(command, name)
    for file in files:
        found = (tmp_path / output / file).read_text()
        wanted = (expected / f"{name}_{file}").read_text()
        assert_equal_texts(found, wanted, **tolerance)


def test_evaluation_of_pre_training_equals_the_recorded_one(run, tmp_path):
    expected = run(run_pretraining, "run_pretraining_eval")
    found = (tmp_path / "pt" / "eval_results.txt").read_text()
    wanted = (expected / "run_pretraining_eval_results.txt").read_text()
    assert_equal_texts(found, wanted, rtol=1e-6)


def test_extracted_features_equal_the_recorded_ones(run, tmp_path):
    expected = run(extract_features, "extract_features")
    paths = tmp_path / "features.jsonl", expected / "extract_features.jsonl"
    # The original writes other spaces between values.
    texts = [json.dumps(read_json_lines(path)) for path in paths]
    found, wanted = assert_equal_texts(*texts, atol=1e-5, rtol=0)
    assert len(found) == 22272
    assert np.mean(found == wanted) > 0.5


def test_short_training_writes_the_recorded_variables(run, tmp_path):
    expected = run(run_classifier, "run_classifier_train_smoke")
    expected = read_json(expected / "train_smoke_checkpoint.json")
    output = tmp_path / "train"
    assert {p.name for p in output.glob("*.index")} == set(expected["files"])
    shapes = {name: list(a.shape) for name, a in weights(output).items()}
    assert shapes == dict(expected["variables"])
