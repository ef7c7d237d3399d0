"""The command as its user runs it: trains, evaluates, resumes, complains."""

import json
import math
import os
import re
import shutil
import signal

import numpy as np
import pytest
import tensorflow as tf

import run_pretraining
from official_bert.checkpoints import numbered, tf1
from official_bert.errors import InputError
from official_bert.inputs import framing, records, schemas
from official_bert.options import RunPretraining

CONFIG = {
    "vocab_size": 30,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
}
SCHEMA = schemas.pretraining_schema(10, 2)


@pytest.fixture
def folder(tmp_path):
    """A tiny model's config and 40 records."""
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    random = np.random.RandomState(0)
    with tf.io.TFRecordWriter(str(tmp_path / "train.tfrecord")) as writer:
        for _ in range(40):
            values = {
                "input_ids": random.randint(0, 30, 10).tolist(),
                "input_mask": [1] * 10,
                "segment_ids": [0] * 5 + [1] * 5,
                "masked_lm_positions": [2, 7],
                "masked_lm_ids": random.randint(0, 30, 2).tolist(),
                "masked_lm_weights": [1.0, random.randint(2)],
                "next_sentence_labels": [random.randint(2)],
            }
            writer.write(records.encode(SCHEMA, values))
    return tmp_path


def run(folder, output="out", **changes):
    run_pretraining.main(
        RunPretraining(
            **{
                "bert_config_file": str(folder / "bert_config.json"),
                "input_file": str(folder / "train.tfrecord"),
                "output_dir": str(folder / output),
                "max_seq_length": 10,
                "max_predictions_per_seq": 2,
                "train_batch_size": 8,
                "num_train_steps": 6,
                "num_warmup_steps": 2,
                "learning_rate": 1e-2,
                "save_checkpoints_steps": 4,
                "max_eval_steps": 5,
                **changes,
            }
        )
    )
    return folder / output


def weights(output):
    reader = tf.train.load_checkpoint(tf.train.latest_checkpoint(str(output)))
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
    }


def assert_same_weights(one, other):
    expected, found = weights(one), weights(other)
    assert set(expected) == set(found)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def results(output):
    lines = (output / "eval_results.txt").read_text().splitlines()
    return dict(line.split(" = ") for line in lines)


def test_training_leaves_what_the_original_leaves(folder):
    output = run(folder, do_train=True, do_eval=True)
    names = {path.name for path in output.iterdir()}
    assert {
        f"model.ckpt-{step}.{part}"
        for step in (0, 4, 6)
        for part in ("index", "data-00000-of-00001", "resume.json")
    } <= names
    assert {"checkpoint", "eval_results.txt", "bert_config.json"} <= names
    assert any(name.startswith("events.out.tfevents") for name in names)
    state = weights(output)
    assert state["global_step"] == 6
    assert state["global_step"].dtype == np.int64
    assert len(state) == 3 * 30 + 1
    assert sorted(results(output)) == list(results(output))
    told = json.loads((output / "train_options.json").read_text())
    assert told["command"] == "run_pretraining.py"
    assert told["options"]["train_batch_size"] == 8


def test_training_learns(folder):
    # With dropout, whether so small a model does is the seed's luck.
    config = CONFIG | dict.fromkeys(
        ("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0
    )
    (folder / "bert_config.json").write_text(json.dumps(config))
    output = run(folder, do_train=True, do_eval=True, num_train_steps=200)
    assert float(results(output)["masked_lm_loss"]) < 0.5 * math.log(30)
    assert float(results(output)["next_sentence_accuracy"]) > 0.9


def test_events_hold_the_curves(folder):
    output = run(folder, do_train=True, num_train_steps=20)
    (events,) = output.glob("events.out.tfevents*")
    tags = {
        (event.step, value.tag)
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    names = ("loss", "masked_lm_loss", "next_sentence_loss", "gradient_norm")
    for name in (*names, "learning_rate", "examples_per_second"):
        assert {(10, name), (20, name)} <= tags


def test_evaluation_has_curves_of_its_own(folder):
    output = run(folder, do_train=True, do_eval=True)
    (events,) = (output / "eval").glob("events.out.tfevents*")
    found = {
        (event.step, value.tag): tf.make_ndarray(value.tensor).item()
        for event in tf.compat.v1.train.summary_iterator(str(events))
        for value in event.summary.value
    }
    told = results(output)
    assert found == {
        (6, name): pytest.approx(float(told[name]), rel=1e-6)
        for name in (
            "loss",
            "masked_lm_accuracy",
            "masked_lm_loss",
            "next_sentence_accuracy",
            "next_sentence_loss",
        )
    }


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


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_a_seed_may_be_any(folder, seed):
    """TensorFlow takes both for 0, with which it does not shuffle."""
    one, other = (
        run(folder, name, do_train=True, seed=seed) for name in ("one", "other")
    )
    assert_same_weights(one, other)


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


def test_evaluation_needs_a_model(folder):
    with pytest.raises(InputError, match="a model is needed"):
        run(folder, do_eval=True)


def test_evaluation_takes_the_newest_checkpoint(folder):
    output = run(folder, do_train=True, do_eval=True)
    after_training = results(output)
    run(folder, do_eval=True)
    assert results(output) == after_training
    assert results(output)["global_step"] == "6"


def test_evaluation_over_replicas_gives_the_metrics_of_one(folder):
    output = run(folder, do_train=True, do_eval=True)
    one = results(output)
    run(folder, do_eval=True, distribution_strategy="mirrored")
    for key, value in results(output).items():
        assert float(value) == pytest.approx(float(one[key]), rel=1e-6)


def test_a_loss_that_is_no_number_names_the_step(folder):
    with pytest.raises(InputError, match=r"Received: nan at step \d+"):
        run(folder, do_train=True, learning_rate=1e30)
    assert (folder / "out" / "model.ckpt-0.index").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_seq_length": 12}, "--max_seq_length=10"),
        ({"max_predictions_per_seq": 3}, "--max_predictions_per_seq=2"),
        (
            {"train_batch_size": 7, "distribution_strategy": "mirrored"},
            "--train_batch_size must be a multiple",
        ),
    ],
)
def test_options_that_do_not_fit(folder, changes, message):
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)


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


