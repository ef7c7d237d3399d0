"""JSON files are read whole, or complained of by line."""

import pytest

from official_bert import json_files
from official_bert.errors import InputError


def test_reads_what_is_there(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('\ufeff{"a": [1, null, "ü"]}', encoding="utf-8")
    assert json_files.read_object(str(path)) == {"a": [1, None, "ü"]}
    path.write_text("[1]")
    assert json_files.read(str(path)) == [1]


def test_writes_what_is_read(tmp_path):
    path = tmp_path / "a.json"
    json_files.write(str(path), {"b": ["ü"], "a": 1})
    assert path.read_bytes() == (
        '{\n  "b": [\n    "ü"\n  ],\n  "a": 1\n}\n'.encode()
    )
    assert json_files.read(str(path)) == {"b": ["ü"], "a": 1}
    assert json_files.to_text({"b": 2, "a": 1}, sort_keys=True) == (
        '{\n  "a": 1,\n  "b": 2\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a":\n 1,}', r"a\.json:2: must be valid JSON\..* at column"),
        ("", r"a\.json:1: must be valid JSON\."),
        ("[1]", r"a\.json:1: must hold one JSON object\. Received: list"),
    ],
)
def test_says_what_is_wrong(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        json_files.read_object(str(path))
