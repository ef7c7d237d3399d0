"""`run_classifier_with_tfhub.py` on our modules and on those by others."""

import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support import command_lines, hub_modules, tiny
from support.conversions import change_json
from support.run_outputs import assert_same_weights, read_json, rewind, weights

from official_bert.commands import run_classifier, run_classifier_with_tfhub
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.options import (
    ExportTfhub,
    RunClassifier,
    RunClassifierWithTfhub,
)
from official_bert.runs import checkpoints

pytestmark = pytest.mark.slow

FLAGS = {"seed": 5, "freeze": "embeddings"}
TEXTS = ["good cat", "bad dog", "is it good ?", "bad rain", "good sun", "bad"]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A directory with data and a module that `export_tfhub.py` wrote."""
    directory = tmp_path_factory.mktemp("run")
    config = BertConfig.from_dict(tiny.CONFIG)
    hub_modules.write_files(directory, config, vocab=tiny.VOCAB)
    hub_modules.export(directory)
    lines = [f"{t}\t{'yes' if 'good' in t else 'no'}" for t in TEXTS * 8]
    for split in ("train", "dev", "test"):
        text = "\n".join(["text\tlabel", *lines]) + "\n"
        (directory / f"{split}.tsv").write_text(text)
    return directory


def options(base, output_dir, **changes):
    given = {
        "bert_hub_module_handle": str(base / "module"),
        "task_name": "tsv",
        "data_dir": str(base),
        "output_dir": str(output_dir),
        "max_seq_length": 8,
        "train_batch_size": 8,
        "learning_rate": 2e-3,
        "num_train_epochs": 3.0,
        "save_checkpoints_steps": 6,
        "do_train": True,
    }
    return RunClassifierWithTfhub(**{**given, **changes})


def run(base, output_dir, **changes):
    run_classifier_with_tfhub.main(options(base, output_dir, **changes))
    return output_dir


def results(directory):
    return read_json(directory / "eval_results.json")


def assert_predicts_as_test_results(directory):
    rows = np.loadtxt(directory / "test_results.tsv")[: len(TEXTS)]
    answers = Predictor.from_dir(str(directory))(TEXTS)
    found = [answer["probabilities"]["yes"] for answer in answers]
    np.testing.assert_allclose(found, rows[:, 1], rtol=0, atol=1e-4)


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    """A complete run, with the unused flags of the original command line."""
    return run(
        base,
        tmp_path_factory.mktemp("out"),
        **FLAGS,
        do_eval=True,
        do_predict=True,
        do_lower_case=False,
        vocab_file="no-such-file",
        init_checkpoint="no-such-file",
    )


@pytest.mark.trains
def test_training_learns(trained):
    assert results(trained)["accuracy"] == 1.0


def test_training_starts_from_the_module_and_changes_its_weights(base, trained):
    """`test_hub_encoder.py` shows that all weights can change."""
    start = tf.train.load_checkpoint(str(base / "bert_model.ckpt"))
    first, after = weights(trained, 0), weights(trained)
    shapes = start.get_variable_to_shape_map()
    names = {name for name in shapes if name.startswith("bert/")}
    for name in names:
        np.testing.assert_array_equal(first[name], start.get_tensor(name))
        is_same = np.array_equal(after[name], first[name])
        assert is_same == name.startswith("bert/embeddings/"), name
    heads = {"output_weights", "output_bias", "global_step"}
    assert {name for name in after if "/adam" not in name} == names | heads


def test_other_commands_need_no_module_for_the_run(trained, tmp_path):
    """`run_classifier.py` and `predict.py` use it without module and flags."""
    output = shutil.copytree(trained, tmp_path / "out")
    before = np.loadtxt(output / "test_results.tsv")
    (output / "test_results.tsv").unlink()
    line = f"--do_eval --do_predict --output_dir={output}"
    again = command_lines.parse(RunClassifier, line)
    assert again.do_lower_case is True  # As the module; the flag is not read.
    run_classifier.main(again)
    # Between two graphs probabilities differ by rounding.
    after = np.loadtxt(output / "test_results.tsv")
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-4)
    found, expected = (results(path)["eval_loss"] for path in (output, trained))
    assert found == pytest.approx(expected, rel=1e-4)
    assert_predicts_as_test_results(output)
    change_json(output / "task.json", hub_module="x")
    with pytest.raises(InputError, match="--bert_config_file is required"):
        command_lines.parse(RunClassifier, line)


@pytest.mark.parametrize("is_original", [False, True])
def test_resumed_run_has_the_weights_of_an_uninterrupted_run(
    base, trained, tmp_path, is_original
):
    """The module has no dropout: its masks differ at every call."""
    part = shutil.copytree(trained, tmp_path / "part")
    rewind(part, 6)
    assert checkpoints.latest(str(part)).endswith("model.ckpt-6")
    if is_original:  # The original's names, and the module's other weights.
        arrays = {
            f"module/{name}" if name.startswith("bert/") else name: array
            for name, array in weights(part).items()
        }
        arrays["module/cls/predictions/output_bias"] = np.ones(3, "f4")
        part = tmp_path / "original"
        part.mkdir()
        checkpoints.save(str(part), 6, arrays, None, keep=1)
    run(base, part, **FLAGS)
    assert_same_weights(part, trained)


@pytest.mark.trains
def test_third_party_module_is_trained_and_predicts(base, tmp_path, caplog):
    path = hub_modules.write_old(tmp_path, tiny.VOCAB, has_mlm=True)
    # task.json has the absolute path.
    flags = {"bert_hub_module_handle": os.path.relpath(path)}
    out = run(
        base,
        tmp_path / "out",
        do_eval=True,
        do_predict=True,
        num_train_epochs=6.0,
        learning_rate=2e-2,
        **flags,
    )
    assert results(out)["accuracy"] == 1.0
    assert read_json(out / "task.json")["hub_module"] == path
    assert not (out / "bert_config.json").exists()
    assert_predicts_as_test_results(out)
    assert "but the model has" not in caplog.text
    with pytest.raises(InputError, match="--model_dir="):
        ExportTfhub(
            model_dir=str(out), export_path=str(tmp_path / "again")
        ).resolve()
    with pytest.raises(InputError, match="--freeze"):
        run(base, tmp_path / "other", freeze="0", **flags)


def test_bad_options_and_modules_are_errors_before_training(base, tmp_path):
    handle, empty = "bert_hub_module_handle", str(tmp_path / "empty")
    tf.saved_model.save(tf.train.Checkpoint(), empty)
    for changes, message in [
        ({handle: "no/such"}, "--bert_hub_module_handle=no/such"),
        ({handle: str(base)}, "saved_model.pb"),
        ({"model": "a"}, "--model=a is not supported"),
        ({"remat": True}, "--remat needs run_classifier.py"),
        ({"mixed_precision": "bfloat16"}, "--mixed_precision=bfloat16 needs"),
        ({"matmul_precision": "bfloat16"}, "--matmul_precision=bfloat16 needs"),
        ({"fit_max_seq_length": True}, "set --max_seq_length"),
        ({"freeze": "1"}, "layers from 0 to 0"),
        ({"max_seq_length": 65}, "64 positions"),
        ({handle: empty}, "must be a text encoder"),
    ]:
        with pytest.raises(InputError, match=message):
            run(base, tmp_path / "out", **changes)
        assert not (tmp_path / "out" / "train.tf_record").exists()


def test_unused_config_implies_no_length(base):
    line = f"--train_file={base}/train.tsv --output_dir={base}/new"
    line += f" --bert_config_file={base}/bert_config.json"
    line += f" --bert_hub_module_handle={base}/module"
    found = command_lines.parse(RunClassifierWithTfhub, line)
    assert (found.fit_max_seq_length, found.max_seq_length) == (False, 128)
    # The model is not looked for.
    with pytest.raises(InputError, match="--model=none is not supported"):
        command_lines.parse(RunClassifierWithTfhub, f"{line} --model=none")
