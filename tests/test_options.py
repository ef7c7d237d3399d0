"""What is wrong with a command line is said before anything slow begins."""

import dataclasses
import importlib
import json
import pathlib
import typing

import pytest

from official_bert.errors import InputError
from official_bert.options import (
    BuildVocab,
    CreatePretrainingData,
    RunClassifier,
    RunClassifierWithTfhub,
    RunPretraining,
    RunSquad,
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to run in, with one file of every kind."""
    config = {"vocab_size": 9, "max_position_embeddings": 64}
    pathlib.Path(tmp_path / "short.json").write_text(json.dumps(config))
    pathlib.Path(tmp_path / "broken.json").write_text("{\n")
    for name in ("text.txt", "vocab.txt", "a.tfrecord", "model.ckpt.index"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)


# What is required, and right.
GIVEN = {
    BuildVocab: {"input_file": "text.txt", "vocab_file": "new_vocab.txt"},
    CreatePretrainingData: {
        "input_file": "text.txt",
        "output_file": "new.tfrecord",
        "vocab_file": "vocab.txt",
    },
    RunPretraining: {
        "input_file": "a.tfrecord",
        "output_dir": "out",
        "bert_config_file": "short.json",
        "max_seq_length": 64,
        "do_train": True,
    },
}


def make(options, **changes):
    return options(**GIVEN[options] | changes)


BOUNDED = [
    (options, field.name, bound, limit, step)
    for options in GIVEN
    for field in dataclasses.fields(options)
    for bound, limit, step in [
        ("at least", field.metadata["at_least"], -1),
        ("at most", field.metadata["at_most"], 1),
    ]
    if limit is not None
]


@pytest.mark.parametrize(("options", "name", "bound", "limit", "step"), BOUNDED)
def test_a_number_out_of_bounds_is_refused(options, name, bound, limit, step):
    value = limit + step

    with pytest.raises(
        InputError, match=f"--{name} must be {bound} {limit}. Received: {value}"
    ):
        make(options, **{name: value})


# Any seed will do.
UNBOUNDED = {"random_seed"}


def test_every_number_has_bounds():
    bounded = {(options, name) for options, name, *_ in BOUNDED}

    assert {
        field.name
        for options in GIVEN
        for field in dataclasses.fields(options)
        if type(field.default) in (int, float)
        and (options, field.name) not in bounded
    } == UNBOUNDED


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        (
            BuildVocab,
            {"input_file": "none.txt"},
            "'none.txt' does not exist",
        ),
        (
            BuildVocab,
            {"bert_config_file": "new.json", "hidden_size": 100},
            "multiple of .*hidden_size=100, num_attention_heads=12",
        ),
        (
            CreatePretrainingData,
            {"input_file": "none*"},
            "'none[*]' does not exist",
        ),
        (CreatePretrainingData, {"input_file": ""}, "No input file in ''"),
        (
            CreatePretrainingData,
            {"input_file": "folder"},
            "'folder' is a directory",
        ),
        (
            CreatePretrainingData,
            {"vocab_file": "none.txt"},
            "--vocab_file must be an existing file. Received: 'none.txt'.",
        ),
        (CreatePretrainingData, {"vocab_file": "folder"}, "existing file"),
        (
            CreatePretrainingData,
            {"output_file": "text.txt"},
            "--output_file must .* and no input. Received: 'text.txt'. Rename",
        ),
        (
            CreatePretrainingData,
            {"output_file": "new.tfrecord,./folder/../text.txt"},
            "--output_file must .* Received: './folder/../text.txt'. Rename",
        ),
        (
            CreatePretrainingData,
            {"output_file": "vocab.txt"},
            "--output_file must .* Received: 'vocab.txt'. Rename",
        ),
        (
            CreatePretrainingData,
            {"output_file": "a.tfrecord,./a.tfrecord"},
            "each file once, and no input. Received: './a.tfrecord'. Rename",
        ),
        (
            CreatePretrainingData,
            {"output_file": ","},
            "--output_file must name at least one file. Received: ','. Name",
        ),
        (
            CreatePretrainingData,
            {"runner": "DirectRunner", "beam_options": "--a='b"},
            '--beam_options must be .* Received: "--a=\'b" [(]No closing quo',
        ),
        (
            CreatePretrainingData,
            {"bert_config_file": "short.json"},
            "64 positions. Received: max_seq_length=128. Shorten",
        ),
        (
            CreatePretrainingData,
            {"bert_config_file": "none.json"},
            "Cannot read 'none.json': No such file",
        ),
        (
            RunPretraining,
            {"do_train": False},
            "At least one of --do_train and --do_eval must be given",
        ),
        (
            RunPretraining,
            {"output_dir": "run[1]"},
            r"run\[1\]: .*path contains",
        ),
        (RunPretraining, {"input_file": "none*"}, "'none[*]' does not exist"),
        (RunPretraining, {"input_file": ""}, "No input file in ''"),
        (
            RunPretraining,
            {"max_seq_length": 65},
            "64 positions. Received: max_seq_length=65. Shorten",
        ),
        (
            RunPretraining,
            {"bert_config_file": "none.json"},
            "Cannot read 'none.json': No such file",
        ),
        (
            RunPretraining,
            {"bert_config_file": "broken.json"},
            "broken.json:2: must be valid JSON",
        ),
        (
            RunPretraining,
            {"init_checkpoint": "none.ckpt"},
            "--init_checkpoint must .* Received: 'none.ckpt', and there is no "
            "'none.ckpt.index'. Check",
        ),
        (
            RunPretraining,
            {"init_checkpoint": "model.ckpt.index"},
            "Received: 'model.ckpt.index'.* give it without what follows NAME",
        ),
        (
            RunPretraining,
            {"vocab_file": "none.txt"},
            "--vocab_file must be an existing file. Received: 'none.txt'.",
        ),
        (
            RunPretraining,
            {"use_tpu": True, "distribution_strategy": "mirrored"},
            "--use_tpu must go with .*tpu, or none. Received: 'mirrored'",
        ),
        (
            RunPretraining,
            {"distribution_strategy": "parallel"},
            "must be one of none, mirrored, multi_worker_mirrored, tpu. "
            "Received: 'parallel'",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(options, changes, message):
    with pytest.raises(InputError, match=message):
        make(options, **changes)


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        (BuildVocab, {}),
        (BuildVocab, {"bert_config_file": "new.json"}),
        (CreatePretrainingData, {}),
        (CreatePretrainingData, {"input_file": "text.txt,*.txt"}),
        (
            CreatePretrainingData,
            {"bert_config_file": "short.json", "max_seq_length": 64},
        ),
        (RunPretraining, {}),
        (RunPretraining, {"do_train": False, "do_eval": True}),
        (RunPretraining, {"init_checkpoint": "model.ckpt"}),
        (RunPretraining, {"vocab_file": "vocab.txt"}),
    ],
)
def test_what_can_be_used_is_accepted(options, changes):
    made = make(options, **changes)

    assert {name: getattr(made, name) for name in changes} == changes


@pytest.mark.parametrize("freeze", ["12", "embeddings,0-12", "3-1"])
def test_frozen_layers_must_exist(freeze):
    with pytest.raises(InputError, match="layers from 0 to 11"):
        RunClassifier(
            task_name="mrpc",
            data_dir="folder",
            bert_config_file="short.json",
            vocab_file="vocab.txt",
            output_dir="out",
            max_seq_length=64,
            do_train=True,
            freeze=freeze,
        )


@pytest.mark.parametrize(
    "options", [RunClassifier, RunClassifierWithTfhub, RunSquad]
)
def test_options_name_the_command_they_are_of(options):
    command = importlib.import_module(options.command.removesuffix(".py"))

    assert typing.get_type_hints(command.main)["options"] is options


def test_outputs_are_named_by_commas():
    options = make(CreatePretrainingData, output_file="b,,a")

    assert options.output_files() == ["b", "a"]


def test_a_vocabulary_is_learned_for_a_model_of_the_given_sizes():
    options = make(
        BuildVocab,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=32,
    )

    config = options.config(vocab_size=1234)

    assert (
        config.to_dict()
        | {
            "vocab_size": 1234,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 256,
            "max_position_embeddings": 32,
            "type_vocab_size": 2,
        }
        == config.to_dict()
    )
