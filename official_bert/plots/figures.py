"""Matplotlib figures in one style, saved as PNG and on a web page."""

import contextlib
import io
import os
import re
import warnings
from collections.abc import Iterator
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from official_bert import pages
from official_bert.io import files

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
    # Otherwise, `$...$` in a label is a formula.
    "text.parse_math": False,
    "xtick.color": "#5b6676",
    "ytick.color": "#5b6676",
}


@contextlib.contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """Yields a figure of a size in inches. Save it inside the context."""
    with matplotlib.rc_context(_STYLE):
        yield Figure(figsize=(width, height), layout="constrained")


def write(
    drawn: Figure, output_dir: str, name: str, variant: str = "", **values: Any
) -> list[str]:
    """Writes a picture and a page, `name``variant`.html; returns their paths.

    `values` are variables of the page's template, `name`.html.
    """
    path = os.path.join(output_dir, name + variant)
    page = pages.render(f"{name}.html", subtitle=output_dir, **values)
    with files.writing(path + ".png") as file:
        file.write(_saved(drawn, "png"))
    files.write_text(path + ".html", page)
    return [path + ".png", path + ".html"]


def to_svg(drawn: Figure) -> str:
    """Returns a figure as an `svg` element, with letters as paths."""
    text = _saved(drawn, "svg").decode("utf-8")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text[text.index("<svg") :]


def _saved(drawn: Figure, format: str) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # Letters that the font lacks are shown as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        drawn.savefig(buffer, format=format, dpi=144)
    return buffer.getvalue()
