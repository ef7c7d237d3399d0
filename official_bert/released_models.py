"""The models that Google released in 2018 to 2020, and one of this project."""

import csv
import functools
import importlib.resources
import os

# The model that comes with the commands and needs no network.
DEMO = "bert_tiny_demo"
DEMO_ROW = {
    "layers": "2",
    "hidden": "128",
    "heads": "2",
    "casing": "uncased",
    "repository": "data/bert_tiny",
}


@functools.cache
def released() -> dict[str, dict[str, str]]:
    """Returns {name: row of `released_models.tsv`}."""
    table = importlib.resources.files("official_bert") / "released_models.tsv"
    lines = table.read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in csv.DictReader(lines, delimiter="\t")}


def commands_directory() -> str:
    """Returns the directory of the commands and of `data/`."""
    package = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(package, "commands")  # Only in wheels.
    is_wheel = os.path.isdir(installed)
    return installed if is_wheel else os.path.dirname(package)
