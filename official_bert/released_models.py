"""The models that Google released in 2018 to 2020."""

import csv
import functools
import importlib.resources


@functools.cache
def released() -> dict[str, dict[str, str]]:
    """Returns {name: row of `released_models.tsv`}."""
    table = importlib.resources.files("official_bert") / "released_models.tsv"
    lines = table.read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in csv.DictReader(lines, delimiter="\t")}
