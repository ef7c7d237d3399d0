"""Training curves, read from TensorBoard events."""

import math
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from absl import logging
from tensorboard.backend.event_processing import event_file_loader, io_wrapper
from tensorboard.util import tensor_util

from official_bert.io import files
from official_bert.plots import figures
from official_bert.runs import file_names

# These are drawn first; all others follow in alphabetical order.
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
# The length and two checksums of each record in an event file.
_RECORD_OVERHEAD = 16


# The points of curves, {name: {step: value}}.
Scalars = dict[str, dict[int, float]]


class Curves(NamedTuple):
    """The scalars that the training and the evaluations of a run wrote."""

    training: Scalars
    evaluation: Scalars


def read(output_dir: str) -> Curves | None:
    """Returns the curves of a run, or None if there are no events.

    If the run was killed and resumed, the curves have only the values that
    belong to the final weights. If a step was evaluated more than once, the
    last evaluation counts.
    """
    curves = Curves(
        _join_training(_read_directory(output_dir)),
        _join_evaluations(
            _read_directory(os.path.join(output_dir, file_names.EVENTS))
        ),
    )
    return curves if any(curves) else None


def smooth(values: Iterable[float], decay: float = 0.9) -> list[float]:
    """Returns the exponential moving averages of values, without bias.

    As in the bias correction of Adam, averages are divided by the sum of their
    weights, so that the first ones are not too small.
    """
    total = weight = 0.0
    averages = []
    for value in values:
        total = decay * total + (1 - decay) * value
        weight = decay * weight + (1 - decay)
        averages.append(total / weight)
    return averages


def draw(output_dir: str, curves: Curves) -> list[str]:
    """Writes `training_curves.png` and `.html`; returns their paths."""
    names = {*curves.training, *curves.evaluation}
    ordered = [name for name in _ORDER if name in names]
    ordered += sorted(names.difference(_ORDER))
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    last_steps = [max(p) for scalars in curves for p in scalars.values()]
    with figures.figure(4.4 * columns, 2.9 * rows) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis, name in zip(axes, ordered, strict=False):
            _draw(axis, name, curves)
            axis.set_xlim(0, 1.02 * max(1, *last_steps))
        for axis in axes[len(names) :]:
            axis.set_visible(False)
        svg = figures.to_svg(figure)
        return figures.write(figure, output_dir, "training_curves", svg=svg)


def _draw(axis: Any, name: str, curves: Curves) -> None:
    axis.set(title=name, xlabel="step")
    if points := curves.training.get(name):
        steps, values = zip(*points.items(), strict=True)
        marker = "o" if len(points) == 1 else None
        if len(points) < _MIN_POINTS_TO_SMOOTH or name == "learning_rate":
            axis.plot(steps, values, marker=marker, color=_BLUE, linewidth=1.6)
        else:
            axis.plot(steps, values, color=_PALE_BLUE, linewidth=0.8)
            axis.plot(steps, smooth(values), color=_BLUE, label="average")
        axis.lines[0].set_label("training")
    if points := curves.evaluation.get(name):
        steps, values = zip(*points.items(), strict=True)
        axis.plot(steps, values, "o-", color=_ORANGE, label="evaluation")
    if len(axis.lines) > 1:
        axis.legend()


def _read_directory(directory: str) -> list[Scalars]:
    """Returns the scalars of each event file, oldest first."""
    if not files.exists(directory):
        return []
    paths = io_wrapper.ListDirectoryAbsolute(directory)
    event_files = filter(io_wrapper.IsTensorFlowEventsFile, paths)
    by_time = sorted(map(_read_file, event_files), key=lambda read: read[0])
    return [scalars for _, scalars in by_time]


def _read_file(path: str) -> tuple[float, Scalars]:
    """Returns the time of a file's first scalar, and all scalars.

    The time in the file name has only seconds. TensorBoard's loader stops
    silently at an incomplete or damaged record; here a warning reports it.
    """
    size = files.size(path)  # Before reading: the file may be growing.
    records = [*event_file_loader.RawEventFileLoader(path).Load()]
    end = sum(len(record) + _RECORD_OVERHEAD for record in records)
    if end < size:
        logging.warning(
            f"{path}: data from byte {end} of {size} on is not drawn. The file "
            "is damaged there, or a killed run stopped writing."
        )
    start = 0.0
    scalars: Scalars = {}
    for event in map(event_file_loader.event_pb2.Event.FromString, records):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                start = start or event.wall_time
                number = float(tensor_util.make_ndarray(value.tensor).item())
                scalars.setdefault(value.tag, {})[event.step] = number
    return start, scalars


def _join_training(runs: list[Scalars]) -> Scalars:
    """Joins the scalars of runs that resumed each other.

    A run starts at a checkpoint before the last step of the killed run. From
    its first step on, it replaces all values of the earlier runs.
    """
    joined: Scalars = {}
    for run in filter(None, runs):
        first = min(min(points) for points in run.values())
        for name in {**joined, **run}:
            points = joined.get(name, {})
            before = {step: points[step] for step in points if step < first}
            joined[name] = before | run.get(name, {})
    return {name: points for name, points in joined.items() if points}


def _join_evaluations(runs: list[Scalars]) -> Scalars:
    joined: Scalars = {}
    for run in runs:
        for name, points in run.items():
            joined.setdefault(name, {}).update(points)
    return {
        name: dict(sorted(points.items())) for name, points in joined.items()
    }
