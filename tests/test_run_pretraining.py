"""The command as its user runs it: trains, evaluates, complains."""

import json
import math

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
from official_bert.errors import InputError
from official_bert.inputs import tfrecords
from official_bert.options import RunPretraining


@pytest.fixture
def folder(tmp_path):
    return pretraining_runs.write(tmp_path)


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


@pytest.mark.parametrize("seed", [0, 2**31 - 1])
def test_a_seed_may_be_any(folder, seed):
    """TensorFlow takes both for 0, with which it does not shuffle."""
    one, other = (
        run(folder, name, do_train=True, seed=seed) for name in ("one", "other")
    )
    assert_same_weights(one, other)


def test_evaluation_needs_a_model(folder):
    with pytest.raises(InputError, match="a model is needed"):
        run(folder, do_eval=True)


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


def test_a_record_damaged_in_the_middle_is_named(folder):
    with open(folder / "train.tfrecord", "rb+") as file:
        file.seek(file.seek(0, 2) // 2 + 50)  # In a record, not its header.
        file.write(b"????")
    with pytest.raises(InputError, match=r"train\.tfrecord: record \d+ cannot"):
        run(folder, do_train=True)


def test_record_that_is_no_example_is_named_with_its_number(folder):
    path = folder / "train.tfrecord"
    data = list(tfrecords.read(str(path)))
    data[4] = data[4][:-20]
    path.write_bytes(tfrecords.join(data, compress=False))
    with pytest.raises(InputError, match=r"train\.tfrecord: record 5 must"):
        run(folder, do_train=True)


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
    with pytest.raises(InputError, match=r"empty\.tfrecord must"):
        run(folder, "no", do_train=True, input_file=f"{folder}/empty.tfrecord")


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
