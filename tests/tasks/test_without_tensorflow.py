"""Tasks read, answer and evaluate where TensorFlow and Keras are blocked."""

import json
import math

import pytest
from support import ROOT
from support.processes import run_python

# {kind: (keys of the first two answers, metrics)}, for the logits of
# `tasks_without_tensorflow`: the numbers of certain words.
EXPECTED = {
    "text": ([{"label": "good"}, {"label": "bad"}], {"accuracy": 2 / 3}),
    "choice": (
        [{"choice": 1, "text": "good good"}, {"choice": 0, "text": "good"}],
        {"accuracy": 0.5},
    ),
    "tagging": (
        [{"tags": ["O", "B-X", "O"]}, {"tags": ["O", "B-X"]}],
        {"accuracy": 0.8, "precision": 0.5, "recall": 1.0},
    ),
    "squad": (
        [{"answer": "red good mat"}, {"answer": "red, bad mat"}],
        {"exact_match": 50.0, "f1": 50.0, "total": 2},
    ),
}


@pytest.fixture(scope="module")
def results():
    script = ROOT / "tests" / "support" / "tasks_without_tensorflow.py"
    code = (
        "import runpy, sys\n"
        "sys.modules['tensorflow'] = sys.modules['keras'] = None\n"
        f"runpy.run_path({str(script)!r})"
    )
    return json.loads(run_python("-c", code).stdout)


@pytest.mark.parametrize("kind", EXPECTED)
def test_task_answers_and_evaluates(results, kind):
    answers, metrics = results[kind]
    expected_answers, expected_metrics = EXPECTED[kind]
    for answer, expected in zip(answers, expected_answers, strict=False):
        assert answer | expected == answer
    for name, value in expected_metrics.items():
        assert metrics[name] == pytest.approx(value)


def test_probabilities_are_the_softmax_of_the_logits(results):
    [[first, *_], _] = results["text"]
    # The logits are 0 for "bad" and 2 for "good".
    odds = first["probabilities"]["good"] / first["probabilities"]["bad"]
    assert odds == pytest.approx(math.exp(2), rel=1e-6)
