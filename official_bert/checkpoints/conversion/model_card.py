"""The model card of a converted model: `README.md` on the Hugging Face Hub."""

import importlib.resources
import os

import jinja2

from official_bert import files, model_formats
from official_bert.checkpoints.conversion.model import Model


def write(model: Model, name: str, directory: str, text: str) -> None:
    """Writes `README.md`, with the metrics of the model's run if it has them.

    `name` is that of the converted model, and `text` Markdown to insert.
    """
    results = model_formats.beside_checkpoint(
        model.arrays.where, "eval_results.txt"
    )
    lines = files.read_text(results).splitlines() if results else []
    template = importlib.resources.files(__package__) / "model_card.md"
    card = jinja2.Template(
        template.read_text(encoding="utf-8"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    ).render(
        name=name,
        config=model.description.config,
        do_lower_case=model.description.do_lower_case,
        head=model.head,
        labels=model.description.labels,
        text=text.strip(),
        metrics=dict(line.split(" = ", 1) for line in lines),
    )
    files.write_text(os.path.join(directory, "README.md"), card)
