"""Every flag of the original is still there: its name, type and default.

`original_flags.tsv` lists the flags of the original's six commands, as in
google-research/bert at its last commit, eedf5716. Defaults are JSON.

* The default of a required flag is null there, and missing here.
* `run_classifier_with_tfhub` defines one flag and imports `run_classifier`, so
  it has the flags of both, but not all of them are required.
"""

import csv
import dataclasses
import json
import pathlib
import types
import typing

import pytest

from official_bert import commands

TABLE = pathlib.Path(__file__).with_name("original_flags.tsv")
TYPES = {"string": str, "integer": int, "float": float, "bool": bool}

with TABLE.open(encoding="utf-8", newline="") as file:
    FLAGS = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

assert len(FLAGS) == 127
COMMANDS = sorted({flag["command"] for flag in FLAGS})


def original(flag):
    """Returns type and default of the field for a flag of the original."""
    kind, default = TYPES[flag["type"]], json.loads(flag["default"])
    if flag["required"] == "required":
        default = dataclasses.MISSING
    elif default is None:
        kind |= types.NoneType
    return kind, type(default), default


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_the_flags_of_the_original_and_requires_no_others(command):
    options = commands.COMMANDS[command]
    kinds = typing.get_type_hints(options)
    flags = [flag for flag in FLAGS if flag["command"] == command]
    expected = {flag["flag"]: original(flag) for flag in flags}
    assert expected == {
        field.name: (kinds[field.name], type(field.default), field.default)
        for field in dataclasses.fields(options)
        if field.name in expected or field.default is dataclasses.MISSING
    }
