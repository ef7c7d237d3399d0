"""What became of a model: compared number by number, and as a table."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from official_bert import progress
from official_bert.checkpoints import loading
from official_bert.checkpoints.conversion.model import Described, Model
from official_bert.checkpoints.names import Shape
from official_bert.options.convert_checkpoint import ConvertCheckpoint

HEADER = f"{'':7}{'arrays':>7}{'MB':>9}"


class Difference(NamedTuple):
    """What came back of what was written.

    Attributes:
        num_arrays: How many were compared.
        largest: The largest absolute difference between any two numbers.
        lost: What is beside the weights and came back otherwise.
    """

    num_arrays: int
    largest: float
    lost: list[str]


def compare(model: Model, again: Model) -> Difference:
    """Compares all that a model is with what came back."""
    largest = 0.0
    compared = [name for name in model.shapes if name in again.places]
    missing = [name for name in model.places if name not in again.places]
    if missing or model.head.parts != again.head.parts:
        largest = math.inf
    for name in progress.bar(compared, description="Comparing", unit=" arrays"):
        before, after = model.read(name), again.read(name)
        if not np.array_equal(before, after, equal_nan=True):
            gap = np.abs(before - after)
            largest = max(largest, float(np.nan_to_num(gap, nan=np.inf).max()))
    return Difference(
        len(compared), largest, list(_lost(model.described, again.described))
    )


def _lost(before: Described, after: Described) -> Iterable[str]:
    ours, theirs = before.config.to_dict(), after.config.to_dict()
    for name in sorted({*ours, *theirs}):
        old, new = ours.get(name), theirs.get(name)
        if (old or 0) != (new or 0) and _lower(old) != _lower(new):
            yield f"{name}: {old!r} comes back as {new!r}"
    if before.vocab != after.vocab:
        yield "the vocabulary's line ends or spaces"
    if after.do_lower_case not in (None, before.do_lower_case):
        yield f"do_lower_case: comes back as {after.do_lower_case}"


def _lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def report(
    model: Model, difference: Difference, options: ConvertCheckpoint
) -> str:
    """Returns a table of what was converted, and what was not."""
    written = {
        name: shape
        for name, shape in model.shapes.items()
        if options.to != "huggingface" or name in model.places
    }
    lines = [
        HEADER,
        row("input", model.arrays.shapes, model.arrays.where),
        row("output", written, options.output),
        f"Head: {model.head.name}. Read back: {difference.num_arrays} arrays, "
        f"largest difference {difference.largest:g}.",
    ]
    used = {place.name for place in model.places.values()}
    unused = {n for n in model.arrays.shapes if n not in used}
    state = {n for n in unused if re.search(loading.OPTIMIZER_STATE, n)}
    if state:
        lines.append(f"Left out: {len(state)} arrays of an optimizer's state.")
    if left_out := sorted({*unused, *model.skipped} - state):
        shown = ", ".join(left_out[:4])
        rest = f", and {len(left_out) - 4} more" if len(left_out) > 4 else ""
        lines.append(f"Left out: {shown}{rest}.")
    if model.made_anew and options.to != "huggingface":
        lines.append(f"Made anew: {', '.join(model.made_anew)}.")
    for lost in difference.lost:
        lines.append(f"Not kept by {options.to}: {lost}.")
    if model.described.do_lower_case is not None:
        lines.append(f"do_lower_case: {model.described.do_lower_case}.")
    return "\n".join(lines)


def row(name: str, shapes: Mapping[str, Shape], where: str) -> str:
    """Returns a line of the table under `HEADER`."""
    megabytes = 4e-6 * sum(math.prod(shape) for shape in shapes.values())
    return f"{name:7}{len(shapes):7,}{megabytes:9,.1f}  {where}"
