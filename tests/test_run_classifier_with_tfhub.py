"""`run_classifier_with_tfhub.py` on our modules and on those by others."""

import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import hub_modules, tiny
from support.review_runs import parse_command_line

import run_classifier
import run_classifier_with_tfhub
from official_bert.checkpoints import run_directory
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import (
    ExportTfhub,
    RunClassifierWithTfhub,
)

TEXTS = ["good cat", "bad dog", "is it good ?", "bad rain", "good sun", "bad"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A directory with data and a module that `export_tfhub.py` wrote."""
    directory = tmp_path_factory.mktemp("run")
    config = BertConfig.from_dict(tiny.CONFIG)
    hub_modules.write_files(directory, config, vocab=tiny.VOCAB)
    hub_modules.export(directory, config)
    lines = [f"{t}\t{'yes' if 'good' in t else 'no'}" for t in TEXTS * 8]
    for split in ("train", "dev", "test"):
        text = "\n".join(["text\tlabel", *lines]) + "\n"
        (directory / f"{split}.tsv").write_text(text)
    return directory


def options(base, output_dir, **changes):
    return RunClassifierWithTfhub(
        **{
            "bert_hub_module_handle": str(base / "module"),
            "task_name": "tsv",
            "data_dir": str(base),
            "output_dir": str(output_dir),
            "max_seq_length": 8,
            "train_batch_size": 8,
            "learning_rate": 2e-3,
            "num_train_epochs": 3.0,
            "save_checkpoints_steps": 6,
            **changes,
        }
    )


def run(base, output_dir, **changes):
    run_classifier_with_tfhub.main(options(base, output_dir, **changes))
    return output_dir


def weights(directory):
    reader = tf.train.load_checkpoint(run_directory.latest(str(directory)))
    names = reader.get_variable_to_shape_map()
    return {name: reader.get_tensor(name) for name in names}


def results(directory):
    return json.loads((directory / "eval_results.json").read_text())


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    """A complete run, with the unused flags of the original command line."""
    output = tmp_path_factory.mktemp("out")
    return run(
        base,
        output,
        do_train=True,
        do_eval=True,
        do_predict=True,
        do_lower_case=False,
        vocab_file="no-such-file",
        init_checkpoint="no-such-file",
    )


def test_training_starts_from_the_module_and_learns(base, trained):
    assert results(trained)["accuracy"] == 1.0
    first = tf.train.load_checkpoint(str(trained / "model.ckpt-0"))
    start = tf.train.load_checkpoint(str(base / "bert_model.ckpt"))
    after = weights(trained)
    for name in start.get_variable_to_shape_map():
        if name.startswith("bert/"):
            array = start.get_tensor(name)
            np.testing.assert_array_equal(first.get_tensor(name), array)
            assert not np.array_equal(after[name], array), name
    assert {n for n in after if "/adam" not in n} == {
        *(n for n in start.get_variable_to_shape_map() if n[:5] == "bert/"),
        "output_weights",
        "output_bias",
        "global_step",
    }


def test_run_directory_is_that_of_an_ordinary_model(base, trained):
    """`run_classifier.py` and `predict.py` use it without the module."""
    expected = results(trained)
    run_classifier.main(
        tiny.options(
            base,
            task_name="tsv",
            output_dir=str(trained),
            max_seq_length=8,
            do_train=False,
            do_predict=False,
        )
    )
    found = results(trained)
    assert found["eval_loss"] == pytest.approx(expected["eval_loss"], rel=1e-4)
    probabilities = np.loadtxt(trained / "test_results.tsv")
    answers = Predictor.from_dir(str(trained))(TEXTS)
    for answer, row in zip(answers, probabilities, strict=False):
        assert answer["probabilities"]["yes"] == pytest.approx(row[1], abs=1e-4)


@pytest.mark.slow
def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    base, trained, tmp_path
):
    """The module has no dropout: its masks differ at every call."""
    flags = {"do_train": True, "seed": 5}
    whole = run(base, tmp_path / "whole", **flags)
    part = run(base, tmp_path / "part", **flags)
    for path in part.glob("model.ckpt-1[28].*"):
        path.unlink()
    (part / "checkpoint").unlink()
    run(base, part, **flags)
    for name, array in weights(whole).items():
        np.testing.assert_array_equal(weights(part)[name], array, name)


def test_frozen_layers_keep_their_weights(base, tmp_path):
    out = run(base, tmp_path, do_train=True, freeze="embeddings")
    start = tf.train.load_checkpoint(str(base / "bert_model.ckpt"))
    name = "bert/embeddings/word_embeddings"
    np.testing.assert_array_equal(weights(out)[name], start.get_tensor(name))


@pytest.mark.parametrize(
    "write", [hub_modules.write_another, hub_modules.write_old]
)
def test_modules_by_others_are_trained_and_predict(
    base, tmp_path, caplog, write
):
    path = write(tmp_path, tiny.VOCAB)
    handle = os.path.relpath(path)  # task.json has the absolute path.
    flags = {"bert_hub_module_handle": handle, "learning_rate": 2e-2}
    out = run(
        base,
        tmp_path / "out",
        do_train=True,
        do_eval=True,
        do_predict=True,
        num_train_epochs=6.0,
        **flags,
    )
    assert results(out)["accuracy"] == 1.0
    assert json.loads((out / "task.json").read_text())["hub_module"] == path
    assert not (out / "bert_config.json").exists()
    probabilities = np.loadtxt(out / "test_results.tsv")
    for answer, row in zip(
        Predictor.from_dir(str(out))(TEXTS), probabilities, strict=False
    ):
        assert answer["probabilities"]["yes"] == pytest.approx(row[1], abs=1e-4)
    assert "but the model has" not in caplog.text
    with pytest.raises(InputError, match="--model_dir="):
        ExportTfhub(model_dir=str(out), export_path=str(tmp_path / "again"))
    with pytest.raises(InputError, match="--freeze"):
        run(base, tmp_path / "other", do_train=True, freeze="0", **flags)


def test_bad_options_and_modules_are_errors_before_training(base, tmp_path):
    for changes, message in [
        (
            {"bert_hub_module_handle": "no/such"},
            "--bert_hub_module_handle=no/such",
        ),
        ({"bert_hub_module_handle": str(base)}, "saved_model.pb"),
        ({"remat": True}, "--remat needs run_classifier.py"),
        ({"mixed_precision": "bfloat16"}, "--mixed_precision=bfloat16 needs"),
    ]:
        with pytest.raises(InputError, match=message):
            options(base, tmp_path, do_train=True, **changes)
    with pytest.raises(InputError, match="layers from 0 to 0"):
        run(base, tmp_path / "out", do_train=True, freeze="1")
    assert not (tmp_path / "out" / "train.tf_record").exists()
    with pytest.raises(InputError, match="64 positions"):
        run(base, tmp_path / "out", do_train=True, max_seq_length=65)
    tf.saved_model.save(tf.train.Checkpoint(), str(tmp_path / "empty"))
    path = str(tmp_path / "empty")
    with pytest.raises(InputError, match="must be a text encoder"):
        run(base, tmp_path / "out", do_train=True, bert_hub_module_handle=path)


def test_model_on_our_module_predicts_without_it_and_without_flags(
    trained, tmp_path
):
    output = tmp_path / "out"
    shutil.copytree(trained, output)
    before = np.loadtxt(output / "test_results.tsv")
    (output / "test_results.tsv").unlink()
    again = parse_command_line("--do_predict", f"--output_dir={output}")
    assert again.do_lower_case is True  # As the module; the flag is not read.
    run_classifier.main(again)
    # Between two graphs probabilities differ by rounding.
    after = np.loadtxt(output / "test_results.tsv")
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-4)


def test_model_on_a_module_by_others_needs_it(trained, tmp_path):
    output = tmp_path / "out"
    shutil.copytree(trained, output)
    task = json.loads((output / "task.json").read_text())
    (output / "task.json").write_text(json.dumps({**task, "hub_module": "x"}))
    with pytest.raises(InputError, match="--bert_config_file is required"):
        parse_command_line("--do_predict", f"--output_dir={output}")
