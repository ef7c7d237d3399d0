from typing import Annotated, NamedTuple

import pytest

from official_bert.errors import InputError
from official_bert.io import json_files


def test_written_file_is_indented_and_can_be_read_back(tmp_path):
    path = tmp_path / "a.json"
    json_files.write(str(path), {"b": ["ü", None], "a": 1})
    text = '{\n  "b": [\n    "ü",\n    null\n  ],\n  "a": 1\n}\n'
    assert path.read_text(encoding="utf-8") == text
    path.write_text(f"\ufeff{text}", encoding="utf-8")  # A byte order mark.
    assert json_files.read_object(str(path)) == {"b": ["ü", None], "a": 1}
    sorted_text = '{\n  "a": 1,\n  "b": 2\n}\n'
    assert json_files.to_text({"b": 2, "a": 1}, sort_keys=True) == sorted_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":\n 1,}', r"a\.json:2: .* at column"),
        ("", r"a\.json:1: "),
        ("[1]", r"a\.json:1: .*list"),
        ("[" * 100_000, r"a\.json: .*recursion"),
        ('{"a": "\\ud83d"}', r"a\.json: .*surrogate"),
    ],
)
def test_invalid_file_is_an_error_with_its_line(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        json_files.read_object(str(path))


def test_key_that_occurs_twice_is_an_error_in_json_lines():
    line = '{"a": 1, "b": 2, "a": 3}'
    with pytest.raises(InputError, match=r"^x:1: .* the key 'a' twice"):
        json_files.parse_line(line, "x:1")
    # In other files, such as configs, the last one counts, as in Python.
    assert json_files.parse(line, "x") == {"a": 3, "b": 2}


class Point(NamedTuple):
    x: int
    y: float | None = None


TEXTS = tuple[str, ...]
Letter = Annotated[str, ("a", "b")]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (float, 3, 3.0),
        (json_files.Amount, 0, 0),
        (Letter, "b", "b"),
        (TEXTS, ["b", "a"], ("b", "a")),
        (TEXTS | None, None, None),
        (Point, {"x": 1}, Point(1)),
        (Point, {"x": 1, "y": 2}, Point(1, 2.0)),
    ],
)
def test_json_value_becomes_a_value_of_the_declared_type(kind, value, expected):
    found = json_files.decode(value, kind, "name")
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "must_be"),
    [
        (int, "128", "`name` must be an int"),
        (int, 64.5, "`name` must be an int"),
        (int, True, "`name` must be an int"),
        (int, None, "`name` must be an int"),
        (bool, 1, "`name` must be a bool"),
        (str, ["text"], "`name` must be a str"),
        (float, "0", "`name` must be a finite number"),
        (float, float("nan"), "`name` must be a finite number"),
        (float, 10**400, "`name` must be a finite number"),
        (dict, ["a"], "`name` must be an object"),
        (TEXTS, None, "`name` must be a list"),
        (TEXTS, "ab", "`name` must be a list"),
        (TEXTS, ["a", 1], "`name` must be a str.* 1"),
        (TEXTS | None, 3, "`name` must be a list"),
        (json_files.Count, 0, "`name` must be between 1 and 2147483647"),
        (json_files.Amount, -1, "`name` must be between 0 and 2147483647"),
        (json_files.Size, 2**16, "`name` must be between 0 and 65535"),
        (Letter, "c", "`name` must be one of a, b"),
        (Point, "x", "`name` must be an object with only x, y"),
        (Point, {"x": 1, "z": 2}, "`name` must be an object with only x, y"),
        (Point, {"x": 2.0}, "`x` must be an int"),
    ],
)
def test_json_value_of_another_type_is_an_error(kind, value, must_be):
    with pytest.raises(ValueError, match=must_be):
        json_files.decode(value, kind, "name")
