"""JSON files are read with errors that name the line."""

import pytest

from official_bert import json_files
from official_bert.errors import InputError


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
