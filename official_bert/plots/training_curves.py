"""Training curves, read from TensorBoard events."""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from absl import logging
from tensorboard.backend.event_processing import event_file_loader, io_wrapper
from tensorboard.util import tensor_util

from official_bert import files, pages
from official_bert.plots import figures

# These are drawn first; all others follow by name.
_ORDER = (
    "loss",
    "masked_lm_loss",
    "next_sentence_loss",
    "learning_rate",
    "gradient_norm",
    "loss_scale",
    "examples_per_second",
)
_PALE_BLUE, _BLUE, _ORANGE = "#9dbbe3", "#1d5fbf", "#b8470f"
# Curves with fewer points are not smoothed.
_MIN_POINTS_TO_SMOOTH = 50
# A record in an event file has its length before it, and two checksums.
_RECORD_OVERHEAD = 16


class Point(NamedTuple):
    """One value of a curve."""

    step: int
    value: float


# {name: points, in the order they were written}.
Scalars = dict[str, list[Point]]


class Curves(NamedTuple):
    """The scalars that training and evaluation of one run wrote."""

    training: Scalars
    evaluation: Scalars

    def last_step(self) -> int:
        """Returns the last step of all curves."""
        curves = (*self.training.values(), *self.evaluation.values())
        return max(1, *(points[-1].step for points in curves))

    def names(self) -> list[str]:
        """Returns the names of all curves in the order they are drawn."""
        known = {name: place for place, name in enumerate(_ORDER)}
        names = {*self.training, *self.evaluation}
        return sorted(names, key=lambda n: (known.get(n, len(known)), n))


def read(output_dir: str) -> Curves | None:
    """Returns the curves of a run, or None if there are no events.

    Of a run that was killed and resumed, the curves have only the values that
    belong to the final weights. Of evaluations of the same step, the last one
    counts.
    """
    curves = Curves(
        _join_training(_read_directory(output_dir)),
        _join_evaluations(_read_directory(os.path.join(output_dir, "eval"))),
    )
    return curves if curves.names() else None


def smooth(points: list[Point], decay: float = 0.9) -> list[float]:
    """Returns the exponential moving averages of a curve, without bias.

    Like Adam's moments, averages are divided by the sum of their weights, so
    that the first ones are not too small.
    """
    total = weight = 0.0
    averages = []
    for point in points:
        total = decay * total + (1 - decay) * point.value
        weight = decay * weight + (1 - decay)
        averages.append(total / weight)
    return averages


def draw(output_dir: str, curves: Curves) -> list[str]:
    """Writes `training_curves.png` and `.html`; returns their paths."""
    path = os.path.join(output_dir, "training_curves")
    names = curves.names()
    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    with figures.figure(4.4 * columns, 2.9 * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis, name in zip(axes, names, strict=False):
            _draw(axis, name, curves)
            axis.set_xlim(0, 1.02 * curves.last_step())
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        page = pages.render(
            "plot.html",
            title="Training curves",
            subtitle=output_dir,
            svg=figures.to_svg(figure),
        )
        figures.write_png(figure, path + ".png")
    files.write_text(path + ".html", page)
    return [path + ".png", path + ".html"]


def _draw(axis: Any, name: str, curves: Curves) -> None:
    axis.set(title=name, xlabel="step")
    points = curves.training.get(name, [])
    if points:
        steps, values = zip(*points, strict=True)
        marker = "o" if len(points) == 1 else None
        if len(points) < _MIN_POINTS_TO_SMOOTH or name == "learning_rate":
            axis.plot(steps, values, marker=marker, color=_BLUE, linewidth=1.6)
        else:
            axis.plot(steps, values, color=_PALE_BLUE, linewidth=0.8)
            axis.plot(steps, smooth(points), color=_BLUE, label="average")
        axis.lines[0].set_label("training")
    points = curves.evaluation.get(name, [])
    if points:
        steps, values = zip(*points, strict=True)
        axis.plot(steps, values, "o-", color=_ORANGE, label="evaluation")
    if len(axis.lines) > 1:
        axis.legend()


def _read_directory(directory: str) -> list[Scalars]:
    """Returns the scalars of each event file, oldest first.

    An incomplete or damaged record ends its file; a warning reports it.
    """
    if not files.exists(directory):
        return []
    paths = [
        path
        for path in io_wrapper.ListDirectoryAbsolute(directory)
        if io_wrapper.IsTensorFlowEventsFile(path)
    ]
    return [_read_file(path) for path in sorted(paths, key=_start_time)]


def _start_time(path: str) -> float:
    """Returns the time of the first scalar: file names have only seconds."""
    times = (event.wall_time for event in _events(path) if event.summary.value)
    return float(next(times, 0.0))


def _events(path: str) -> Iterator[event_file_loader.event_pb2.Event]:
    yield from event_file_loader.EventFileLoader(path).Load()


def _read_file(path: str) -> Scalars:
    _warn_if_incomplete(path)
    scalars: Scalars = {}
    for event in _events(path):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                number = float(tensor_util.make_ndarray(value.tensor).item())
                points = scalars.setdefault(value.tag, [])
                points.append(Point(event.step, number))
    return scalars


def _warn_if_incomplete(path: str) -> None:
    """Warns if the loader, which says nothing, stops before the file's end."""
    size = files.size(path)  # Before reading: the file may be growing.
    records = event_file_loader.RawEventFileLoader(path).Load()
    end = sum(len(record) + _RECORD_OVERHEAD for record in records)
    if end < size:
        logging.warning(
            "%s: not drawn from byte %d of %d on, where the file is damaged or "
            "a killed run stopped writing.",
            path,
            end,
            size,
        )


def _join_training(parts: list[Scalars]) -> Scalars:
    """Joins the scalars of runs that resumed each other.

    A run starts at a checkpoint before the last step of the killed run. From
    its first step on, it replaces all values of the earlier runs.
    """
    joined: Scalars = {}
    for part in parts:
        if not part:
            continue
        first = min(points[0].step for points in part.values())
        for name in {**joined, **part}:
            before = [p for p in joined.get(name, []) if p.step < first]
            joined[name] = before + part.get(name, [])
    return {name: points for name, points in joined.items() if points}


def _join_evaluations(parts: list[Scalars]) -> Scalars:
    joined: dict[str, dict[int, float]] = {}
    for part in parts:
        for name, points in part.items():
            joined.setdefault(name, {}).update(points)
    return {
        name: [Point(*point) for point in sorted(values.items())]
        for name, values in joined.items()
    }
