"""`--do_export`, with training and alone."""

import json
import shutil

import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the operations of exported models)
from support import tiny

import run_classifier
import run_squad
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import RunSquad

NOTHING = {"do_train": False, "do_eval": False, "do_predict": False}
TEXTS = ["good cat", "bad dog is it ?", ""]


def write_data(directory):
    rows = [f"{word} {word}\t{n % 2}" for n, word in enumerate(tiny.WORDS * 3)]
    (directory / "data").mkdir()
    (directory / "data" / "train.tsv").write_text(
        "\n".join(["sentence\tlabel", *rows])
    )


@pytest.mark.slow
def test_classifier_is_exported_with_training_and_without_its_data(tmp_path):
    write_data(tmp_path)
    given = {
        "task_name": "SST-2",
        "data_dir": str(tmp_path / "data"),
        "do_export": True,
    }
    changes = {**NOTHING, "do_train": True, "num_train_epochs": 2.0}
    run_classifier.main(tiny.options(tmp_path, **given, **changes))
    shutil.rmtree(tmp_path / "data")
    run_classifier.main(
        tiny.options(tmp_path, **given, **NOTHING, export_tflite=True)
    )

    expected = Predictor.from_dir(str(tmp_path / "out"))(TEXTS)
    for version in ("1", "2"):
        directory = tmp_path / "out" / "export" / version
        signature = tf.saved_model.load(str(directory)).signatures["text"]
        found = signature(text=tf.constant(TEXTS))
        probabilities = [[*e["probabilities"].values()] for e in expected]
        tf.debugging.assert_near(
            found["probabilities"], tf.constant(probabilities), atol=2e-6
        )
    assert (directory / "model.tflite").exists()


@pytest.mark.slow
def test_squad_model_is_exported_with_new_decoding_options(tmp_path):
    given = squad_options(tmp_path)
    run_squad.main(RunSquad(**given, do_train=True))
    (tmp_path / "train.json").unlink()
    directory = tmp_path / "versions"
    run_squad.main(
        RunSquad(
            **given,
            do_export=True,
            export_dir=str(directory),
            null_score_diff_threshold=-1.5,
        )
    )

    signature = tf.saved_model.load(str(directory / "1")).signatures[
        "serving_default"
    ]
    found = signature(
        question=tf.constant(["what is it ?"]),
        context=tf.constant(["the Red cat is it ?"]),
    )
    [answer] = Predictor.from_dir(str(tmp_path / "out"))(
        [["what is it ?", "the Red cat is it ?"]]
    )
    assert found["answer"].numpy()[0].decode() == answer["answer"]
    # The best threshold is only known after evaluation.
    task = json.loads(
        (directory / "1" / "assets.extra" / "task.json").read_text()
    )
    assert task["decoding"]["null_score_diff_threshold"] == -1.5


def squad_options(directory):
    options = tiny.options(directory, task_name="SST-2")
    answers = [{"text": "cat", "answer_start": 4}]
    question = {"id": "1", "question": "what ?", "answers": answers}
    paragraph = {"context": "red cat", "qas": [question]}
    (directory / "train.json").write_text(
        json.dumps({"data": [{"paragraphs": [paragraph]}]})
    )
    return {
        "bert_config_file": options.bert_config_file,
        "vocab_file": options.vocab_file,
        "output_dir": options.output_dir,
        "train_file": str(directory / "train.json"),
        "max_seq_length": 16,
        "max_query_length": 6,
        "train_batch_size": 1,
        "num_train_epochs": 1.0,
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "--do_export needs task.json"),
        ({"do_export": False}, "At least one of .*--do_export must"),
        (
            {"export_tflite": True, "do_train": True, "bilstm_size": 8},
            "--export_tflite .*--bilstm_size=",
        ),
        (
            {"do_export": False, "do_train": True, "export_tflite": True},
            "needs --do_export",
        ),
        (
            {"do_export": False, "do_train": True, "export_dir": "there"},
            "needs --do_export",
        ),
        (
            {"do_train": True, "sweep": "seed=1,2"},
            "--sweep=.* conflicts with --do_export",
        ),
        (
            {"do_train": True, "export_dir": "vocab.txt/export"},
            "output directory must be writable",
        ),
    ],
)
def test_export_options_that_conflict_are_errors(
    changes, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    given = {"task_name": "SST-2", "do_export": True, **NOTHING, **changes}
    with pytest.raises(InputError, match=message):
        tiny.options(tmp_path, **given)


@pytest.mark.parametrize(
    ("name", "value"), [("max_seq_length", 12), ("do_lower_case", False)]
)
def test_export_with_other_options_than_in_training_is_an_error(
    tmp_path, name, value
):
    trained = {"kind": "text", "max_seq_length": 16, "do_lower_case": True}
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "task.json").write_text(json.dumps(trained))
    given = {"task_name": "SST-2", "do_export": True, **NOTHING}
    given = {**given, "max_seq_length": 16}
    tiny.options(tmp_path, **given)
    message = f"{name}.* {trained[name]} in .*task.json"
    with pytest.raises(InputError, match=message):
        tiny.options(tmp_path, **{**given, name: value})


def test_export_of_text_signatures_needs_tensorflow_text(tmp_path, monkeypatch):
    """It is missing in environments for TPUs. The error precedes training."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    given = {"task_name": "SST-2", "do_export": True, **NOTHING}
    given["do_train"] = True
    with pytest.raises(InputError, match="tensorflow_text"):
        tiny.options(tmp_path, **given)
    tiny.options(tmp_path, **given, export_text=False)


def test_export_on_several_hosts_is_an_error(tmp_path, monkeypatch):
    hosts = {"worker": ["a:1", "b:1"]}
    task = {"type": "worker", "index": 0}
    config = {"cluster": hosts, "task": task}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(InputError, match="--do_export needs one host"):
        tiny.options(
            tmp_path,
            task_name="SST-2",
            do_export=True,
            distribution_strategy="multi_worker_mirrored",
        )
