"""Every flag of the original is still there: its name, type and default.

`original_flags.tsv` lists the flags of the original's six commands, as in
google-research/bert at its last commit, eedf5716. Defaults are JSON.

* The default of a required flag is null there, and missing here.
* `run_classifier_with_tfhub` defines one flag and imports `run_classifier`, so
  it has the flags of both, but not all of them are required.
"""

import csv
import dataclasses
import importlib
import json
import pathlib
import types
import typing
from typing import Any

import pytest

TABLE = pathlib.Path(__file__).with_name("original_flags.tsv")
TYPES = {"string": str, "integer": int, "float": float, "bool": bool}

with TABLE.open(encoding="utf-8", newline="") as file:
    FLAGS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

COMMANDS = sorted({flag["command"] for flag in FLAGS})


def differences(options: Any, flags: list[dict[str, str]]) -> list[str]:
    """Returns the flags that an old command line could not use any more."""
    fields = {field.name: field for field in dataclasses.fields(options)}
    hints = typing.get_type_hints(options)
    expected = {}
    for flag in flags:
        kind: Any = TYPES[flag["type"]]
        default: Any = json.loads(flag["default"])
        if flag["required"] == "required":
            default = dataclasses.MISSING
        elif default is None:
            kind = kind | types.NoneType
        expected[flag["flag"]] = (kind, type(default), default)
    found = {
        name: (hints[name], type(field.default), field.default)
        for name, field in fields.items()
        if name in expected or field.default is dataclasses.MISSING
    }
    names = {**expected, **found}
    return [n for n in names if found.get(n) != expected.get(n)]


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_the_flags_of_the_original(command):
    main = importlib.import_module(command).main
    flags = [flag for flag in FLAGS if flag["command"] == command]
    assert differences(typing.get_type_hints(main)["options"], flags) == []


def test_table_lists_all_flags_of_the_original():
    defined = [
        (flag["command"], flag["flag"])
        for flag in FLAGS
        if flag["command"] != "run_classifier_with_tfhub"
        or flag["flag"] == "bert_hub_module_handle"
    ]
    assert len(COMMANDS) == 6
    assert len(set(defined)) == len(defined) == 102
    assert len({name for _, name in defined}) == 49


def test_each_kind_of_difference_is_found():
    @dataclasses.dataclass
    class Changed:
        added: int
        wider: float = 1
        renamed_file: str | None = None
        steps: int = 3
        vocab_file: str = "vocab.txt"

    rows = [
        ("wider", "integer", "1", "optional"),
        ("old_file", "string", "null", "optional"),
        ("steps", "integer", "2", "optional"),
        ("vocab_file", "string", "null", "required"),
    ]
    keys = ("flag", "type", "default", "required")
    flags = [dict(zip(keys, row, strict=True)) for row in rows]
    expected = ["wider", "old_file", "steps", "vocab_file", "added"]
    assert differences(Changed, flags) == expected
