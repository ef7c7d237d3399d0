"""What a fine-tuned model is for, read from its folder."""

import json

import pytest

from official_bert import task_file
from official_bert.errors import InputError


def test_says_what_fine_tuning_described(tmp_path):
    assert not task_file.is_in(str(tmp_path))
    task = {"kind": "text", "labels": ["no", "ja"]}
    described = task_file.describe(task, 128, do_lower_case=False)
    (tmp_path / "task.json").write_text(json.dumps(described))
    assert task_file.is_in(str(tmp_path))
    assert task_file.read_labels(str(tmp_path)) == ("no", "ja")
    assert task_file.read(str(tmp_path)) == {
        "kind": "text",
        "labels": ["no", "ja"],
        "max_seq_length": 128,
        "do_lower_case": False,
    }


def test_there_may_be_no_labels(tmp_path):
    (tmp_path / "task.json").write_text('{"kind": "squad"}')
    assert task_file.read_labels(str(tmp_path)) == ()


@pytest.mark.parametrize("labels", ["null", "3", '"ab"', "[1, 2]", "{}"])
def test_damaged_labels_are_told(tmp_path, labels):
    (tmp_path / "task.json").write_text(f'{{"labels": {labels}}}')
    message = r"task\.json: `labels` must be a list of texts\. Received: "
    with pytest.raises(InputError, match=message):
        task_file.read(str(tmp_path))
