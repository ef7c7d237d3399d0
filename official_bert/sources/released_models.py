"""The models that Google released in 2018 to 2020, and one of this project."""

import csv
import functools
import importlib.resources
import re
import sys
from typing import NoReturn

from official_bert.errors import InputError, suppress_broken_pipe

# The model that comes with the commands and needs no network.
DEMO = "bert_tiny_demo"


@functools.cache
def released() -> dict[str, dict[str, str]]:
    """Returns {name: row of `released_models.tsv`}."""
    table = importlib.resources.files(__package__) / "released_models.tsv"
    lines = table.read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in csv.DictReader(lines, delimiter="\t")}


def show_released() -> NoReturn:
    """Prints the released models and exits: `--model=list`."""
    with suppress_broken_pipe():
        print(f"{'name':28} layers hidden heads casing  repository")
        for name, row in released().items():
            print(
                f"{name:28} {row['layers']:>6} {row['hidden']:>6} "
                f"{row['heads']:>5} {row['casing']:7} {row['repository']}"
            )
    sys.exit()


def validate_case_matches_checkpoint(
    do_lower_case: bool, init_checkpoint: str | None
) -> None:
    """Raises `InputError` if a released checkpoint has a different casing.

    The checkpoint is recognized by the name of its directory, such as
    "uncased_L-12_H-768_A-12/bert_model.ckpt". Other names are not checked. The
    message is the original implementation's, except for its last sentence.
    """
    match = re.search(
        r"([A-Za-z0-9_-]+)/bert_model\.ckpt", init_checkpoint or ""
    )
    model = match.group(1) if match else ""
    row = released().get(model)
    if row and do_lower_case == (row["casing"] == "cased"):
        raise InputError(
            f"You passed in `--do_lower_case={do_lower_case}` with "
            f"`--init_checkpoint={init_checkpoint}`. However, `{model}` seems "
            f"to be a {'cased' if do_lower_case else 'lowercased'} model, so "
            f"you should pass in `--do_lower_case={not do_lower_case}` so that "
            "the fine-tuning matches how the model was pre-training. Rename "
            "the directory if this is another model."
        )
