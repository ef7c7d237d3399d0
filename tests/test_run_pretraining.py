"""run_pretraining.py: files, results, errors, and runs that resume."""

import json
import math
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

import run_pretraining
from official_bert.checkpoints import run_directory, tf1
from official_bert.errors import InputError
from official_bert.inputs import datasets, records, tfrecords
from official_bert.options import RunPretraining
from official_bert.training import checkpointing

VOCAB = ["[UNK]", "[CLS]", "[SEP]", *(f"w{i}" for i in range(27))]


@pytest.fixture
def folder(tmp_path):
    """A directory with a config, a vocabulary and 40 records."""
    (tmp_path / "words.txt").write_text("\n".join(VOCAB) + "\n")
    return pretraining_runs.write(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The output directory of 8 steps of training, and an evaluation."""
    folder = pretraining_runs.write(tmp_path_factory.mktemp("finished"))
    (folder / "words.txt").write_text("\n".join(VOCAB) + "\n")
    return run(
        folder,
        do_train=True,
        do_eval=True,
        num_train_steps=8,
        keep_checkpoint_max=2,
        vocab_file=str(folder / "words.txt"),
    )


@pytest.fixture
def copy(finished, folder):
    """A copy of the finished run, as the output directory of `folder`."""
    return shutil.copytree(finished, folder / "out")


def resume(folder, **changes):
    return run(folder, do_train=True, num_train_steps=8, **changes)


def remove_last_checkpoint(output):
    for part in output.glob("model.ckpt-8*"):
        part.unlink()
    (output / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-4"')


def event_values(path):
    """Returns {(step, tag): value} of an event file."""
    return {
        (event.step, value.tag): tf.make_ndarray(value.tensor).item()
        for event in tf.compat.v1.train.summary_iterator(str(path))
        for value in event.summary.value
    }


def test_training_writes_checkpoints_options_config_and_vocabulary(finished):
    names = {path.name for path in finished.iterdir()}
    events = {n for n in names if n.startswith("events.out.tfevents")}
    assert len(events) == 1
    assert names - events == {
        "checkpoint",
        "eval",
        "eval_results.txt",
        "bert_config.json",
        "vocab.txt",
        "train_options.json",
        *(
            f"model.ckpt-{step}.{part}"  # The newest two.
            for step in (4, 8)
            for part in ("index", "data-00000-of-00001", "resume.json")
        ),
    }
    state = weights(finished)
    assert state["global_step"] == 8
    assert state["global_step"].dtype == np.int64
    assert len(state) == 3 * 30 + 1
    recorded = json.loads((finished / "train_options.json").read_text())
    assert recorded["command"] == "run_pretraining.py"
    assert recorded["options"]["train_batch_size"] == 8
    assert (finished / "vocab.txt").read_text().split() == VOCAB


def test_evaluation_writes_sorted_results_and_events(finished):
    found = results(finished)
    assert list(found) == sorted(found)
    (events,) = (finished / "eval").glob("events.out.tfevents*")
    assert event_values(events) == {
        (8, name): pytest.approx(float(value), rel=1e-6)
        for name, value in found.items()
        if name != "global_step"
    }
    assert set(found) == {
        "global_step",
        "loss",
        "masked_lm_accuracy",
        "masked_lm_loss",
        "next_sentence_accuracy",
        "next_sentence_loss",
    }


def test_training_learns_both_tasks_and_writes_their_curves(folder):
    # With dropout, whether so small a model learns depends on the seed.
    config = CONFIG | dict.fromkeys(
        ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0
    )
    (folder / "bert_config.json").write_text(json.dumps(config))
    output = run(folder, do_train=True, do_eval=True, num_train_steps=200)
    assert float(results(output)["masked_lm_loss"]) < 0.5 * math.log(30)
    assert float(results(output)["next_sentence_accuracy"]) > 0.9
    (events,) = output.glob("events.out.tfevents*")
    names = ("loss", "masked_lm_loss", "next_sentence_loss", "gradient_norm")
    assert set(event_values(events)) == {
        (step, name)
        for step in range(10, 201, 10)
        for name in (*names, "learning_rate", "examples_per_second")
    }


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_data_are_shuffled_with_seeds_that_tensorflow_takes_for_0(folder, seed):
    data = records.RecordFiles(
        [str(folder / "train.tfrecord")], pretraining_runs.SCHEMA
    )

    def first_epoch():
        checkpointing.set_seed(seed)
        batches = datasets.training_batches(data, 20, seed=seed)
        return [b["input_ids"].numpy() for b in batches.take(2)]

    one, other = first_epoch(), first_epoch()
    np.testing.assert_array_equal(one, other)
    in_order = datasets.evaluation_batches(data, 20, 2)
    assert (one[0] != next(iter(in_order))["input_ids"].numpy()).any()


def test_evaluation_on_replicas_gives_the_metrics_of_one_device(copy, folder):
    expected = results(copy)
    run(folder, do_eval=True, distribution_strategy="mirrored")
    for key, value in results(copy).items():
        assert float(value) == pytest.approx(float(expected[key]), rel=1e-6)


def test_evaluation_equals_the_original(golden, tmp_path):
    run_pretraining.main(
        RunPretraining(
            bert_config_file=str(golden / "e2e/inputs/bert_config.json"),
            do_eval=True,
            eval_batch_size=8,
            init_checkpoint=str(golden / "model/base/bert_model.ckpt"),
            input_file=str(golden / "e2e/inputs/pretrain.tfrecord"),
            max_eval_steps=7,
            max_predictions_per_seq=10,
            max_seq_length=64,
            output_dir=str(tmp_path),
        )
    )
    expected = golden / "e2e/expected/run_pretraining_eval_results.txt"
    lines = expected.read_text().splitlines()
    found = results(tmp_path)
    assert list(found) == [line.split(" = ")[0] for line in lines]
    for line in lines:
        key, value = line.split(" = ")
        assert float(found[key]) == pytest.approx(float(value), rel=1e-6)


def test_diverged_training_names_the_step_and_keeps_checkpoints(folder):
    with pytest.raises(InputError, match=r"Received: nan at step \d+"):
        run(folder, do_train=True, learning_rate=1e30)
    assert (folder / "out" / "model.ckpt-0.index").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_seq_length": 12}, "--max_seq_length=10"),
        ({"max_predictions_per_seq": 3}, "--max_predictions_per_seq=2"),
    ],
)
def test_records_of_other_sizes_name_the_flag_to_set(folder, changes, message):
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)


def test_damaged_record_is_named_with_its_number(folder):
    with open(folder / "train.tfrecord", "rb+") as file:
        file.seek(file.seek(0, 2) // 2 + 50)  # In a record, not its header.
        file.write(b"????")
    with pytest.raises(InputError, match=r"train\.tfrecord: record \d+ "):
        run(folder, do_train=True)


def test_record_that_is_no_example_is_named_with_its_number(folder):
    path = folder / "train.tfrecord"
    data = list(tfrecords.read(str(path)))
    data[4] = data[4][:-20]
    path.write_bytes(tfrecords.join(data, compress=False))
    with pytest.raises(InputError, match=r"train\.tfrecord: record 5 "):
        run(folder, do_train=True)


@pytest.mark.parametrize(
    "jit_compile", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_id_beyond_the_vocabulary_is_named(folder, jit_compile):
    smaller = {**CONFIG, "vocab_size": 29}
    (folder / "bert_config.json").write_text(json.dumps(smaller))
    with pytest.raises(InputError, match=r"record \d+: `.*ids` must be below"):
        run(folder, do_train=True, jit_compile=jit_compile)


def test_empty_file_is_skipped_unless_it_is_the_only_one(folder, copy, caplog):
    (folder / "empty.tfrecord").touch()
    run(folder, do_eval=True, input_file=str(folder / "*.tfrecord"))
    assert f"{folder}/empty.tfrecord" in caplog.text
    with pytest.raises(InputError, match=r"empty\.tfrecord"):
        run(folder, "no", do_train=True, input_file=f"{folder}/empty.tfrecord")


@pytest.mark.parametrize(
    ("changes", "num_heads", "message"),
    [
        (
            {"train_batch_size": 7, "distribution_strategy": "mirrored"},
            2,
            "--train_batch_size=7",
        ),
        ({"vocab_file": "fewer.txt"}, 2, r"fewer\.txt"),
        ({}, 4, "`num_attention_heads` must be 4"),
    ],
)
def test_cheap_checks_come_before_reading_records(
    folder, monkeypatch, changes, num_heads, message
):
    monkeypatch.chdir(folder)
    (folder / "train.tfrecord").write_bytes(b"no record")
    (folder / "fewer.txt").write_text("[UNK]\n")
    (folder / "out").mkdir()
    (folder / "out" / "bert_config.json").write_text(
        json.dumps({**CONFIG, "num_attention_heads": num_heads})
    )
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)


def test_vocabulary_larger_than_the_model_is_an_error(folder):
    (folder / "words.txt").write_text("\n".join([*VOCAB, "more"]) + "\n")
    with pytest.raises(InputError, match="30"):
        run(folder, do_train=True, vocab_file=str(folder / "words.txt"))


def test_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    finished, copy, folder, caplog
):
    caplog.set_level("INFO", logger="absl")
    remove_last_checkpoint(copy)
    resume(folder, seed=2)
    assert_same_weights(copy, finished)
    assert f"Resuming from {copy / 'model.ckpt-4'}" in caplog.text
    assert "--seed=2 is ignored: the run was started with --seed=12345" in (
        caplog.text
    )


def test_damaged_checkpoint_is_skipped_for_the_one_before(
    finished, copy, folder, caplog
):
    caplog.set_level("INFO", logger="absl")
    with open(copy / "model.ckpt-8.data-00000-of-00001", "rb+") as file:
        file.truncate(100)
    resume(folder)
    assert re.search(r"WARNING.*model\.ckpt-8", caplog.text)
    assert f"Resuming from {copy / 'model.ckpt-4'}" in caplog.text
    assert_same_weights(copy, finished)


def test_checkpoint_without_resume_file_resumes_at_its_step(
    finished, copy, folder
):
    """Like a checkpoint of the original implementation."""
    for path in [*copy.glob("*.resume.json"), copy / "model.ckpt-8.index"]:
        path.unlink()
    resume(folder)
    assert_same_weights(copy, finished)


def test_sigterm_saves_and_ends_the_run(finished, folder, monkeypatch, caplog):
    caplog.set_level("INFO", logger="absl")

    def save(output_dir, step, *args, **kwargs):
        if step == 4:
            signal.raise_signal(signal.SIGTERM)
        return original_save(output_dir, step, *args, **kwargs)

    original_save = run_directory.save
    monkeypatch.setattr(run_directory, "save", save)
    with pytest.raises(SystemExit) as caught:
        resume(folder, do_eval=True)
    assert caught.value.code == 0
    # The signal came while step 4 was saved; step 5 was the next to end.
    assert "Stopped by SIGTERM after step 5, saved as" in caplog.text
    assert not (folder / "out" / "eval_results.txt").exists()
    assert not (folder / "out" / "run.lock").exists()
    monkeypatch.undo()
    assert_same_weights(resume(folder), finished)


def test_finished_run_is_not_trained_further(finished, copy, folder, caplog):
    caplog.set_level("INFO", logger="absl")
    run(folder, do_train=True, do_eval=True, num_train_steps=5)
    assert results(copy) == results(finished)
    assert "Nothing to train: step 8 of 5" in caplog.text
    assert_same_weights(copy, finished)


def test_init_checkpoint_gives_weights_but_no_slots(finished, folder):
    prefix = str(finished / "model.ckpt-8")
    output = run(
        folder, do_train=True, num_train_steps=1, init_checkpoint=prefix
    )
    start = tf.train.load_checkpoint(str(output / "model.ckpt-0"))
    name = "bert/pooler/dense/kernel"
    np.testing.assert_array_equal(
        start.get_tensor(name), weights(finished)[name]
    )
    assert not start.get_tensor(f"{name}/adam_m").any()
    assert start.get_tensor("global_step") == 0


def test_init_checkpoint_can_be_a_run_directory(finished, folder):
    run(folder, do_eval=True, init_checkpoint=str(finished))
    assert results(folder / "out") == {**results(finished), "global_step": "0"}
    with pytest.raises(InputError, match=f"--init_checkpoint.*{folder}"):
        run(folder, do_eval=True, init_checkpoint=str(folder))


def test_weights_missing_or_unused_are_errors_unless_allowed(finished, folder):
    arrays = weights(finished)
    bert = {n: a for n, a in arrays.items() if n.startswith("bert/")}
    prefix = str(folder / "bert.ckpt")
    tf1.write(prefix, {**bert, "output_weights": np.ones(2)})
    with pytest.raises(InputError) as caught:
        run(folder, do_train=True, init_checkpoint=prefix)
    assert "missing: cls/predictions" in str(caught.value)
    assert "unused: output_weights" in str(caught.value)
    run(
        folder,
        do_train=True,
        num_train_steps=1,
        init_checkpoint=prefix,
        may_initialize="^cls/",
        may_skip="^output_",
    )


def test_checkpoint_without_step_is_evaluated_as_step_0(finished, folder):
    output = folder / "out"
    output.mkdir()
    arrays = {
        name: array
        for name, array in weights(finished).items()
        if not re.search("adam|^global", name)
    }
    tf1.write(str(output / "bert_model.ckpt"), arrays)
    (output / "checkpoint").write_text(
        'model_checkpoint_path: "bert_model.ckpt"'
    )
    run(folder, do_eval=True)
    assert results(output) == {**results(finished), "global_step": "0"}


def test_evaluation_without_any_model_is_an_error(folder):
    with pytest.raises(InputError, match=r"--init_checkpoint .*/out"):
        run(folder, do_eval=True)


@pytest.mark.parametrize("mode", ["do_train", "do_eval"])
@pytest.mark.parametrize(
    ("name", "value", "before"),
    [("hidden_size", 16, 8), ("num_attention_heads", 4, 2)],
)
def test_another_model_in_the_output_directory_is_an_error(
    copy, folder, mode, name, value, before
):
    (folder / "bert_config.json").write_text(
        json.dumps({**CONFIG, name: value})
    )
    files = sorted(os.listdir(copy))
    with pytest.raises(InputError, match=f"`{name}` must be {before}"):
        run(folder, **{mode: True})
    assert sorted(os.listdir(copy)) == files
    kept = json.loads((copy / "bert_config.json").read_text())
    assert kept[name] == before
