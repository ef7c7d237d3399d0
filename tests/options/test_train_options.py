"""Damaged values in `train_options.json` end in a message that names them."""

import json

import pytest
from support import command_lines, tiny

from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.options.training import read_train_options


@pytest.fixture
def run_directory(tmp_path, monkeypatch):
    """An --output_dir, and the current directory, with a vocabulary."""
    monkeypatch.chdir(tmp_path)
    tiny.write_model_files(tmp_path, tiny.CONFIG)
    return tmp_path


def write(directory, **record):
    path = directory / "train_options.json"
    path.write_text(json.dumps({"command": "run_classifier.py", **record}))


def evaluate(flags=""):
    line = f"--do_eval --output_dir=. --data_dir=. --task_name=cola {flags}"
    return command_lines.parse(RunClassifier, line)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_seq_length", "64"),
        ("layerwise_lr_decay", {"a": 1}),
        ("id_column", ["a"]),
    ],
)
def test_option_of_another_type_is_an_error_unless_given(
    run_directory, name, value
):
    options = {"vocab_file": "a", "bert_config_file": "b", "max_seq_length": 64}
    write(run_directory, options={**options, name: value})
    message = rf"train_options\.json: `{name}` must be a"
    with pytest.raises(InputError, match=message):
        evaluate()
    if name == "max_seq_length":
        assert evaluate("--max_seq_length=32").max_seq_length == 32


@pytest.mark.parametrize(
    "record",
    [
        {"options": []},
        {"options": "a"},
        {"fingerprints": None},
        {"fingerprints": {"training data": 3}},
    ],
)
def test_record_of_another_form_is_an_error(run_directory, record):
    write(run_directory, **record)
    with pytest.raises(InputError, match=r"train_options\.json: `options`"):
        read_train_options(str(run_directory))
