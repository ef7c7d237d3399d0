"""TensorBoard's events: {name: [(step, value)]}."""

from collections.abc import Iterator
from typing import NamedTuple

from absl import logging
from tensorboard.backend.event_processing import event_file_loader, io_wrapper
from tensorboard.util import tensor_util

from official_bert import files

# In a file, a record's length is before it, with a checksum of each.
_FRAME_SIZE = 16


class Point(NamedTuple):
    """One value of a curve."""

    step: int
    value: float


# {name: points, in the order they were written}.
Scalars = dict[str, list[Point]]


def read_folder(folder: str) -> list[Scalars]:
    """Returns the scalars of all event files of a folder, the oldest first.

    What a killed run has not written to the end is left out, and what follows
    a damaged record; a warning says so.

    Args:
        folder: Not what is in folders below it. There may be none.
    """
    if not files.exists(folder):
        return []
    names = [
        name
        for name in io_wrapper.ListDirectoryAbsolute(folder)
        if io_wrapper.IsTensorFlowEventsFile(name)
    ]
    found = [(_first_time(name), name) for name in names]
    return [_read(name) for _, name in sorted(found)]


def _first_time(name: str) -> float:
    """Returns when the first value was written; files are begun in seconds."""
    times = (e.wall_time for e in _events(name) if e.summary.value)
    return float(next(times, 0.0))


def _events(name: str) -> Iterator[event_file_loader.event_pb2.Event]:
    yield from event_file_loader.EventFileLoader(name).Load()


def _warn_if_cut_off(name: str) -> None:
    """Warns of a file that goes on where the loader ends without a word."""
    size = files.size(name)  # First: the file may be growing.
    records = event_file_loader.RawEventFileLoader(name).Load()
    end = sum(len(record) + _FRAME_SIZE for record in records)
    if end < size:
        logging.warning(
            "%s: cannot be read from byte %d of %d on, and what follows is not "
            "drawn. It is damaged there, or a killed run ended there.",
            name,
            end,
            size,
        )


def _read(name: str) -> Scalars:
    _warn_if_cut_off(name)
    scalars: Scalars = {}
    for event in _events(name):
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "scalars":
                number = float(tensor_util.make_ndarray(value.tensor).item())
                points = scalars.setdefault(value.tag, [])
                points.append(Point(event.step, number))
    return scalars


def one_after_the_other(parts: list[Scalars]) -> Scalars:
    """Joins what runs wrote that went on from each other's checkpoints.

    A run goes on before where the one before it was killed: from its first step
    on, only what it wrote itself is of the weights that there are.
    """
    joined: Scalars = {}
    for part in parts:
        first = min((p[0].step for p in part.values()), default=None)
        if first is None:
            continue
        for name in {**joined, **part}:
            before = [p for p in joined.get(name, []) if p.step < first]
            joined[name] = before + part.get(name, [])
    return {name: points for name, points in joined.items() if points}


def by_step(parts: list[Scalars]) -> Scalars:
    """Joins measurements; of two at the same step, the later one holds."""
    joined: dict[str, dict[int, float]] = {}
    for part in parts:
        for name, points in part.items():
            joined.setdefault(name, {}).update(points)
    return {
        name: [Point(*point) for point in sorted(values.items())]
        for name, values in joined.items()
    }
