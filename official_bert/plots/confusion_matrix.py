"""Confusion matrices: true against predicted labels."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from official_bert.plots import figures

# With more classes, counts do not fit in the cells of the picture.
_MAX_CLASSES_WITH_COUNTS = 25
# Longer labels are shortened in the picture, not on the page.
_MAX_LABEL_LENGTH = 40
_INCHES_PER_LETTER = 0.09  # The mean is 0.07; capitals are wider.


class Matrix(NamedTuple):
    """The confusion matrix of one evaluated split, with C classes.

    Attributes:
        name: The name of the split, or "" for the main one.
        labels: C labels.
        counts: [C, C]: a row per true label, a column per predicted label.
        scores: C x {precision, recall, f1, support}.
    """

    name: str
    labels: list[str]
    counts: list[list[int]]
    scores: list[Mapping[str, float]]

    def shares(self) -> list[list[float]]:
        """Returns the counts divided by the sums of their rows."""
        return [
            [count / (sum(row) or 1) for count in row] for row in self.counts
        ]


def find(results: Mapping[str, Any]) -> list[Matrix]:
    """Returns the matrices in the content of `eval_results.json`.

    `results` is {metric: value}, and {name: metrics} of further splits.
    """
    matrices = []
    for name, metrics in [("", results), *results.items()]:
        if isinstance(metrics, Mapping) and "confusion_matrix" in metrics:
            scores, counts = metrics["per_class"], metrics["confusion_matrix"]
            matrices.append(Matrix(name, [*scores], counts, [*scores.values()]))
    return matrices


def draw(
    output_dir: str, matrices: list[Matrix], variant: str = ""
) -> list[str]:
    """Writes `confusion_matrix.png` and `.html`; returns their paths.

    Their names end with the variant.
    """
    labels = matrices[0].labels
    longest = max(len(_shorten(label)) for label in labels)
    # The width and height of a matrix with its labels, in inches.
    size = max(3.0, 0.9 + 0.42 * min(len(labels), 40))
    size += _INCHES_PER_LETTER * longest
    with figures.figure(size * len(matrices), size) as figure:
        axes = figure.subplots(1, len(matrices), squeeze=False).ravel()
        for axis, matrix in zip(axes, matrices, strict=True):
            _draw(axis, matrix)
        return figures.write(
            figure, output_dir, "confusion_matrix", variant, matrices=matrices
        )


def _shorten(label: str) -> str:
    """Removes the middle of a long label: many labels start alike."""
    if len(label) <= _MAX_LABEL_LENGTH:
        return label
    return f"{label[:26]}…{label[-13:]}"


def _draw(axis: Any, matrix: Matrix) -> None:
    labels = [*map(_shorten, matrix.labels)]
    shares = matrix.shares()
    # With aspect="equal", a title would push the labels out of the picture,
    # because matplotlib lays out the figure before it makes the cells square.
    axis.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axis.grid(visible=False)
    axis.set_xticks(range(len(labels)), labels, rotation=90)
    axis.set_yticks(range(len(labels)), labels)
    axis.set(xlabel="predicted", ylabel="true", title=matrix.name)
    if len(labels) > _MAX_CLASSES_WITH_COUNTS:
        return
    for row, counts in enumerate(matrix.counts):
        for column, count in enumerate(counts):
            color = "white" if shares[row][column] > 0.5 else "#1b2330"
            axis.text(
                column, row, str(count), ha="center", va="center", color=color
            )
