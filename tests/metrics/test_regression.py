import math

import numpy as np
import pytest

from official_bert.metrics.regression import pearson_and_spearman


def correlation(a, b):
    a, b = a - a.mean(), b - b.mean()
    return (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum())


def test_metrics_of_float32_values_equal_their_formulas_in_float64():
    rng = np.random.default_rng(0)
    targets = (1000 + rng.normal(size=1500)).astype(np.float32)
    predictions = (targets + rng.normal(size=1500)).astype(np.float32)
    exact = targets.astype(np.float64), predictions.astype(np.float64)
    # Equal values share the mean of their ranks.
    ranks = [
        ((x[:, None] >= x).sum(axis=1) + (x[:, None] > x).sum(axis=1)) / 2
        for x in exact
    ]
    assert pearson_and_spearman(targets, predictions) == {
        "pearson": pytest.approx(correlation(*exact), rel=1e-9),
        "spearmanr": pytest.approx(correlation(*ranks)),
        "mean_squared_error": pytest.approx(
            sum(x * x for x in exact[0] - exact[1]) / 1500
        ),
    }


@pytest.mark.parametrize(
    ("targets", "predictions"),
    [([1, 2, 3], [2, 2, 2]), ([2, 2, 2], [1, 2, 3]), ([1], [3]), ([1], [1])],
)
def test_correlations_with_a_constant_are_zero(targets, predictions):
    error = np.mean((np.array(targets) - predictions) ** 2)
    assert pearson_and_spearman(targets, predictions) == {
        "pearson": 0.0,
        "spearmanr": 0.0,
        "mean_squared_error": pytest.approx(error),
    }


def test_nearly_constant_input_raises_no_warning():
    scores = pearson_and_spearman([1, 2, 3], [2.5, 2.5, np.nextafter(2.5, 3)])
    assert scores["spearmanr"] == pytest.approx(math.sqrt(3) / 2)
    assert -1 <= scores["pearson"] <= 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_metrics_of_infinite_predictions_are_not_finite(value):
    scores = pearson_and_spearman([1.0, 2.0, 3.0], [1.0, value, 3.0])
    assert math.isnan(scores["pearson"])
    assert math.isnan(scores["spearmanr"])
    assert not math.isfinite(scores["mean_squared_error"])
