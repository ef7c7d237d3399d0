"""Errors in a command line are reported before anything slow begins."""

import dataclasses
import importlib
import json
import os
import pathlib
import pwd
import typing

import pytest
from support import hosts

from official_bert.errors import InputError
from official_bert.options import (
    BuildVocab,
    ConvertCheckpoint,
    CreatePretrainingData,
    ExportTfhub,
    ExtractFeatures,
    Predict,
    RunClassifier,
    RunClassifierWithTfhub,
    RunPretraining,
    RunSquad,
    Serve,
    VisualizeAttention,
)
from official_bert.options.flags import HEADINGS, plain_type
from official_bert.runs.directory import RunDirectory

CONFIG = {"vocab_size": 9, "max_position_embeddings": 64}


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    """A working directory with files of all kinds; `TF_CONFIG` of two hosts."""
    monkeypatch.setenv("TF_CONFIG", hosts.tf_config(["a:1", "b:1"], 0))
    (tmp_path / "short.json").write_text(json.dumps(CONFIG))
    (tmp_path / "broken.json").write_text("{\n")
    for name in ("text.txt", "vocab.txt", "a.tfrecord", "model.ckpt.index"):
        (tmp_path / name).touch()
    for name in ("1.csv", "1.tsv"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    monkeypatch.chdir(tmp_path)


MODEL = {
    "bert_config_file": "short.json",
    "max_seq_length": 64,
    "output_dir": "out",
    "do_train": True,
}
TEXT, VOCAB = {"input_file": "text.txt"}, {"vocab_file": "vocab.txt"}
QUESTIONS = {"train_file": "text.txt", "max_query_length": 9}
BERT = {"bert_config_file": "short.json", "init_checkpoint": "model.ckpt"}
VALID = {
    BuildVocab: {**TEXT, "vocab_file": "new_vocab.txt"},
    CreatePretrainingData: {**TEXT, **VOCAB, "output_file": "new.tfrecord"},
    RunPretraining: {**MODEL, "input_file": "a.tfrecord"},
    RunClassifier: {
        **MODEL,
        **VOCAB,
        "task_name": "mrpc",
        "data_dir": "folder",
    },
    RunSquad: {**MODEL, **VOCAB, **QUESTIONS},
    ConvertCheckpoint: {"input": "folder", "output": "new", "to": "tf1"},
    ExportTfhub: {"export_path": "new"},
    ExtractFeatures: {**TEXT, **VOCAB, **BERT, "output_file": "new.jsonl"},
    Predict: {"model_dir": "folder"},
    Serve: {"model_dir": "folder"},
    VisualizeAttention: {"text_a": "a", "output_file": "new.html"},
}


def make(options, **changes):
    return options(**VALID[options] | changes).resolve()


@pytest.mark.parametrize("options", VALID)
def test_making_options_touches_no_file(options, tmp_path, monkeypatch, caplog):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    name, value = next(iter(VALID[options].items()))
    made = options(**VALID[options]).replace(**{name: value})
    assert made == options(**VALID[options])
    assert os.listdir() == []
    assert caplog.messages == []


def test_every_number_has_bounds():
    assert {
        field.name
        for options in VALID
        for field in dataclasses.fields(options)
        if type(field.default) in (int, float)
        and field.metadata["between"] is field.metadata["at_least"] is None
    } == {
        "random_seed",
        "null_score_diff_threshold",
        "num_tpu_cores",  # Without effect in extract_features.py.
    }


def test_every_file_or_directory_is_declared_as_a_path():
    """Only such a flag may start with `~`."""
    ends = ("_file", "_dir", "_path", "_checkpoint", "_handle", "_card")
    places = ("input", "output", "model", "teacher")
    for options in [*VALID, RunClassifierWithTfhub]:
        for field in dataclasses.fields(options):
            is_place = field.name.endswith(ends) or field.name in places
            is_text = plain_type(field.type) is str
            assert field.metadata["is_path"] or not (is_place and is_text)


def test_home_directories_are_expanded_in_paths_only(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    root = pwd.getpwuid(0).pw_dir
    options = RunClassifier(
        output_dir="~/x", model="~root/m", task_name="~/t", data_dir="a~/b"
    )
    assert (options.output_dir, options.model) == ("/home/me/x", f"{root}/m")
    assert (options.task_name, options.data_dir) == ("~/t", "a~/b")
    assert options.replace(train_file="~/t.csv").train_file == "/home/me/t.csv"
    made = BuildVocab(input_file="~/a*,b,~root/c", vocab_file="./~/v")
    assert made.input_file == f"/home/me/a*,b,{root}/c"
    assert made.vocab_file == "./~/v"
    with pytest.raises(InputError, match=r"--output=~nobody1/x starts with"):
        ConvertCheckpoint(output="~nobody1/x")


@pytest.mark.parametrize("options", [*VALID, RunClassifierWithTfhub])
def test_options_name_their_command_and_have_headings_and_help_texts(options):
    name = options.command.removesuffix(".py")
    command = importlib.import_module(f"official_bert.commands.{name}")
    assert typing.get_type_hints(command.main)["options"] is options
    for field in dataclasses.fields(options):
        assert field.metadata["heading"] in HEADINGS
        assert field.metadata["help"].endswith(".")


@pytest.mark.parametrize("options", [RunPretraining, RunClassifier, RunSquad])
def test_training_flag_that_changes_no_result_may_change_on_resume(options):
    policies = {"fixed", "if_steps_left", "input", "free"}
    for field in dataclasses.fields(options):
        assert field.metadata["on_resume"] in policies
    unimportant = {*options.names(changes_results=False)}
    assert "eval_batch_size" in unimportant
    may_change = options.names(on_resume="free")
    assert unimportant <= {*may_change, *options.names(on_resume="input")}


def csv(names):
    return {"task_name": "csv", "train_file": names, "data_dir": None}


CREATE = CreatePretrainingData
WORKERS = {"runner": "DirectRunner", "num_workers": 2}
BEAM = {"runner": "DirectRunner", "beam_options": "--a='b"}
PACKED = {"pack_sequences": True, "max_predictions_per_seq": 19}
SHORT = {"bert_config_file": "short.json"}
INDEX = {"init_checkpoint": "model.ckpt.index"}
TPU = {"use_tpu": True, "distribution_strategy": "mirrored"}
TWICE = {"mixed_precision": "float16", "matmul_precision": "bfloat16"}
OVERWRITE = {"overwrite_output_dir": True}
HOSTS = {"distribution_strategy": "multi_worker_mirrored"}
EXPORT = {"do_export": True}
LITE = {"export_tflite": True}
INT8 = {"quantize": "int8"}
SWEEP = {"sweep": "seed=1..2"}
EVALUATE = {"do_train": False, "do_eval": True}
NO_TASK = {"data_dir": None, "task_name": None}
PREDICT = {"do_predict": True, "predict_file": "text.txt"}
ONE_BEST = {"version_2_with_negative": True, "n_best_size": 1}
INVALID = [
    (BuildVocab, {"input_file": "none.txt"}, "'none.txt'"),
    (BuildVocab, {"bert_config_file": "a", "hidden_size": 100}, "=12. .*100"),
    (BuildVocab, {"bert_config_file": "./text.txt"}, "=./text.txt"),
    (BuildVocab, {"bert_config_file": "new_vocab.txt"}, "=new_vocab.txt"),
    (BuildVocab, {"vocab_file": "text.txt"}, "--vocab_file=text.txt"),
    (BuildVocab, {"vocab_file": "text.txt/vocab.txt"}, "'text.txt'"),
    (BuildVocab, {"vocab_size": 104}, "--vocab_size=104 .*104"),
    (CREATE, {"input_file": ""}, "Input file ''"),
    (CREATE, {"input_file": "folder"}, "'folder'"),
    (CREATE, {"vocab_file": "folder"}, "--vocab_file=folder"),
    (CREATE, {"output_file": "vocab.txt"}, "--output_file=vocab.txt"),
    (CREATE, {"output_file": "a,./folder/../text.txt"}, "/text.txt twice"),
    (CREATE, {"output_file": "a.tfrecord,./a.tfrecord"}, "./a.tfrecord twice"),
    (CREATE, {"output_file": "folder/"}, "--output_file=folder/"),
    (CREATE, {"output_file": "checkpoint"}, "--output_file=checkpoint"),
    (CREATE, {"output_file": ","}, "--output_file=,"),
    (CREATE, BEAM, "--beam_options=--a='b .*quot"),
    (CREATE, {"beam_options": "--x"}, "--beam_options=--x needs --runner"),
    (CREATE, {"runner": "Spark"}, "--runner=Spark"),
    (CREATE, WORKERS, "--num_workers=2 conflicts with --runner"),
    (CREATE, {"document_blank_lines": 1}, "needs --split_sentences"),
    (CREATE, {"mask_share": 0.5}, "--mask_share=0.5"),
    (CREATE, PACKED, "--max_predictions_per_seq=19 .*20"),
    (CREATE, SHORT, "--max_seq_length=128 exceeds .* 64 positions"),
    (RunPretraining, {"do_train": False}, "--do_train, --do_eval"),
    (RunPretraining, {"output_dir": "run[1]"}, r"run\[1\]"),
    (RunPretraining, {"output_dir": "\udce9"}, "--output_dir=.* UTF-8"),
    (RunPretraining, {"input_file": "none*"}, r"'none\*'"),
    (RunPretraining, {"max_seq_length": 65}, "--max_seq_length=65 exceeds"),
    (RunPretraining, {"bert_config_file": "none.json"}, "'none.json'"),
    (RunPretraining, {"bert_config_file": "broken.json"}, "broken.json:2:"),
    (RunPretraining, INDEX, "_checkpoint=.*index.index .*: model.ckpt[.]$"),
    (RunPretraining, {"init_checkpoint": "."}, r": ./model.ckpt[.]$"),
    (RunPretraining, {"init_checkpoint": "a/pytorch_model.bin"}, "a pickle"),
    (RunPretraining, {"vocab_file": "none.txt"}, "--vocab_file=none.txt"),
    (RunPretraining, {"may_skip": "("}, r"--may_skip=\("),
    (RunPretraining, TPU, "--distribution_strategy=mirrored .*--use_tpu"),
    (RunPretraining, TWICE, "--matmul_precision=bfloat16 conflicts with --mi"),
    (RunPretraining, {"bert_config_file": None}, "--model or --bert_config_f"),
    (RunPretraining, {**HOSTS, **OVERWRITE}, "_output_dir needs one host"),
    (RunPretraining, {**OVERWRITE, **EVALUATE}, "_output_dir needs --do_train"),
    (RunClassifier, {**OVERWRITE, **SWEEP}, "--sweep=.* --overwrite_output_"),
    (RunClassifier, {"freeze": "embeddings,0-12"}, "0-12 .*0 to 11"),
    (RunClassifier, {"freeze": "3-1"}, "--freeze=3-1 .*0 to 11"),
    (RunClassifier, {"freeze": "head"}, "--freeze=head"),
    (RunClassifier, {"data_dir": "none"}, "--data_dir=none"),
    (RunClassifier, {"data_dir": None}, "--task_name=mrpc needs --data_dir"),
    (RunClassifier, NO_TASK, "--train_file or --data_dir is required"),
    (RunClassifier, {"do_train": False}, "At least one of .*--do_export, "),
    (RunClassifier, {**EXPORT, "do_train": False}, "--do_export needs task"),
    (RunClassifier, {**EXPORT, **LITE, "bilstm_size": 8}, "tflite .*--bilstm_"),
    (RunClassifier, {**EXPORT, **SWEEP}, "conflicts with --do_export"),
    (RunClassifier, {**EXPORT, **HOSTS}, "--do_export needs one host"),
    (RunClassifier, {**EXPORT, "export_dir": "vocab.txt/a"}, "be writable"),
    (RunClassifier, csv("pipe.csv"), "=pipe.csv .*can be read only once"),
    (RunClassifier, csv("1.csv,folder/../1.csv"), "names folder/../1.csv twi"),
    (RunClassifier, csv("./?.csv,1.csv"), "names 1.csv twice. Name each file"),
    (RunClassifier, csv("x*.csv"), r"file 'x\*.csv' does not exist"),
    (RunClassifier, csv("1.csv,1.tsv"), "same ending. Received: 1.csv, 1.tsv"),
    (RunClassifier, csv("1.csv,pipe.csv"), "pipe.csv, which must .* only once"),
    (RunClassifier, LITE, "tflite needs --do_export"),
    (RunClassifier, {**EVALUATE, **INT8}, "=int8 needs --export_openvino"),
    (RunClassifier, INT8, "=int8 needs --do_eval"),
    (RunClassifier, {"export_dir": "there"}, "=there needs --do_export"),
    (ConvertCheckpoint, {"to": None}, "--to is .* One of tf1, huggingface, k"),
    (RunSquad, {"train_file": None}, "--do_train needs --train_file"),
    (RunSquad, {"train_file": "none.json"}, "--train_file=none.json"),
    (RunSquad, {"do_train": False}, "At least one of"),
    (RunSquad, {"do_eval": True}, "--do_eval needs --predict_file"),
    (RunSquad, {"do_predict": True}, "--do_predict needs --predict_file"),
    (RunSquad, {"max_query_length": 61}, "--max_seq_length=64 .*=61"),
    (RunSquad, {**PREDICT, **ONE_BEST}, "--n_best_size=1 must be at least 2"),
]


@pytest.mark.parametrize(("options", "changes", "message"), INVALID)
def test_unusable_value_is_an_error(options, changes, message):
    with pytest.raises(InputError, match=message):
        make(options, **changes)


USABLE = [
    (BuildVocab, {"bert_config_file": "new.json"}),
    (CREATE, {"input_file": "text.txt,te*.txt"}),
    (CREATE, {**SHORT, "max_seq_length": 64}),
    (RunPretraining, EVALUATE),
    (RunPretraining, {"init_checkpoint": "model.ckpt"}),
    (RunPretraining, {"vocab_file": "vocab.txt"}),
    (RunClassifier, {"freeze": "embeddings,0-11,pooler"}),
    # Not read, so it need not exist.
    (RunSquad, {"predict_file": "none.json"}),
]


@pytest.mark.parametrize(("options", "changes"), USABLE)
def test_usable_values_are_accepted(options, changes):
    make(options, **changes)


def test_json_of_options_has_the_command_and_all_values():
    given = make(RunPretraining, output_dir="\udce9", **EVALUATE)  # Not UTF-8.
    record = json.loads(given.to_json().encode())
    assert record["command"] == "run_pretraining.py"
    assert RunPretraining(**record["options"]) == given


def test_output_files_are_separated_by_commas():
    assert make(CREATE, output_file="b,,a").output_files() == ["b", "a"]


@pytest.mark.parametrize(
    ("given", "steps"),
    [
        ({}, 1),
        ({"iterations_per_loop": 20}, 20),
        ({"use_tpu": True}, 1000),
        ({"distribution_strategy": "tpu", "iterations_per_loop": 7}, 7),
    ],
)
def test_default_of_iterations_per_loop_applies_to_tpus_only(given, steps):
    assert make(RunPretraining, **given).steps_per_call == steps


def write_train_options(**record):
    record = {"command": "run_classifier.py", **record}
    pathlib.Path("train_options.json").write_text(json.dumps(record))


@pytest.mark.parametrize(
    ("name", "recorded", "given"),
    [
        ("max_seq_length", "64", 128),
        ("layerwise_lr_decay", {"a": 1}, 1.0),
        ("id_column", ["a"], "id"),
    ],
)
def test_value_of_another_type_in_a_run_directory_is_an_error_unless_given(
    name, recorded, given
):
    config = {**CONFIG, "max_position_embeddings": 128}
    pathlib.Path("bert_config.json").write_text(json.dumps(config))
    write_train_options(options={**VALID[RunClassifier], name: recorded})
    options = RunClassifier(do_eval=True, output_dir=".")
    message = rf"train_options\.json: `{name}` must be a"
    with pytest.raises(InputError, match=message):
        options.resolve()
    # Even if it is the default.
    assert getattr(options.replace(**{name: given}).resolve(), name) == given


@pytest.mark.parametrize(
    ("key", "value", "wrong"),
    [
        ("options", [], "options"),
        ("options", "a", "options"),
        ("fingerprints", {"training data": 3}, "training data"),
    ],
)
def test_record_of_another_form_in_a_run_directory_is_an_error(
    key, value, wrong
):
    write_train_options(**{key: value})
    message = rf"train_options\.json: `{wrong}` must be"
    with pytest.raises(InputError, match=message):
        _ = RunDirectory(".").record
