import json
import shutil

import pytest
import tensorflow as tf
import tensorflow_text  # noqa: F401  (the operations of exported models)
from support import command_lines, squad_files, tiny, write_json

from official_bert.commands import run_classifier, run_squad
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import RunSquad

TEXTS = ["good cat", "bad dog is it ?", ""]


def options(directory, **changes):
    """Returns options of a run that only exports."""
    defaults = {"task_name": "SST-2", "do_export": True}
    defaults |= dict.fromkeys(("do_train", "do_eval", "do_predict"), False)
    return tiny.options(directory, **{**defaults, **changes}).resolve()


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_classifier_is_exported_after_training_without_its_data(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    rows = [f"{word} {word}\t{n % 2}" for n, word in enumerate(tiny.WORDS * 3)]
    (data / "train.tsv").write_text("\n".join(["sentence\tlabel", *rows]))
    flags = {"data_dir": str(data), "num_train_epochs": 2.0}
    training = {"do_train": True, "do_export": False}
    run_classifier.main(options(tmp_path, **flags, **training))
    shutil.rmtree(data)
    run_classifier.main(options(tmp_path, **flags))

    expected = Predictor.from_dir(str(tmp_path / "out"))(TEXTS)
    exported = tf.saved_model.load(str(tmp_path / "out" / "export" / "1"))
    found = exported.signatures["text"](text=tf.constant(TEXTS))
    probabilities = [[*e["probabilities"].values()] for e in expected]
    tf.debugging.assert_near(
        found["probabilities"], tf.constant(probabilities), atol=2e-6
    )


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_squad_model_is_exported_with_new_decoding_options(tmp_path):
    tiny.write_model_files(tmp_path, tiny.CONFIG)
    train_file = tmp_path / "train.json"
    squad_files.write(train_file, ("red cat", ("1", "what ?", "cat", 4)))
    flags = {
        **command_lines.files_of_run(tmp_path, "out"),
        "train_file": str(train_file),
        "max_seq_length": 16,
        "max_query_length": 6,
        "train_batch_size": 1,
        "num_train_epochs": 1.0,
    }
    run_squad.main(RunSquad(**flags, do_train=True))
    train_file.unlink()
    versions = tmp_path / "versions"
    flags |= {"do_export": True, "export_dir": str(versions)}
    run_squad.main(RunSquad(**flags, null_score_diff_threshold=-1.5))

    signatures = tf.saved_model.load(str(versions / "1")).signatures
    pair = ["what is it ?", "the Red cat is it ?"]
    found = signatures["serving_default"](
        question=tf.constant(pair[:1]), context=tf.constant(pair[1:])
    )
    [answer] = Predictor.from_dir(str(tmp_path / "out"))([pair])
    assert found["answer"].numpy()[0].decode() == answer["answer"]
    # The best threshold is only known after evaluation.
    task = json.loads((versions / "1/assets.extra/task.json").read_text())
    assert task["decoding"]["null_score_diff_threshold"] == -1.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("max_seq_length", 12), ("do_lower_case", False)],
        *[("strip_accents", "false"), ("never_split", "good")],
    ],
)
def test_export_with_options_unlike_training_is_an_error(tmp_path, name, value):
    trained = {"kind": "text", "max_seq_length": 16, "do_lower_case": True}
    write_json(tmp_path / "out" / "task.json", trained)
    flags = {"strip_accents": "auto", "never_split": ""}
    write_json(tmp_path / "out" / "train_options.json", {"options": flags})
    options(tmp_path)
    message = f"{name}.* {(trained | flags)[name]!r} in .*out"
    with pytest.raises(InputError, match=message):
        options(tmp_path, **{name: value})


def test_added_token_that_cannot_be_exported_is_an_early_error(tmp_path):
    config = tmp_path / "tokenizer_config.json"
    config.write_text('{"added_tokens_decoder": {"5": {"content": "good"}}}')
    with pytest.raises(InputError, match=r"normalized=True.*--noexport_text"):
        options(tmp_path, do_train=True)
    options(tmp_path, do_train=True, export_text=False)


def test_export_of_text_signatures_needs_tensorflow_text(tmp_path, monkeypatch):
    """TPU environments lack tensorflow_text. The error precedes training."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match="tensorflow_text"):
        options(tmp_path, do_train=True)
    options(tmp_path, do_train=True, export_text=False)
