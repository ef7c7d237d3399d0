"""Draws losses and gradient norms of pre-training runs against tokens.

  python -m benchmarks.pretraining_curves FIGURE.png "LABEL=DIRECTORY[,...]" ...

Each LABEL is a curve. Several directories are the stages of one training: each
stage began with the weights of the stage before. Tokens include padding. Dots
are losses on held-out text, from runs with --eval_every.
"""

import itertools
import os
import sys
from typing import Any

from PIL import Image

from official_bert.io import json_files
from official_bert.plots import figures, training_curves

_PANELS = {"masked_lm_loss": "masked-LM loss", "gradient_norm": "gradient norm"}
_COLORS = ("#8a94a3", "#b8470f", "#1d5fbf", "#2f7d4f")
_HIGHEST = 8.0  # End of the loss axis. Losses start at 10.


def main(path: str, *curves: str) -> None:
    with figures.figure(7.2, 5.4) as figure:
        axes = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
        for curve, color in zip(curves, itertools.cycle(_COLORS), strict=False):
            label, directories = curve.split("=", 1)
            draw(axes, label, directories.split(","), color)
        for axis, title in zip(axes, _PANELS.values(), strict=True):
            axis.set_title(title)
        axes[0].set_ylim(top=_HIGHEST)
        axes[0].legend()
        axes[1].set(xlabel="million tokens", ylim=(0, None))
        figure.savefig(path, dpi=110)
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


def draw(axes: Any, label: str, directories: list[str], color: str) -> None:
    """Draws the stages of a training as one curve in each panel."""
    begin = 0.0
    for directory in directories:
        curves = training_curves.read(directory)
        assert curves, f"{directory} has no events."
        per_step = million_tokens_per_step(directory)
        for axis, name in zip(axes, _PANELS, strict=True):
            points = curves.training[name]
            values = training_curves.smooth(points.values(), 0.8)
            x = [begin + per_step * step for step in points]
            axis.plot(x, values, color=color, linewidth=1.4)
        held_out = curves.evaluation.get("masked_lm_loss", {})
        held_out_x = [begin + per_step * step for step in held_out]
        axes[0].plot(held_out_x, list(held_out.values()), ".", color=color)
        begin = x[-1]
    axes[0].plot([], color=color, label=label)


def million_tokens_per_step(directory: str) -> float:
    """Returns the million tokens of a run's batches, padding included."""
    path = os.path.join(directory, "train_options.json")
    options = json_files.read_object(path)["options"]
    size = options["max_seq_length"] * options["train_batch_size"]
    return float(size / 1e6)


if __name__ == "__main__":
    main(*sys.argv[1:])
