"""The command as its user runs it: trains, evaluates, predicts, complains."""

import json
import math

import numpy as np
import pytest
import tensorflow as tf
from support import review_runs
from support.review_runs import read_json, run, weights

import run_classifier
from official_bert.checkpoints import tf1
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import datasets
from official_bert.modeling.finetuning_models import SequenceClassifier
from official_bert.modeling.layers import Dropout
from official_bert.options import RunClassifier
from official_bert.training import evaluate, loop


@pytest.fixture
def folder(tmp_path):
    return review_runs.write(tmp_path)


def test_learns_what_can_be_learned(folder):
    output = run(
        folder,
        do_train=True,
        do_eval=True,
        do_predict=True,
        num_train_epochs=10.0,
        learning_rate=3e-3,
    )
    results = read_json(output / "eval_results.json")
    assert results["accuracy"] > 0.9
    right = [label for _, label in review_runs.sentences(30, 30)]
    lines = (output / "SST-2.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction"
    predicted = [int(line.split("\t")[1]) for line in lines[1:]]
    assert np.mean(np.array(predicted) == right) > 0.9
    probabilities = np.loadtxt(output / "test_results.tsv")
    np.testing.assert_allclose(probabilities.sum(1), 1.0, atol=1e-5)
    assert probabilities.argmax(1).tolist() == predicted


def test_training_leaves_what_the_original_leaves(folder):
    output = run(folder, do_train=True, do_eval=True)
    names = {path.name for path in output.iterdir()}
    assert {
        f"model.ckpt-{step}.{part}"
        for step in (0, 8, 16, 20)
        for part in ("index", "data-00000-of-00001")
    } | {
        "checkpoint",
        "train.tf_record",
        "eval.tf_record",
        "eval_results.txt",
        "eval_results.json",
        "task.json",
        "vocab.txt",
        "bert_config.json",
        "train_options.json",
    } <= names
    lines = (output / "eval_results.txt").read_text().splitlines()
    assert [line.split(" = ")[0] for line in lines] == [
        "eval_accuracy",
        "eval_loss",
        "global_step",
        "loss",
    ]
    assert lines[2] == "global_step = 20"  # 160 / 16 * 2
    matrix = np.array(
        read_json(output / "eval_results.json")["confusion_matrix"]
    )
    assert matrix.shape == (2, 2)
    assert matrix.sum() == 50
    task = read_json(output / "task.json")
    assert task["labels"] == ["0", "1"]
    assert task["max_seq_length"] == 32


def test_the_options_of_a_run_lie_beside_its_results(folder):
    output = run(folder, do_train=True, num_train_epochs=0.1)
    run(folder, do_predict=True)
    for name, is_training in (("train", True), ("eval", False)):
        told = read_json(output / f"{name}_options.json")
        assert told["command"] == "run_classifier.py"
        assert told["options"]["do_train"] == is_training
        assert told["options"]["do_predict"] != is_training


@pytest.mark.parametrize("task", ["CoLA", "MRPC"])
def test_recorded_command_lines_give_the_recorded_files(task, golden, tmp_path):
    folder = golden / "e2e"
    recorded = json.loads((folder / "commands.json").read_text())
    command = dict(
        flag.removeprefix("--").split("=")
        for flag in recorded[f"run_classifier_{task}"][1:]
    )
    for name in ("bert_config_file", "data_dir", "vocab_file"):
        command[name] = str(folder / command[name])
    command["init_checkpoint"] = str(folder / command["init_checkpoint"])
    command["output_dir"] = str(tmp_path)
    numbers = {n for n in command if n.endswith(("_size", "_length"))}
    options = RunClassifier(
        **{n: int(v) if n in numbers else v for n, v in command.items()}
        | {"do_eval": True, "do_predict": True}
    )
    run_classifier.main(options)
    for name in ("eval_results.txt", "test_results.tsv"):
        expected = folder / "expected" / f"run_classifier_{task}_{name}"
        ours, theirs = (
            path.read_text().split() for path in (tmp_path / name, expected)
        )
        assert len(ours) == len(theirs) > 3
        for mine, other in zip(ours, theirs, strict=True):
            if mine != other:  # A word, or the last of eight digits.
                assert math.isclose(float(mine), float(other), rel_tol=2e-6)


def test_only_the_end_is_measured_on_all_development_sets(folder, monkeypatch):
    """On the way, MNLI's matched one says which model is the best."""
    data = folder / "MNLI"
    data.mkdir()
    header = "\t".join(["-"] * 8 + ["sentence1", "sentence2", "gold_label"])
    row = "\t".join(["-"] * 8 + ["a good film", "a bad film", "neutral"])
    for name, rows in (
        ("train", 16),
        ("dev_matched", 3),
        ("dev_mismatched", 2),
    ):
        text = "\n".join([header, *[row] * rows]) + "\n"
        (data / f"{name}.tsv").write_text(text)
    evaluate_model, found = evaluate.evaluate, []
    monkeypatch.setattr(
        evaluate,
        "evaluate",
        lambda *args, **named: (
            found.append(evaluate_model(*args, **named)) or found[-1]
        ),
    )
    run(
        folder,
        task_name="MNLI",
        data_dir=str(data),
        do_train=True,
        do_eval=True,
        eval_every=1,
        num_train_epochs=1.0,
    )
    counts = [np.sum(results["confusion_matrix"]) for results in found]
    assert counts == [3, 3]
    on_the_way, in_the_end = found
    assert "dev_mismatched" not in on_the_way
    assert np.sum(in_the_end["dev_mismatched"]["confusion_matrix"]) == 2


@pytest.mark.slow
def test_a_smoke_run_leaves_the_recorded_variables(golden, tmp_path):
    folder = golden / "e2e"
    expected = json.loads(
        (folder / "expected" / "train_smoke_checkpoint.json").read_text()
    )
    run_classifier.main(
        RunClassifier(
            bert_config_file=str(folder / "inputs" / "bert_config.json"),
            data_dir=str(folder / "inputs" / "MRPC"),
            do_train=True,
            init_checkpoint=str(folder / "inputs" / "classifier.ckpt"),
            learning_rate=0.0001,
            max_seq_length=64,
            num_train_epochs=1.0,
            output_dir=str(tmp_path),
            save_checkpoints_steps=4,
            task_name="MRPC",
            train_batch_size=8,
            vocab_file=str(folder / "inputs" / "vocab.txt"),
        )
    )
    names = {path.name for path in tmp_path.glob("*.index")}
    assert names == set(expected["files"])
    shapes = {
        name: list(array.shape) for name, array in weights(tmp_path).items()
    }
    assert shapes == dict(expected["variables"])


@pytest.mark.slow
def test_evaluation_does_not_depend_on_padding(folder):
    run(folder, do_train=True)
    found = {}
    for pad_to in ("max", "bucket"):
        output = run(folder, do_eval=True, do_predict=True, eval_pad_to=pad_to)
        found[pad_to] = (
            read_json(output / "eval_results.json"),
            np.loadtxt(output / "test_results.tsv"),
        )
    assert (
        found["max"][0]["confusion_matrix"]
        == (found["bucket"][0]["confusion_matrix"])
    )
    for name in ("loss", "eval_loss"):
        assert found["max"][0][name] == pytest.approx(
            found["bucket"][0][name], rel=1e-5
        )
    np.testing.assert_allclose(found["max"][1], found["bucket"][1], atol=1e-5)


@pytest.mark.slow
def test_the_best_checkpoint_is_kept_and_used(folder):
    output = run(
        folder,
        do_train=True,
        do_eval=True,
        num_train_epochs=4.0,
        eval_every=10,
        learning_rate=2e-2,
    )
    history = [
        json.loads(line)
        for line in (output / "eval_history.jsonl").read_text().splitlines()
    ]
    assert [entry["global_step"] for entry in history] == [10, 20, 30, 40]
    best = max(history, key=lambda entry: entry["accuracy"])
    results = read_json(output / "eval_results.json")
    assert results["global_step"] == best["global_step"]
    assert results["accuracy"] == best["accuracy"]
    kept = weights(output / "best")
    assert kept["global_step"] == best["global_step"]
    assert not any(name.endswith("adam_m") for name in kept)


@pytest.mark.slow
def test_early_stopping_ends_training(folder):
    flags = {
        "do_train": True,
        "num_train_epochs": 50.0,
        "eval_every": 5,
        "early_stopping": 3,
        "learning_rate": 0.0,
    }
    output = run(folder, **flags)
    history = output / "eval_history.jsonl"
    lines = history.read_text().splitlines(keepends=True)
    # Nothing moves, so the first evaluation stays the best.
    assert len(lines) == 4
    assert weights(output)["global_step"] == 20
    # As if killed after the last checkpoint, and before it was measured.
    history.write_text("".join(lines[:3]))
    run(folder, **flags)
    assert history.read_text() == "".join(lines)
    assert weights(output)["global_step"] == 20


def test_frozen_weights_stay_and_have_no_moments(folder):
    output = run(folder, do_train=True, freeze="embeddings,0")
    reader = tf.train.load_checkpoint(str(output / "model.ckpt-0"))
    after = weights(output)
    moved = {
        name
        for name, array in after.items()
        if "adam" not in name
        and name != "global_step"
        and not np.array_equal(reader.get_tensor(name), array)
    }
    frozen = ("bert/embeddings/", "bert/encoder/layer_0/")
    assert moved
    assert not any(name.startswith(frozen) for name in moved)
    assert not any(name.startswith(frozen) and "adam" in name for name in after)
    assert any(name.startswith("bert/encoder/layer_1/") for name in moved)


@pytest.mark.slow
def test_two_devices_end_like_one(folder, monkeypatch):
    """Dropout apart, whose masks differ from device to device."""
    monkeypatch.setattr(Dropout, "call", lambda self, x, **how: x)
    config = {**review_runs.CONFIG, "hidden_dropout_prob": 0.0}
    config["attention_probs_dropout_prob"] = 0.0
    (folder / "bert_config.json").write_text(json.dumps(config))
    found = [
        run(
            folder,
            name,
            do_train=True,
            do_eval=True,
            do_predict=True,
            distribution_strategy=name,
            eval_batch_size=16,
            learning_rate=1e-3,
        )
        for name in ("none", "mirrored")
    ]
    for name, array in weights(found[0]).items():
        other = weights(found[1])[name]
        np.testing.assert_allclose(other, array, atol=1e-5, err_msg=name)
    one, two = (np.loadtxt(f / "test_results.tsv") for f in found)
    np.testing.assert_allclose(one, two, atol=1e-5)
    one, two = (read_json(f / "eval_results.json") for f in found)
    assert one["confusion_matrix"] == two["confusion_matrix"]
    assert one["eval_loss"] == pytest.approx(two["eval_loss"], rel=1e-4)


def test_starts_from_a_pretrained_checkpoint(folder):
    model = SequenceClassifier(BertConfig.from_dict(review_runs.CONFIG), 2)
    arrays = {w.path: w.numpy() for w in model.trainable_variables}
    pretrained = {n: a for n, a in arrays.items() if n.startswith("bert/")}
    pretrained["cls/predictions/output_bias"] = np.zeros(20, np.float32)
    tf1.write(str(folder / "bert.ckpt"), pretrained)
    output = run(
        folder,
        do_train=True,
        init_checkpoint=str(folder / "bert.ckpt"),
        num_train_epochs=0.1,
    )
    first = tf.train.load_checkpoint(str(output / "model.ckpt-0"))
    for name in pretrained:
        if name.startswith("bert/"):
            np.testing.assert_array_equal(
                first.get_tensor(name), pretrained[name]
            )
    with pytest.raises(InputError, match="missing: output_bias"):
        run(
            folder,
            "other",
            do_eval=True,
            init_checkpoint=str(folder / "bert.ckpt"),
        )


def test_a_checkpoint_is_looked_at_before_features_are_made(folder):
    tf1.write(str(folder / "other.ckpt"), {"bert/x": np.zeros(2, np.float32)})
    with pytest.raises(InputError, match="missing: bert/embeddings"):
        run(folder, do_train=True, init_checkpoint=str(folder / "other.ckpt"))
    assert not (folder / "out" / "train.tf_record").exists()


def test_batches_must_fit_the_devices_if_they_are_used(folder):
    odd = {"eval_batch_size": 7, "distribution_strategy": "mirrored"}
    with pytest.raises(InputError, match="--eval_batch_size=7"):
        run(folder, do_eval=True, **odd)
    with pytest.raises(InputError, match="--init_checkpoint"):
        run(folder, do_predict=True, **odd)


BAD = {
    "an unknown label": (
        "dev",
        "sentence\tlabel\ngood\t2\n",
        "dev.tsv:2: .*0, 1",
    ),
    "a short row": (
        "dev",
        "sentence\tlabel\ngood\n",
        "dev.tsv:2: ",
    ),
    "no rows": ("dev", "sentence\tlabel\n", "dev.tsv: must hold examples"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_ends_in_one_message(folder, case):
    split, text, message = BAD[case]
    (folder / "SST-2" / f"{split}.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        run(folder, do_eval=True)
    assert not (folder / "out").exists()


def test_impossible_options_are_refused(folder):
    with pytest.raises(InputError, match="must be one of cola"):
        run(folder, task_name="sts", do_eval=True)
    with pytest.raises(InputError, match=r"--num_train_epochs=0\.01"):
        run(folder, do_train=True, num_train_epochs=0.01)
    with pytest.raises(InputError, match="layers from 0 to 1"):
        run(folder, do_train=True, freeze="0-2")
    with pytest.raises(
        InputError, match="--early_stopping=2 needs --eval_every"
    ):
        run(folder, do_train=True, early_stopping=2)
    with pytest.raises(InputError, match="--init_checkpoint"):
        run(folder, do_eval=True)


def wiring(folder, monkeypatch, **changes):
    """Returns what a run gives to its optimizer and to its data."""
    seen = {}

    def trainer(model, objective, weights, schedule, *rest):
        seen.update(schedule=schedule, weights=weights, scales=rest[-1])
        return original(model, objective, weights, schedule, *rest)

    def batches(*arguments, **named):
        seen.update(named)
        raise StopIteration

    original = loop.Trainer
    monkeypatch.setattr(loop, "Trainer", trainer)
    monkeypatch.setattr(datasets, "finetuning_batches", batches)
    with pytest.raises(StopIteration):
        run(folder, do_train=True, **changes)
    return seen


def test_flags_reach_the_schedule_the_data_and_each_layers_rate(
    folder, monkeypatch
):
    seen = wiring(
        folder,
        monkeypatch,
        train_batch_size=32,
        num_train_epochs=10.0,
        learning_rate=2e-5,
        warmup_proportion=0.1,
        layerwise_lr_decay=0.5,
        seed=7,
    )
    assert seen["seed"] == 7
    schedule = seen["schedule"]
    assert schedule.num_train_steps == 50  # 160 / 32 * 10
    rates = [float(schedule(tf.constant(step))) for step in (0, 1, 5, 49)]
    # Section A.2 of the paper: warm-up, then down to zero, of 50 steps.
    expected = [0.0, 2e-5 / 5, 2e-5 * 45 / 50, 2e-5 / 50]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    scales = seen["scales"]
    # Two layers between the embeddings and the task's own weights.
    assert scales["bert/embeddings/word_embeddings"] == 0.5**3
    assert scales["output_weights"] == 1.0


def test_the_casing_of_released_models_is_checked(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "uncased_L-12_H-768_A-12").mkdir()
    (folder / "uncased_L-12_H-768_A-12" / "bert_model.ckpt.index").touch()
    with pytest.raises(InputError, match="seems to be a lowercased model"):
        run(
            folder,
            do_train=True,
            do_lower_case=False,
            init_checkpoint="uncased_L-12_H-768_A-12/bert_model.ckpt",
        )


def test_results_do_not_depend_on_chunks(folder, monkeypatch):
    output = run(folder, do_train=True, num_train_epochs=0.5)
    found = []
    for size in (16384, 7):
        monkeypatch.setattr(evaluate, "_CHUNK", size)
        run(folder, do_eval=True, do_predict=True)
        results = read_json(output / "eval_results.json")
        scores = np.loadtxt(output / "test_results.tsv")
        found.append((results["confusion_matrix"], scores))
    assert found[0][0] == found[1][0]
    assert found[0][1].shape == (30, 2)
    np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-6)
