"""run_classifier.py on a task of GLUE: train, evaluate, predict."""

import json
import math
import shutil

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
from official_bert.tasks import task
from official_bert.training import evaluate, loop


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Data that no test changes."""
    return review_runs.write(tmp_path_factory.mktemp("reviews"))


@pytest.fixture(scope="module")
def trained(folder):
    """The output directory of a run, which no test changes."""
    return run(
        folder,
        "trained",
        do_train=True,
        do_eval=True,
        do_predict=True,
        num_train_epochs=10.0,
        learning_rate=3e-3,
        save_checkpoints_steps=40,
        long_document="head_tail",
    )


@pytest.fixture
def copy(trained, folder):
    """The name of a copy of `trained`."""
    shutil.copytree(trained, folder / "copy")
    yield "copy"
    shutil.rmtree(folder / "copy")


def scores(output):
    return np.loadtxt(output / "test_results.tsv")


def test_training_learns_the_task(trained):
    results = read_json(trained / "eval_results.json")
    assert results["accuracy"] > 0.9
    labels = [label for _, label in review_runs.sentences(30, 30)]
    lines = (trained / "SST-2.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction"
    predicted = [int(line.split("\t")[1]) for line in lines[1:]]
    assert np.mean(np.array(predicted) == labels) > 0.9
    np.testing.assert_allclose(scores(trained).sum(1), 1.0, atol=1e-5)
    assert scores(trained).argmax(1).tolist() == predicted


def test_a_run_writes_the_files_of_the_original(trained):
    assert {
        f"model.ckpt-{step}.{part}"
        for step in (0, 40, 80, 100)  # 160 / 16 * 10
        for part in ("index", "data-00000-of-00001")
    } | {
        "checkpoint",
        "train.tf_record",
        "eval.tf_record",
        "predict.tf_record",
        "eval_results.txt",
        "eval_results.json",
        "task.json",
        "vocab.txt",
        "bert_config.json",
        "train_options.json",
    } <= {path.name for path in trained.iterdir()}
    lines = (trained / "eval_results.txt").read_text().splitlines()
    names = [line.split(" = ")[0] for line in lines]
    assert names == ["eval_accuracy", "eval_loss", "global_step", "loss"]
    assert lines[2] == "global_step = 100"
    results = read_json(trained / "eval_results.json")
    assert np.sum(results["confusion_matrix"], axis=1).sum() == 50
    described = read_json(trained / "task.json")
    assert described["labels"] == ["0", "1"]
    assert described["max_seq_length"] == 32


def test_the_options_of_training_and_of_evaluation_are_kept(folder, copy):
    output = run(folder, copy, do_predict=True)
    for name, is_training in (("train", True), ("eval", False)):
        record = read_json(output / f"{name}_options.json")
        assert record["command"] == "run_classifier.py"
        assert record["options"]["do_train"] == is_training


@pytest.mark.parametrize(
    ("changes", "block"),
    [({"eval_pad_to": "max"}, 16384), ({"eval_pad_to": "bucket"}, 7)],
)
def test_results_do_not_depend_on_padding_or_blocks(
    folder, trained, copy, changes, block, monkeypatch
):
    monkeypatch.setattr(task, "_EXAMPLES_PER_BLOCK", block)
    output = run(
        folder,
        copy,
        do_eval=True,
        do_predict=True,
        long_document="head_tail",
        **changes,
    )
    found, expected = (
        read_json(path / "eval_results.json") for path in (output, trained)
    )
    assert found["confusion_matrix"] == expected["confusion_matrix"]
    for name in ("loss", "eval_loss"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)
    np.testing.assert_allclose(scores(output), scores(trained), atol=1e-5)


def test_flags_default_to_those_of_the_trained_model(folder, trained, copy):
    output = folder / copy
    (output / "test_results.tsv").unlink()
    # The output directory is enough.
    for name in ("vocab.txt", "bert_config.json"):
        (folder / name).rename(folder / f"away-{name}")
    try:
        options = review_runs.parse_command_line(
            "--do_predict", f"--output_dir={output}"
        )
        assert options.long_document == "head_tail"
        assert options.max_seq_length == 32
        assert not options.do_train
        run_classifier.main(options)
    finally:
        for name in ("vocab.txt", "bert_config.json"):
            (folder / f"away-{name}").rename(folder / name)
    np.testing.assert_allclose(scores(output), scores(trained), rtol=1e-5)
    options = review_runs.parse_command_line(
        "--do_predict", f"--output_dir={output}", "--max_seq_length=16"
    )
    assert options.max_seq_length == 16


@pytest.mark.parametrize("flag", ["do_train", "do_predict"])
def test_flags_have_no_other_defaults(trained, folder, flag):
    """Training repeats nothing, and a new directory has nothing to repeat."""
    output = trained if flag == "do_train" else folder / "new"
    with pytest.raises(InputError, match="--bert_config_file"):
        review_runs.parse_command_line(f"--{flag}", f"--output_dir={output}")


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
            if mine != other:  # A word, or a number of eight digits.
                assert math.isclose(float(mine), float(other), rel_tol=2e-6)


@pytest.mark.slow
def test_a_smoke_run_writes_the_recorded_variables(golden, tmp_path):
    folder = golden / "e2e"
    expected = read_json(folder / "expected" / "train_smoke_checkpoint.json")
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
    found = weights(tmp_path)
    shapes = {name: list(array.shape) for name, array in found.items()}
    assert shapes == dict(expected["variables"])


def test_the_mismatched_set_of_mnli_is_evaluated_only_at_the_end(
    folder, tmp_path, monkeypatch
):
    header = "\t".join(["-"] * 8 + ["sentence1", "sentence2", "gold_label"])
    row = "\t".join(["-"] * 8 + ["a good film", "a bad film", "neutral"])
    sizes = {"train": 16, "dev_matched": 3, "dev_mismatched": 2}
    for name, size in sizes.items():
        text = "\n".join([header, *[row] * size]) + "\n"
        (tmp_path / f"{name}.tsv").write_text(text)
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
        "mnli",
        task_name="MNLI",
        data_dir=str(tmp_path),
        do_train=True,
        do_eval=True,
        eval_every=1,
        num_train_epochs=1.0,
    )
    during_training, at_the_end = found
    for results in found:
        assert np.sum(results["confusion_matrix"]) == 3
    assert "dev_mismatched" not in during_training
    assert np.sum(at_the_end["dev_mismatched"]["confusion_matrix"]) == 2


@pytest.mark.slow
def test_the_best_checkpoint_is_kept_and_evaluated(folder):
    output = run(
        folder,
        "best",
        do_train=True,
        do_eval=True,
        num_train_epochs=4.0,
        eval_every=10,
        learning_rate=2e-2,
    )
    lines = (output / "eval_history.jsonl").read_text().splitlines()
    history = [json.loads(line) for line in lines]
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
    output = run(folder, "stopped", **flags)
    history = output / "eval_history.jsonl"
    lines = history.read_text().splitlines(keepends=True)
    # Nothing changes, so the first evaluation stays the best.
    assert len(lines) == 4
    assert weights(output)["global_step"] == 20
    # As if killed between the last checkpoint and its evaluation.
    history.write_text("".join(lines[:3]))
    run(folder, "stopped", **flags)
    assert history.read_text() == "".join(lines)
    assert weights(output)["global_step"] == 20


def test_frozen_weights_do_not_change_and_have_no_slots(folder):
    output = run(folder, "frozen", do_train=True, freeze="embeddings,0")
    before, after = weights(output, 0), weights(output)
    changed = {
        name
        for name, array in after.items()
        if name in before and not np.array_equal(before[name], array)
    } - {"global_step"}
    frozen = ("bert/embeddings/", "bert/encoder/layer_0/")
    assert not any(name.startswith(frozen) for name in changed)
    assert not any(name.startswith(frozen) and "adam" in name for name in after)
    assert any(name.startswith("bert/encoder/layer_1/") for name in changed)


@pytest.mark.slow
def test_two_replicas_end_like_one_device(folder, tmp_path, monkeypatch):
    """Without dropout, whose masks differ."""
    monkeypatch.setattr(Dropout, "call", lambda self, x, **_: x)
    config = {**review_runs.CONFIG, "hidden_dropout_prob": 0.0}
    config["attention_probs_dropout_prob"] = 0.0
    (tmp_path / "config.json").write_text(json.dumps(config))
    one, two = (
        run(
            folder,
            name,
            bert_config_file=str(tmp_path / "config.json"),
            do_train=True,
            do_eval=True,
            do_predict=True,
            distribution_strategy=name,
            eval_batch_size=16,
            learning_rate=1e-3,
        )
        for name in ("none", "mirrored")
    )
    found = weights(two)
    for name, array in weights(one).items():
        np.testing.assert_allclose(found[name], array, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(scores(one), scores(two), atol=1e-5)
    one, two = (read_json(f / "eval_results.json") for f in (one, two))
    assert one["confusion_matrix"] == two["confusion_matrix"]
    assert one["eval_loss"] == pytest.approx(two["eval_loss"], rel=1e-4)


def test_training_starts_from_a_pretrained_checkpoint(folder, tmp_path):
    model = SequenceClassifier(BertConfig.from_dict(review_runs.CONFIG), 2)
    pretrained = {
        w.path: w.numpy()
        for w in model.trainable_variables
        if w.path.startswith("bert/")
    }
    checkpoint = str(tmp_path / "bert.ckpt")
    head = {"cls/predictions/output_bias": np.zeros(20, np.float32)}
    tf1.write(checkpoint, {**pretrained, **head})
    output = run(
        folder,
        "pretrained",
        do_train=True,
        init_checkpoint=checkpoint,
        num_train_epochs=0.1,
    )
    first = weights(output, 0)
    for name, array in pretrained.items():
        np.testing.assert_array_equal(first[name], array)
    with pytest.raises(InputError, match="missing: output_bias"):
        run(folder, "other", do_eval=True, init_checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("split", "text", "message"),
    [
        ("dev", "sentence\tlabel\ngood\t2\n", r"dev\.tsv:2: .*'2'"),
        ("dev", "sentence\tlabel\ngood\n", r"dev\.tsv:2: .*2 columns"),
        ("dev", "sentence\tlabel\n", r"dev\.tsv: "),
    ],
)
def test_malformed_data_is_reported_before_anything_is_written(
    folder, tmp_path, split, text, message
):
    (tmp_path / f"{split}.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        run(folder, "malformed", data_dir=str(tmp_path), do_eval=True)
    assert not (folder / "malformed").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"do_eval": True, "task_name": "sts"}, "--task_name.*sts"),
        (
            {"do_train": True, "num_train_epochs": 0.01},
            "--num_train_epochs=0.01",
        ),
        ({"do_eval": True}, "--init_checkpoint"),
        (
            {
                "do_eval": True,
                "eval_batch_size": 7,
                "distribution_strategy": "mirrored",
            },
            "--eval_batch_size.*7",
        ),
        # A batch size that is not used may be anything.
        (
            {
                "do_predict": True,
                "eval_batch_size": 7,
                "distribution_strategy": "mirrored",
            },
            "--init_checkpoint",
        ),
    ],
)
def test_flags_that_cannot_work_are_an_error(folder, flags, message):
    with pytest.raises(InputError, match=message):
        run(folder, "impossible", **flags)


def test_a_checkpoint_is_checked_before_features_are_made(folder, tmp_path):
    checkpoint = str(tmp_path / "other.ckpt")
    tf1.write(checkpoint, {"bert/x": np.zeros(2, np.float32)})
    with pytest.raises(InputError, match="missing: bert/embeddings"):
        run(folder, "unchecked", do_train=True, init_checkpoint=checkpoint)
    assert not (folder / "unchecked" / "train.tf_record").exists()


def test_the_casing_of_released_models_is_checked(
    folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uncased_L-12_H-768_A-12").mkdir()
    (tmp_path / "uncased_L-12_H-768_A-12" / "bert_model.ckpt.index").touch()
    with pytest.raises(InputError, match="lowercased model"):
        run(
            folder,
            "cased",
            do_train=True,
            do_lower_case=False,
            init_checkpoint="uncased_L-12_H-768_A-12/bert_model.ckpt",
        )


def test_flags_reach_the_schedule_the_data_and_the_rates_of_layers(
    folder, monkeypatch
):
    seen = {}

    def trainer(model, objective, weights, schedule, *rest):
        seen.update(schedule=schedule, scales=rest[-1])
        return original(model, objective, weights, schedule, *rest)

    def batches(*_, **named):
        seen.update(named)
        raise StopIteration

    original = loop.Trainer
    monkeypatch.setattr(loop, "Trainer", trainer)
    monkeypatch.setattr(datasets, "finetuning_batches", batches)
    with pytest.raises(StopIteration):
        run(
            folder,
            "flags",
            do_train=True,
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
    # Section A.2 of the paper: warm-up, then linear decay, of 50 steps.
    expected = [0.0, 2e-5 / 5, 2e-5 * 45 / 50, 2e-5 / 50]
    np.testing.assert_allclose(rates, expected, rtol=1e-5)
    # There are two layers between the embeddings and the task's weights.
    assert seen["scales"]["bert/embeddings/word_embeddings"] == 0.5**3
    assert seen["scales"]["output_weights"] == 1.0
