"""Figures: matplotlib set up, and written as PNG and as a page."""

import contextlib
import io
import re
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib
import matplotlib.figure

from official_bert import files, pages

_STYLE: Any = {
    "axes.edgecolor": "#b9c1cd",
    "axes.formatter.limits": (-3, 5),
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": "#5b6676",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "font.size": 9,
    "grid.color": "#e8ebf0",
    "legend.frameon": False,
    "lines.markersize": 4,
    "svg.hashsalt": "official_bert",
    # Names with two `$` are no formulas.
    "text.parse_math": False,
    "xtick.color": "#5b6676",
    "ytick.color": "#5b6676",
}


@contextlib.contextmanager
def figure(width: float, height: float) -> Iterator[matplotlib.figure.Figure]:
    """Yields a figure, to be drawn and written in the same style.

    Args:
        width: Inches.
        height: Inches.
    """
    with matplotlib.rc_context(_STYLE):
        yield matplotlib.figure.Figure(
            figsize=(width, height), layout="constrained"
        )


def write(
    drawn: matplotlib.figure.Figure, path: str, *, title: str, subtitle: str
) -> list[str]:
    """Writes PATH.png, and PATH.html with the same.

    Returns:
        Both names.
    """
    page = pages.render(
        "plot.html", title=title, subtitle=subtitle, svg=_svg(drawn)
    )
    write_png(drawn, path + ".png")
    files.write_text(path + ".html", page)
    return [path + ".png", path + ".html"]


def write_png(drawn: matplotlib.figure.Figure, path: str) -> None:
    """Writes a figure as pixels."""
    with files.writing(path) as file:
        file.write(_saved(drawn, "png"))


def _svg(drawn: matplotlib.figure.Figure) -> str:
    """Returns the element `svg`, all letters as curves."""
    text = _saved(drawn, "svg").decode("utf-8")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text[text.index("<svg") :]


def _saved(drawn: matplotlib.figure.Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A label of a script that the font lacks shows boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        drawn.savefig(
            buffer,
            format=kind,
            dpi=144,
            metadata={"Date": None} if kind == "svg" else {},
        )
    return buffer.getvalue()