def test_a_record_damaged_in_the_middle_is_named(folder):
    with open(folder / "train.tfrecord", "rb+") as file:
        file.seek(file.seek(0, 2) // 2 + 50)  # In a record, not its header.
        file.write(b"????")
    with pytest.raises(
        InputError, match=r"train\.tfrecord: .* Record \d+ cannot"
    ):
        run(folder, do_train=True)


def test_a_record_that_is_no_example_is_named_or_skipped(folder, caplog):
    path = folder / "train.tfrecord"
    data = list(framing.read(str(path)))
    data[4] = data[4][:-20]
    path.write_bytes(framing.join(data, compress=False))
    with pytest.raises(InputError, match=r"train\.tfrecord: .* Record 5 cann"):
        run(folder, do_train=True)
    run(folder, do_train=True, skip_damaged_records=True)
    assert re.search(r"Skipped 1 .*\n.*train.tfrecord: record 5$", caplog.text)


@pytest.mark.slow
def test_damaged_records_are_skipped_if_asked_to(folder, caplog):
    whole = run(folder, "whole", do_train=True, skip_damaged_records=True)
    plain = run(folder, "plain", do_train=True)
    assert "damaged records" not in caplog.text
    with open(folder / "train.tfrecord", "rb+") as file:
        file.seek(50)
        file.write(b"????")
    one, other = (
        run(
            folder,
            name,
            do_train=True,
            do_eval=True,
            skip_damaged_records=True,
        )
        for name in ("one", "other")
    )
    assert "Skipped 1 damaged records:" in caplog.text
    assert "train.tfrecord: record 1" in caplog.text
    assert_same_weights(one, other)
    assert_same_weights(whole, plain)
    kernel = "bert/pooler/dense/kernel"
    assert (weights(one)[kernel] != weights(whole)[kernel]).any()


@pytest.mark.parametrize("jit_compile", [False, True])
def test_an_id_beyond_the_vocabulary_is_named(folder, jit_compile):
    smaller = {**CONFIG, "vocab_size": 29}
    (folder / "bert_config.json").write_text(json.dumps(smaller))
    with pytest.raises(InputError, match=r"record \d+: `.*ids` must be below"):
        run(folder, do_train=True, jit_compile=jit_compile)


def test_an_empty_file_among_others_is_no_obstacle(folder, caplog):
    (folder / "empty.tfrecord").touch()
    run(folder, do_train=True, input_file=str(folder / "*.tfrecord"))
    assert f"Empty files: {folder}/empty.tfrecord" in caplog.text
    with pytest.raises(InputError, match="an empty file"):
        run(folder, "no", do_train=True, input_file=f"{folder}/empty.tfrecord")


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"train_batch_size": 7, "distribution_strategy": "mirrored"},
            "--train_batch_size must be a multiple",
        ),
        ({"vocab_file": "words.txt"}, r"words\.txt"),
        ({}, "`num_attention_heads` must be 4"),
    ],
)
def test_records_are_read_after_what_is_sooner_checked(
    folder, monkeypatch, changes, message
):
    monkeypatch.chdir(folder)
    (folder / "train.tfrecord").write_bytes(b"no record")
    (folder / "words.txt").write_text("[UNK]\n")
    (folder / "out").mkdir()
    heads = {"num_attention_heads": 2 if changes else 4}
    (folder / "out" / "bert_config.json").write_text(
        json.dumps({**CONFIG, **heads})
    )
    with pytest.raises(InputError, match=message):
        run(folder, do_train=True, **changes)


@pytest.mark.slow
def test_another_seed_does_not_disturb_a_run_gone_on_with(folder):
    whole = run(folder, "whole", do_train=True, num_train_steps=8, seed=1)
    halved = run(folder, "halved", do_train=True, num_train_steps=8, seed=1)
    for part in halved.glob("model.ckpt-8*"):
        part.unlink()
    (halved / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-4"')
    run(folder, "halved", do_train=True, num_train_steps=8, seed=2)
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


def test_a_vocabulary_is_checked_and_kept(folder):
    vocab = folder / "words.txt"
    special = "[UNK]\n[CLS]\n[SEP]\n"
    vocab.write_text(special + "".join(f"w{i}\n" for i in range(28)))
    with pytest.raises(InputError, match="must not be smaller"):
        run(folder, do_train=True, vocab_file=str(vocab))
    vocab.write_text(special + "".join(f"w{i}\n" for i in range(27)))
    output = run(folder, do_train=True, vocab_file=str(vocab))
    assert (output / "vocab.txt").read_text() == vocab.read_text()


def test_the_recorded_evaluation(golden, tmp_path):
    """The command line and results of the 2018 release."""
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
    ours = results(tmp_path)
    assert list(ours) == [line.split(" = ")[0] for line in lines]
    for line in lines:
        key, value = line.split(" = ")
        assert float(ours[key]) == pytest.approx(float(value), rel=1e-6)
