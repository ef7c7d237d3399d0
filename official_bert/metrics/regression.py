"""Regression metrics: GLUE's metrics for STS-B."""

import warnings

import numpy as np
from numpy.typing import ArrayLike


def pearson_and_spearman(
    targets: ArrayLike, predictions: ArrayLike
) -> dict[str, float]:
    """Returns `pearson`, `spearmanr` and `mean_squared_error`.

    Targets and predictions are float [N > 0]. Correlations are 0.0 if all
    targets or all predictions are equal, and NaN if a value is not finite.
    """
    from scipy import stats  # Takes seconds.

    # float64, because sums of thousands of float32 values lose precision.
    target = np.asarray(targets, np.float64)
    predicted = np.asarray(predictions, np.float64)
    error = float(np.mean((target - predicted) ** 2))
    pearson = spearman = 0.0
    if not np.isfinite(error):
        pearson = spearman = float("nan")
    elif np.ptp(target) > 0 and np.ptp(predicted) > 0:
        with warnings.catch_warnings():
            # SciPy warns about lost precision in digits that do not matter.
            warnings.simplefilter("ignore", stats.NearConstantInputWarning)
            pearson = float(stats.pearsonr(target, predicted).statistic)
        spearman = float(stats.spearmanr(target, predicted).statistic)
    return {
        "pearson": pearson,
        "spearmanr": spearman,
        "mean_squared_error": error,
    }
