"""Flags of predict.py that are errors, before TensorFlow is imported."""

import sys

import pytest
from support import untrained_models

from official_bert.errors import InputError
from official_bert.options import Predict


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return untrained_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def tuned(models):
    return str(models / "tuned")


@pytest.fixture(scope="module")
def pretrained(models):
    return str(models / "pretrained")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


WRONG = [
    ({}, "--model_dir must be given"),
    ({"model_dir": "none"}, "--model_dir=none"),
    ({"model_dir": "PRETRAINED"}, "pretrained: .* task.json"),
    ({"model_dir": "TUNED", "score": True}, "tuned: --fill_mask and --score"),
    ({"model_dir": "TUNED", "do_lower_case": True}, "--do_lower_case needs"),
    ({"model_dir": "TUNED", "vocab_file": "v"}, "--vocab_file=v needs"),
    ({"fill_mask": True, "score": True}, "--fill_mask conflicts with --score"),
    ({"fill_mask": True}, "--init_checkpoint must be given, or --model_dir"),
    (
        {"fill_mask": True, "model_dir": "PRETRAINED", "vocab_file": "v"},
        "--model_dir=.* conflicts with --vocab_file",
    ),
    (
        {"score": True, "vocab_file": "v"},
        "--bert_config_file, --init_checkpoint must be given",
    ),
    (
        {
            "score": True,
            "vocab_file": "none",
            "bert_config_file": "PRETRAINED/bert_config.json",
            "init_checkpoint": "PRETRAINED/model.ckpt-3",
        },
        "--vocab_file must be an existing file",
    ),
    (
        {
            "score": True,
            "vocab_file": "PRETRAINED/vocab.txt",
            "bert_config_file": "PRETRAINED/bert_config.json",
            "init_checkpoint": "PRETRAINED/none",
        },
        "--init_checkpoint=.*none ",
    ),
    (
        {
            "fill_mask": True,
            "vocab_file": "PRETRAINED/vocab.txt",
            "bert_config_file": "PRETRAINED/bert_config.json",
            "init_checkpoint": "cased_L-12_H-768_A-12/bert_model.ckpt",
        },
        "seems to be a cased model",
    ),
    ({"model_dir": "TUNED", "input_file": "none"}, "--input_file=none"),
    (
        {"model_dir": "TUNED", "input_file": "a.txt", "output_file": "./a.txt"},
        "--output_file=./a.txt",
    ),
    (
        {"model_dir": "TUNED", "output_file": "TUNED/vocab.txt"},
        "--output_file=.*vocab.txt",
    ),
    (
        {"model_dir": "TUNED", "output_file": "TUNED/task.json"},
        "--output_file=.*task.json",
    ),
    (
        {"model_dir": "TUNED", "output_file": "TUNED/model.ckpt-3.index"},
        "--output_file=.*checkpoint",
    ),
    (
        {"model_dir": "TUNED", "output_file": "TUNED/checkpoint"},
        "--output_file=.*checkpoint",
    ),
    (
        {"model_dir": "TUNED", "output_file": "answers/"},
        "--output_file=answers/",
    ),
    ({"model_dir": "TUNED", "batch_size": 0}, "--batch_size=0"),
    ({"model_dir": "TUNED", "chunk_size": 0}, "--chunk_size=0"),
    ({"model_dir": "TUNED", "top_k": 0}, "--top_k=0"),
    ({"model_dir": "TUNED", "input_format": "xml"}, "--input_format=xml"),
    (
        {"model_dir": "TUNED", "input_format": "csv"},
        "--input_format=csv needs --input_file",
    ),
    (
        {"model_dir": "TUNED", "text_b_column": "b"},
        "--text_b_column=b needs --text_a_column",
    ),
    (
        {
            "model_dir": "PRETRAINED",
            "score": True,
            "text_a_column": "a",
            "input_file": "a.tsv",
        },
        "--text_a_column=a",
    ),
    (
        {"model_dir": "PRETRAINED", "score": True, "input_file": "a.csv"},
        "--input_file=a.csv",
    ),
    (
        {
            "model_dir": "TUNED",
            "input_format": "tsv",
            "text_a_column": "a",
        },
        "--text_a_column=a",
    ),
    (
        {"model_dir": "TUNED", "input_file": "a.txt", "has_header": False},
        "--nohas_header",
    ),
    (
        {"model_dir": "TUNED", "input_file": "a.csv"},
        "--input_file=a.csv needs --text_a_column",
    ),
    (
        {"model_dir": "TUNED", "input_file": "a.tsv", "has_header": True},
        "--has_header needs --text_a_column",
    ),
    (
        {"model_dir": "TAGS", "input_file": "a.tsv", "text_a_column": "a"},
        "--text_a_column=a .*'tagging'",
    ),
]


@pytest.mark.parametrize(("changes", "message"), WRONG)
def test_invalid_flags_are_an_error(
    changes, message, tuned, pretrained, folder
):
    for name in ("a.txt", "a.tsv", "a.csv"):
        (folder / name).touch()
    (folder / "TAGS").mkdir()
    for name in ("task.json", "vocab.txt", "bert_config.json"):
        (folder / "TAGS" / name).write_text('{"kind": "tagging"}')
    (folder / "cased_L-12_H-768_A-12").mkdir()
    (folder / "cased_L-12_H-768_A-12" / "bert_model.ckpt.index").touch()
    given = {
        name: value.replace("PRETRAINED", pretrained).replace("TUNED", tuned)
        if isinstance(value, str)
        else value
        for name, value in changes.items()
    }
    with pytest.raises(InputError, match=message):
        Predict(**given)


@pytest.mark.parametrize(
    ("stream", "flag"), [("stdin", "--input_file"), ("stdout", "--output_file")]
)
def test_closed_standard_stream_is_an_error(tuned, monkeypatch, stream, flag):
    monkeypatch.setattr(sys, stream, None)
    with pytest.raises(InputError, match=f"{flag} must be given"):
        Predict(model_dir=tuned)
