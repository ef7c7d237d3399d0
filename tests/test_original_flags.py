"""Every flag of the 2018 release is still there: name, type and default.

`original_flags.tsv` lists the flags of its six commands, as they stand in
google-research/bert at its last commit, eedf5716. The defaults are JSON. Two
things to know:

* A required flag's default is null there, and none at all here.
* `run_classifier_with_tfhub` defines one flag, imports `run_classifier` and so
  has its flags too, but not its requirements: vocabulary and casing come from
  the Hub module. The table lists that whole command line.
"""

import csv
import dataclasses
import importlib.util
import inspect
import json
import pathlib
import types
import typing
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
TABLE = pathlib.Path(__file__).with_name("original_flags.tsv")

TYPES = {"string": str, "integer": int, "float": float, "bool": bool}

with TABLE.open(encoding="utf-8", newline="") as file:
    FLAGS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

COMMANDS = sorted({flag["command"] for flag in FLAGS})


def options_class(command: str) -> Any:
    """Returns the type of the only parameter of a command's `main`."""
    path = ROOT / f"{command}.py"
    if not path.exists():
        pytest.skip(f"{command}.py is yet to be written")
    spec = importlib.util.spec_from_file_location(command, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    [parameter] = inspect.signature(module.main).parameters
    return typing.get_type_hints(module.main)[parameter]


def differences(options: Any, flags: list[dict[str, str]]) -> list[str]:
    """Says what an old command line would notice."""
    fields = {field.name: field for field in dataclasses.fields(options)}
    hints = typing.get_type_hints(options)
    found = []
    for flag in flags:
        name = flag["flag"]
        if name not in fields:
            found.append(f"--{name} is missing")
            continue
        expected: Any = TYPES[flag["type"]]
        default: Any = json.loads(flag["default"])
        if flag["required"] == "required":
            default = dataclasses.MISSING
        elif default is None:
            expected = expected | types.NoneType
        if hints[name] != expected:
            found.append(f"--{name} is {hints[name]}, and was {expected}")
        if not same(fields[name].default, default):
            found.append(
                f"--{name} defaults to {fields[name].default!r}, "
                f"and to {default!r} in 2018"
            )
    names = {flag["flag"] for flag in flags}
    found.extend(
        f"--{name} is new, and required"
        for name, field in fields.items()
        if name not in names and field.default is dataclasses.MISSING
    )
    return found


def same(value: object, other: object) -> bool:
    return type(value) is type(other) and value == other


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_of_2018_is_understood(command):
    flags = [flag for flag in FLAGS if flag["command"] == command]

    assert differences(options_class(command), flags) == []


def test_the_table_is_whole():
    defined = [
        (flag["command"], flag["flag"])
        for flag in FLAGS
        if flag["command"] != "run_classifier_with_tfhub"
        or flag["flag"] == "bert_hub_module_handle"
    ]

    assert len(COMMANDS) == 6
    assert len(set(defined)) == len(defined) == 102
    assert len({name for _, name in defined}) == 49


def test_every_difference_is_named():
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

    found = differences(
        Changed, [dict(zip(keys, r, strict=True)) for r in rows]
    )

    assert [line.split()[0] for line in found] == [
        "--wider",
        "--old_file",
        "--steps",
        "--vocab_file",
        "--added",
    ]
