"""Confusion matrices: what is taken for what."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from official_bert import files, pages
from official_bert.plots import drawing

_NAME = "confusion_matrix"

# With more classes, numbers would not fit their cells.
_MOST_WITH_NUMBERS = 25

# Longer labels are shortened in the picture; the page has them whole.
_LONGEST_LABEL = 40
# On average it is 0.07; capitals are wider.
_INCHES_PER_LETTER = 0.09


class Matrix(NamedTuple):
    """The confusion matrix of one set of examples.

    Attributes:
        name: Of the set; nothing, if it is the only one or the first.
        labels: Of C classes.
        counts: C lists of C, a row for each true label, a column for each
            predicted one.
        scores: Of every class, {precision, recall, f1, support}.
    """

    name: str
    labels: list[str]
    counts: list[list[int]]
    scores: list[Mapping[str, float]]

    def shares(self) -> list[list[float]]:
        """Returns the counts over the sums of their rows."""
        return [
            [count / (sum(row) or 1) for count in row] for row in self.counts
        ]


def find(results: Mapping[str, Any]) -> list[Matrix]:
    """Returns the matrices in what `eval_results.json` holds.

    Args:
        results: Metrics, and other sets' metrics under their names.
    """
    found = []
    for name, part in [("", results), *results.items()]:
        if isinstance(part, Mapping) and "confusion_matrix" in part:
            scores = part["per_class"]
            counts = part["confusion_matrix"]
            found.append(
                Matrix(name, list(scores), counts, list(scores.values()))
            )
    return found


def draw(output_dir: str, matrices: list[Matrix]) -> list[str]:
    """Writes `confusion_matrix.png` and `.html`; returns their names."""
    path = os.path.join(output_dir, _NAME)
    size = _size(matrices[0].labels)
    with drawing.figure(size * len(matrices), size) as figure:
        axes = figure.subplots(1, len(matrices), squeeze=False).ravel()
        for axis, matrix in zip(axes, matrices, strict=True):
            _draw(axis, matrix)
        drawing.write_png(figure, path + ".png")
    page = pages.render(
        "confusion.html",
        title="Confusion matrix",
        subtitle=output_dir,
        matrices=matrices,
    )
    files.write_text(path + ".html", page)
    return [path + ".png", path + ".html"]


def _size(labels: list[str]) -> float:
    """Returns width and height of a matrix in inches, with room for labels."""
    cells = max(3.0, 0.9 + 0.42 * min(len(labels), 40))
    longest = max(len(_shown(label)) for label in labels)
    return cells + _INCHES_PER_LETTER * longest


def _shown(label: str) -> str:
    """Returns a label; of a long one both ends, as many begin alike."""
    if len(label) <= _LONGEST_LABEL:
        return label
    return f"{label[:26]}…{label[-13:]}"


def _draw(axis: Any, matrix: Matrix) -> None:
    labels = [_shown(label) for label in matrix.labels]
    num_labels = len(labels)
    shares = matrix.shares()
    # If cells had to be squares, a title would push what is below out of the
    # picture: matplotlib makes room before it makes squares.
    axis.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axis.grid(visible=False)
    axis.set_xticks(range(num_labels), labels, rotation=90)
    axis.set_yticks(range(num_labels), labels)
    axis.set_xlabel("predicted")
    axis.set_ylabel("true")
    axis.set_title(matrix.name)
    if num_labels > _MOST_WITH_NUMBERS:
        return
    for row, counts in enumerate(matrix.counts):
        for column, count in enumerate(counts):
            axis.text(
                column,
                row,
                str(count),
                ha="center",
                va="center",
                color="white" if shares[row][column] > 0.5 else "#1b2330",
            )
