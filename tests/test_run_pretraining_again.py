"""Runs that begin where others ended: what they take, and refuse."""

import json
import os
import re
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf
from support import pretraining_runs
from support.pretraining_runs import (
    CONFIG,
    assert_same_weights,
    results,
    run,
    weights,
)

from official_bert.checkpoints import numbered, tf1
from official_bert.errors import InputError


@pytest.fixture
def folder(tmp_path):
    return pretraining_runs.write(tmp_path)


def test_at_most_so_many_checkpoints(folder):
    output = run(
        folder, do_train=True, save_checkpoints_steps=1, keep_checkpoint_max=2
    )
    assert len(list(output.glob("*.index"))) == 2
    output = run(folder, "other", do_train=True, save_checkpoints_steps=1)
    assert len(list(output.glob("*.index"))) == 5


def test_a_second_run_goes_on_as_if_never_stopped(folder):
    whole = run(folder, "whole", do_train=True, num_train_steps=8)
    stopped = folder / "stopped"
    shutil.copytree(whole, stopped)
    for part in stopped.glob("model.ckpt-8*"):
        part.unlink()
    (stopped / "checkpoint").write_text(
        'model_checkpoint_path: "model.ckpt-4"\n'
    )
    run(folder, "stopped", do_train=True, num_train_steps=8)
    resumed = weights(stopped)
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_ends_the_run(folder, monkeypatch, caplog, number):
    caplog.set_level("INFO", logger="absl")
    whole = run(folder, "whole", do_train=True, num_train_steps=8)

    def save(output_dir, step, *args, **kwargs):
        if step == 4:
            signal.raise_signal(number)
        return saved(output_dir, step, *args, **kwargs)

    saved = numbered.save
    monkeypatch.setattr(numbered, "save", save)
    with pytest.raises(SystemExit) as caught:
        run(folder, "out", do_train=True, do_eval=True, num_train_steps=8)
    assert caught.value.code == 0
    # The signal came while step 4 was saved, and step 5 was the next to end.
    assert f"Stopped by {number.name} after step 5, saved as" in caplog.text
    assert "Run the same command again to go on" in caplog.text
    assert not (folder / "out" / "eval_results.txt").exists()
    assert not (folder / "out" / "run.lock").exists()
    monkeypatch.undo()
    assert_same_weights(run(folder, do_train=True, num_train_steps=8), whole)


@pytest.mark.slow
def test_a_bad_checkpoint_is_passed_over(folder, caplog):
    caplog.set_level("INFO", logger="absl")
    whole = run(folder, "whole", do_train=True)
    output = run(folder, do_train=True)
    with open(output / "model.ckpt-6.data-00000-of-00001", "rb+") as file:
        file.truncate(100)
    run(folder, do_train=True)
    assert "Passing over a bad checkpoint." in caplog.text
    assert "Going on from" in caplog.text
    assert_same_weights(output, whole)


def test_a_finished_run_trains_no_more(folder, caplog):
    caplog.set_level("INFO", logger="absl")
    output = run(folder, do_train=True)
    before = weights(output)
    run(folder, do_train=True, do_eval=True, num_train_steps=5)
    assert results(output)["global_step"] == "6"
    assert "Nothing is left to train: 6 of 5 steps are done" in caplog.text
    for name, value in weights(output).items():
        np.testing.assert_array_equal(before[name], value)


def test_a_checkpoint_of_the_original_is_gone_on_from(folder):
    """One without our own file beside it."""
    output = run(folder, do_train=True)
    for name in output.glob("*.resume.json"):
        name.unlink()
    run(folder, do_train=True, num_train_steps=9)
    assert weights(output)["global_step"] == 9


def test_without_a_file_beside_it_the_data_go_on_where_they_were(folder):
    """As many steps as it says, of as many examples each."""
    whole = run(folder, "whole", do_train=True)
    run(folder, do_train=True)
    for name in ("model.ckpt-6.index", "model.ckpt-4.resume.json"):
        (folder / "out" / name).unlink()
    again = run(folder, do_train=True)
    assert_same_weights(again, whole)


