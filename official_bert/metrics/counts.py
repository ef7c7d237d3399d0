"""Precision, recall and F1 from counts, the same wherever things are found."""


def precision_recall_f1(
    correct: int, predicted: int, expected: int
) -> dict[str, float]:
    """Returns how well things were found.

    Args:
        correct: Number of things found where they are.
        predicted: Number of things found.
        expected: Number of things there are.

    Returns:
        `precision`, `recall` and `f1`, their harmonic mean, as fractions (0.0
        where they would divide by zero), and `support`, which is `expected`.
    """
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / expected if expected else 0.0,
        # Equal to 2 P R / (P + R), and defined if only one of them is.
        "f1": 2 * correct / (predicted + expected) if correct else 0.0,
        "support": expected,
    }
