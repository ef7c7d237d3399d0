"""Training curves."""

import os
from typing import Any, NamedTuple

from official_bert.plots import drawing, events
from official_bert.plots.events import Point, Scalars

_NAME = "training_curves"

# Losses first, what else is known next, the rest by name.
_ORDER = (
    "loss",
    "masked_lm_loss",
    "next_sentence_loss",
    "learning_rate",
    "gradient_norm",
    "loss_scale",
    "examples_per_second",
)
_TRAINED, _SMOOTH, _MEASURED = "#9dbbe3", "#1d5fbf", "#b8470f"
# Fewer points are seen well enough as they are.
_SMOOTHED_FROM = 50


class Curves(NamedTuple):
    """The curves of training and evaluation of one run.

    Attributes:
        trained: What training wrote, on the way.
        measured: What evaluations wrote.
    """

    trained: Scalars
    measured: Scalars

    def last_step(self) -> int:
        """Returns the last that anything is known of, 1 or more."""
        curves = (*self.trained.values(), *self.measured.values())
        return max(1, *(points[-1].step for points in curves))

    def names(self) -> list[str]:
        """Returns the names of both, in the order they are drawn."""
        known = {name: place for place, name in enumerate(_ORDER)}
        names = {*self.trained, *self.measured}
        return sorted(names, key=lambda n: (known.get(n, len(known)), n))


def read(output_dir: str) -> Curves | None:
    """Returns the scalars in the events of a run, or None without any."""
    curves = Curves(
        events.one_after_the_other(events.read_folder(output_dir)),
        events.by_step(events.read_folder(os.path.join(output_dir, "eval"))),
    )
    return curves if curves.names() else None


def smooth(points: list[Point], keep: float = 0.9) -> list[float]:
    """Returns the exponential moving average, right from the first point on.

    Args:
        points: Of a curve.
        keep: The weight of the average so far. Averages are divided by the sum
            of their weights, so that they do not begin at zero.
    """
    total = weight = 0.0
    averages = []
    for point in points:
        total = keep * total + (1 - keep) * point.value
        weight = keep * weight + (1 - keep)
        averages.append(total / weight)
    return averages


def draw(output_dir: str, curves: Curves) -> list[str]:
    """Writes `training_curves.png` and `.html`; returns their names."""
    names = curves.names()
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    with drawing.figure(4.4 * columns, 2.9 * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis, name in zip(axes, names, strict=False):
            _draw(axis, name, curves)
            axis.set_xlim(0, 1.02 * curves.last_step())
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        return drawing.write(
            figure,
            os.path.join(output_dir, _NAME),
            title="Training curves",
            subtitle=output_dir,
        )


def _draw(axis: Any, name: str, curves: Curves) -> None:
    axis.set_title(name)
    axis.set_xlabel("step")
    trained = curves.trained.get(name, [])
    if trained:
        steps = [point.step for point in trained]
        is_smoothed = len(trained) >= _SMOOTHED_FROM and name != "learning_rate"
        axis.plot(
            steps,
            [point.value for point in trained],
            marker="o" if len(trained) == 1 else None,
            color=_TRAINED if is_smoothed else _SMOOTH,
            linewidth=0.8 if is_smoothed else 1.6,
            label="training",
        )
        if is_smoothed:
            averages = smooth(trained)
            axis.plot(steps, averages, color=_SMOOTH, label="its average")
    measured = curves.measured.get(name, [])
    if measured:
        axis.plot(
            *zip(*measured, strict=True),
            "o-",
            color=_MEASURED,
            label="evaluation",
        )
    if len(axis.lines) > 1:
        axis.legend()
