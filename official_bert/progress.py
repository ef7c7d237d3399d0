"""Progress bars: part done, speed and remaining time."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tqdm

from official_bert import files


def bar(
    iterable: Iterable[Any] | None = None,
    *,
    description: str,
    unit_scale: bool = True,
    **others: Any,
) -> Any:
    """Returns a `tqdm` progress bar on standard error.

    A terminal gets one live line; a file or a pipe gets a line every ten
    seconds, so that logs stay short. Without `iterable`, call `update`.
    `unit_scale` writes 12.3k for 12,300; `others` are arguments of `tqdm.tqdm`.
    """
    live = sys.stderr.isatty()
    return tqdm.tqdm(
        iterable,
        desc=description,
        unit_scale=unit_scale,
        dynamic_ncols=live,
        mininterval=0.2 if live else 10.0,
        maxinterval=10.0,
        file=sys.stderr,
        **others,
    )


def read_lines(
    names: Sequence[str],
    description: str,
    convert: Callable[[Iterator[str]], Iterator[str]] = iter,
) -> Iterator[str]:
    """Yields the lines of several text files, with a progress bar of bytes.

    `convert` changes the lines of each file.
    """
    total = sum(map(files.size, names))
    with bar(description=description, total=total, unit="B") as shown:
        for name in names:
            yield from convert(files.read_lines(name, on_bytes=shown.update))
