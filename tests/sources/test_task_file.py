import json

import pytest

from official_bert.errors import InputError
from official_bert.sources import task_file


def test_file_is_read_as_it_was_described(tmp_path):
    assert not task_file.is_in(str(tmp_path))
    task = {"kind": "text", "labels": ["no", "ja"]}
    content = task_file.describe(task, 128, do_lower_case=False)
    (tmp_path / "task.json").write_text(json.dumps(content))
    assert task_file.is_in(str(tmp_path))
    more = {"max_seq_length": 128, "do_lower_case": False}
    assert task_file.read(str(tmp_path)) == task | more


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("labels", [1, 2]),
        ("kind", ["text"]),
        ("max_seq_length", 0),
        ("do_lower_case", 1),
        ("hub_module", None),
        ("task_type", ["text"]),
        ("target_mean", "0"),
        ("target_deviation", None),
    ],
)
def test_values_of_other_types_are_an_error(tmp_path, key, value):
    (tmp_path / "task.json").write_text(json.dumps({key: value}))
    with pytest.raises(InputError, match=rf"task\.json: `{key}` must be"):
        task_file.read(str(tmp_path))
