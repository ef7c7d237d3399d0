"""Progress bars: part done, speed and remaining time."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tqdm

from official_bert import files


def bar(
    iterable: Iterable[Any] | None = None,
    *,
    description: str,
    total: int | None = None,
    unit: str = "it",
    initial: int = 0,
    unit_scale: bool = True,
    disable: bool = False,
) -> Any:
    """Returns a `tqdm` progress bar on standard error.

    A terminal gets one live line; a file or a pipe gets a line every ten
    seconds, so that logs stay short.

    Args:
        iterable: What to iterate over, or None to call `update` by hand.
        description: A word or two on what is being done.
        total: The number of units, if known.
        unit: What is counted.
        initial: The number of units that an earlier run has done.
        unit_scale: Whether to write 12.3k for 12,300.
        disable: Whether to show nothing.
    """
    live = sys.stderr.isatty()
    return tqdm.tqdm(
        iterable,
        desc=description,
        total=total,
        unit=unit,
        initial=initial,
        unit_scale=unit_scale,
        disable=disable,
        dynamic_ncols=live,
        mininterval=0.2 if live else 10.0,
        maxinterval=10.0,
        file=sys.stderr,
    )


def read_lines(names: Sequence[str], description: str) -> Iterator[str]:
    """Yields the lines of several text files, with a progress bar of bytes."""
    total = sum(map(files.size, names))
    with bar(description=description, total=total, unit="B") as shown:
        for name in names:
            yield from files.read_lines(name, on_bytes=shown.update)
