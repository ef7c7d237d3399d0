"""The model card, which the Hugging Face Hub shows as the page of a model."""

import importlib.resources
import itertools
import os
import re

import jinja2

from official_bert.io import files
from official_bert.options.convert_checkpoint import ConvertCheckpoint
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths
from official_bert.sources.stored_model import Arrays, Model

_CARD = "README.md"


def write(model: Model, directory: str, options: ConvertCheckpoint) -> None:
    """Writes `README.md`, with the metrics of these weights if known."""
    text = files.read_text(options.model_card) if options.model_card else ""
    template = importlib.resources.files(__package__) / "model_card.md"
    card = jinja2.Template(
        template.read_text(encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    ).render(
        name=os.path.basename(os.path.abspath(options.output)),
        config=model.description.config,
        do_lower_case=model.description.settings.do_lower_case,
        head=model.head,
        labels=model.description.labels,
        embedding=model.description.embedding,
        text=text.strip(),
        license=options.license or _license(model.arrays.where),
        metrics={} if options.average_checkpoints else _metrics(model),
    )
    files.write_text(os.path.join(directory, _CARD), card)


def has_other_results(arrays: Arrays) -> bool:
    """Whether the results beside a checkpoint are those of another step."""
    step = _results(arrays).get("global_step")
    return step is not None and not _is_at_step(arrays, step)


def _metrics(model: Model) -> dict[str, str]:
    """Returns the metrics of the run if they are those of this checkpoint."""
    metrics = _results(model.arrays)
    if not _is_at_step(model.arrays, metrics.pop("global_step", None)):
        return {}
    if "eval_loss" in metrics:
        metrics.pop("loss", None)  # Another mean of the same losses.
    return metrics


def _results(arrays: Arrays) -> dict[str, str]:
    """Returns the results of a checkpoint's run, {} if there are none."""
    path = checkpoint_paths.beside(arrays.where, file_names.METRICS_TEXT)
    lines = files.read_text(path).splitlines() if path else []
    return dict(line.split(" = ", 1) for line in lines)


def _is_at_step(arrays: Arrays, step: str | None) -> bool:
    """Whether the weights are those of a step, as far as is known."""
    has_step = "global_step" in arrays.shapes
    return not has_step or step == str(arrays.read("global_step"))


def _license(where: str) -> str | None:
    """Returns the license that the model card of a converted model names."""
    path = checkpoint_paths.beside(where, _CARD)
    lines = files.read_text(path).splitlines() if path else []
    if not lines or lines[0] != "---":
        return None
    front = itertools.takewhile(lambda line: line != "---", lines[1:])
    found = [re.fullmatch(r"license: *(\S+)", line) for line in front]
    return next((match[1] for match in found if match), None)