def test_starting_from_a_checkpoint(folder):
    first = run(folder, "first", do_train=True)
    prefix = str(first / "model.ckpt-6")
    second = run(folder, "second", do_train=True, init_checkpoint=prefix)
    start = tf.train.load_checkpoint(str(second / "model.ckpt-0"))
    name = "bert/pooler/dense/kernel"
    np.testing.assert_array_equal(start.get_tensor(name), weights(first)[name])
    assert not start.get_tensor(f"{name}/adam_m").any()
    assert start.get_tensor("global_step") == 0


def test_a_folder_stands_for_its_newest_checkpoint(folder):
    first = run(folder, "first", do_train=True)
    run(folder, do_eval=True, init_checkpoint=str(first / "model.ckpt-6"))
    expected = results(folder / "out")
    run(folder, "other", do_eval=True, init_checkpoint=str(first))
    assert results(folder / "other") == expected
    with pytest.raises(InputError, match="output folder stands for its newest"):
        run(folder, do_eval=True, init_checkpoint=str(folder))


def test_a_missing_head_is_refused_unless_allowed(folder):
    first = run(folder, "first", do_train=True)
    bert = {n: a for n, a in weights(first).items() if n.startswith("bert/")}
    prefix = str(folder / "bert.ckpt")
    tf1.write(prefix, bert)
    with pytest.raises(InputError, match="missing: cls/predictions"):
        run(folder, do_train=True, init_checkpoint=prefix)
    run(folder, do_train=True, init_checkpoint=prefix, may_initialize="^cls/")


def test_a_stripped_checkpoint_is_evaluated(folder):
    output = run(folder, do_train=True, do_eval=True)
    stripped = folder / "stripped"
    stripped.mkdir()
    names = [w for w in weights(output) if not re.search("adam|^global", w)]
    arrays = {name: weights(output)[name] for name in names}
    tf1.write(str(stripped / "bert_model.ckpt"), arrays)
    (stripped / "checkpoint").write_text(
        'model_checkpoint_path: "bert_model.ckpt"'
    )
    run(folder, "stripped", do_eval=True)
    assert results(stripped) == {**results(output), "global_step": "0"}


def test_evaluation_takes_the_newest_checkpoint(folder):
    output = run(folder, do_train=True, do_eval=True)
    after_training = results(output)
    run(folder, do_eval=True)
    assert results(output) == after_training
    assert results(output)["global_step"] == "6"


def test_a_model_of_another_size_is_refused(folder):
    run(folder, do_train=True)
    larger = {**CONFIG, "hidden_size": 16}
    (folder / "bert_config.json").write_text(json.dumps(larger))
    before = sorted(os.listdir(folder / "out"))
    with pytest.raises(InputError, match="`hidden_size` must be 8"):
        run(folder, do_train=True)
    assert sorted(os.listdir(folder / "out")) == before
    kept = json.loads((folder / "out" / "bert_config.json").read_text())
    assert kept["hidden_size"] == 8


def test_a_model_with_other_heads_is_refused(folder):
    output = run(folder, do_train=True)
    (folder / "bert_config.json").write_text(
        json.dumps({**CONFIG, "num_attention_heads": 4})
    )
    for mode in ("do_train", "do_eval"):
        with pytest.raises(InputError, match="`num_attention_heads` must be 2"):
            run(folder, **{mode: True})
    kept = json.loads((output / "bert_config.json").read_text())
    assert kept["num_attention_heads"] == 2


@pytest.mark.slow
def test_another_seed_does_not_disturb_a_run_gone_on_with(folder, caplog):
    whole = run(folder, "whole", do_train=True, num_train_steps=8, seed=1)
    halved = run(folder, "halved", do_train=True, num_train_steps=8, seed=1)
    for part in halved.glob("model.ckpt-8*"):
        part.unlink()
    (halved / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-4"')
    assert "--seed" not in caplog.text
    run(folder, "halved", do_train=True, num_train_steps=8, seed=2)
    assert "--seed=2 has no effect: the run began with 1" in caplog.text
    resumed = weights(halved)
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(resumed[name], value, err_msg=name)


@pytest.mark.slow
def test_surplus_weights_are_refused_unless_allowed(folder):
    first = run(folder, "first", do_train=True)
    prefix = str(folder / "more.ckpt")
    tf1.write(prefix, {**weights(first), "output_weights": np.ones(2)})
    with pytest.raises(InputError, match="unused: output_weights"):
        run(folder, do_train=True, init_checkpoint=prefix)
    run(folder, do_train=True, init_checkpoint=prefix, may_skip="^output_")
