"""The command as its user runs it: trains, evaluates, predicts, complains."""

import json
import math
import os
import shutil
import signal
import time

import numpy as np
import pytest
import tensorflow as tf
from absl import flags

import run_classifier
from official_bert import cli
from official_bert.checkpoints import numbered, tf1
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling.finetuning import SequenceClassifier
from official_bert.options import RunClassifier
from official_bert.tasks import documents, glue
from official_bert.training import finetune

WORDS = ["good", "fine", "nice", "bad", "poor", "sad", "film", "a", "the", "is"]
CONFIG = {
    "vocab_size": 20,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}


def sentences(number, seed):
    """Returns texts of one telling word among others, and what it tells."""
    random = np.random.RandomState(seed)
    for _ in range(number):
        telling = random.randint(6)
        words = [WORDS[6 + i] for i in random.randint(0, 4, random.randint(24))]
        words.insert(random.randint(len(words) + 1), WORDS[telling])
        yield " ".join(words), int(telling < 3)


@pytest.fixture
def folder(tmp_path):
    """SST-2's files with films of our own, a vocabulary and a config."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (tmp_path / "vocab.txt").write_text("\n".join(special + WORDS) + "\n")
    (tmp_path / "bert_config.json").write_text(json.dumps(CONFIG))
    data = tmp_path / "SST-2"
    data.mkdir()
    for split, number in (("train", 160), ("dev", 50)):
        rows = [f"{a}\t{b}" for a, b in sentences(number, number)]
        text = "\n".join(["sentence\tlabel", *rows]) + "\n"
        (data / f"{split}.tsv").write_text(text)
    rows = [f"{i}\t{a}" for i, (a, _) in enumerate(sentences(30, 30))]
    (data / "test.tsv").write_text("\n".join(["index\tsentence", *rows]))
    return tmp_path


def run(folder, output="out", **changes):
    run_classifier.main(
        RunClassifier(
            **{
                "task_name": "SST-2",
                "data_dir": str(folder / "SST-2"),
                "bert_config_file": str(folder / "bert_config.json"),
                "vocab_file": str(folder / "vocab.txt"),
                "output_dir": str(folder / output),
                "max_seq_length": 32,
                "train_batch_size": 16,
                "num_train_epochs": 2.0,
                "learning_rate": 1e-2,
                "save_checkpoints_steps": 8,
                **changes,
            }
        )
    )
    return folder / output


def weights(folder):
    prefix = numbered.latest(str(folder))
    reader = tf.train.load_checkpoint(prefix)
    return {
        name: reader.get_tensor(name)
        for name in reader.get_variable_to_shape_map()
    }


def read_json(path):
    return json.loads(path.read_text())


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
    right = [label for _, label in sentences(30, 30)]
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


def told_again(*arguments):
    values = flags.FlagValues()
    cli.define_flags(RunClassifier, values)
    values(["run_classifier.py", *arguments])
    return cli.options_from_flags(RunClassifier, values)


def test_nothing_has_to_be_told_twice(folder):
    output = run(
        folder,
        do_train=True,
        do_predict=True,
        plots=True,
        long_document="head_tail",
        max_seq_length=12,
        num_train_epochs=1.0,
    )
    before = (output / "test_results.tsv").read_bytes()
    (output / "test_results.tsv").unlink()
    # The output folder is enough, wherever the first files have gone.
    (folder / "vocab.txt").unlink()
    (folder / "bert_config.json").unlink()
    again = told_again("--do_predict", f"--output_dir={output}")
    assert again.long_document == "head_tail"
    assert not again.plots  # What a run does is its own.
    assert again.max_seq_length == 12
    assert not again.do_train
    run_classifier.main(again)
    assert (output / "test_results.tsv").read_bytes() == before
    longer = told_again(
        *("--do_predict", f"--output_dir={output}", "--max_seq_length=32"),
    )
    assert longer.max_seq_length == 32


def test_training_is_told_all(folder):
    output = run(folder, do_train=True, num_train_epochs=0.1)
    with pytest.raises(InputError, match="--bert_config_file must be given"):
        told_again("--do_train", f"--output_dir={output}")
    with pytest.raises(InputError, match="--bert_config_file must be given"):
        told_again("--do_predict", f"--output_dir={folder / 'new'}")


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
@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_a_run_goes_on_where_it_stopped(folder, pad_to):
    kept = {"keep_checkpoint_max": 9, "pad_to": pad_to}
    whole = run(folder, "whole", do_train=True, **kept)
    resumed = run(folder, "resumed", do_train=True, **kept)
    for name in ("16", "20"):
        for path in resumed.glob(f"model.ckpt-{name}.*"):
            path.unlink()
    (resumed / "checkpoint").unlink()
    run(folder, "resumed", do_train=True, **kept)
    assert set(weights(whole)) == set(weights(resumed))
    for name, array in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], array, name)


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
def test_two_devices_end_like_one(folder):
    """Dropout apart, whose masks differ from device to device."""
    config = {**CONFIG, "hidden_dropout_prob": 0.0}
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
            learning_rate=1e-9,
        )
        for name in ("none", "mirrored")
    ]
    one, two = (np.loadtxt(f / "test_results.tsv") for f in found)
    np.testing.assert_allclose(one, two, atol=1e-5)
    one, two = (read_json(f / "eval_results.json") for f in found)
    assert one["confusion_matrix"] == two["confusion_matrix"]
    assert one["eval_loss"] == pytest.approx(two["eval_loss"], rel=1e-4)


def test_starts_from_a_pretrained_checkpoint(folder):
    model = SequenceClassifier(BertConfig.from_dict(CONFIG), 2)
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
    with pytest.raises(InputError, match="--eval_batch_size must be a multip"):
        run(folder, do_eval=True, **odd)
    with pytest.raises(InputError, match="a model is needed"):
        run(folder, do_predict=True, **odd)


BAD = {
    "an unknown label": (
        "dev",
        "sentence\tlabel\ngood\t2\n",
        "dev.tsv:2: the label must be one of 0, 1",
    ),
    "a short row": (
        "dev",
        "sentence\tlabel\ngood\n",
        "dev.tsv:2: a line must have at least 2",
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
    with pytest.raises(InputError, match="at least one step"):
        run(folder, do_train=True, num_train_epochs=0.01)
    with pytest.raises(InputError, match="layers from 0 to 1"):
        run(folder, do_train=True, freeze="0-2")
    with pytest.raises(InputError, match="needs --eval_every"):
        run(folder, do_train=True, early_stopping=2)
    with pytest.raises(InputError, match="a model is needed"):
        run(folder, do_eval=True)


@pytest.mark.parametrize(
    "changes",
    [{"num_train_epochs": 2.0}, {"num_train_epochs": 3.0, "early_stopping": 1}],
)
def test_a_signal_while_the_last_model_is_measured_ends_the_run(
    folder, monkeypatch, changes
):
    """Nothing is evaluated or predicted any more; all is saved."""
    measured = []

    def evaluate(run, forward, *, in_the_end):
        measured.append(in_the_end)
        if len(measured) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)  # A thread notes it.
        return {"accuracy": 0.5}

    monkeypatch.setattr(finetune, "_evaluate", evaluate)
    modes = {"do_train": True, "do_eval": True, "do_predict": True}
    with pytest.raises(SystemExit) as ended:
        run(folder, eval_every=10, **modes, **changes)
    assert ended.value.code == 0
    assert measured == [False, False]
    assert weights(folder / "out")["global_step"] == 20


@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_training_goes_on_with_smaller_batches(folder, pad_to):
    """As it must where memory did not suffice."""
    kept = {"do_train": True, "pad_to": pad_to, "save_checkpoints_steps": 3}
    run(folder, "out", train_batch_size=8, num_train_epochs=1.0, **kept)
    again = run(folder, "out", train_batch_size=3, num_train_epochs=1.0, **kept)
    assert weights(again)["global_step"] == 160 // 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_file": "other.txt"}, "other.txt: must be the vocabulary of"),
        ({"do_lower_case": False}, "whose `do_lower_case` is True"),
    ],
)
def test_what_was_trained_is_used_as_it_was(folder, changes, message):
    """Weights alone would not tell, and what lies beside them is replaced."""
    output = run(folder, "out", do_train=True, num_train_epochs=1.0)
    pieces = (output / "vocab.txt").read_text()
    (folder / "other.txt").write_text("\n".join(pieces.split()[::-1]) + "\n")
    if "vocab_file" in changes:
        changes = {"vocab_file": str(folder / changes["vocab_file"])}
    for mode in ("do_train", "do_eval"):
        with pytest.raises(InputError, match=message):
            run(folder, "out", **{mode: True}, **changes)
    assert (output / "vocab.txt").read_text() == pieces


def test_training_goes_on_with_the_same_metric(folder):
    """CoLA and SST-2 have the same labels, but not the same best model."""
    trained = glue.make(glue.TASKS["cola"], "", documents.TRUNCATE_TAIL)
    (folder / "out").mkdir()
    text = json.dumps({**trained.to_json(), "do_lower_case": True})
    (folder / "out" / "task.json").write_text(text)
    with pytest.raises(InputError, match="whose `metric` is 'matthews'"):
        run(folder, do_train=True)
    with pytest.raises(InputError, match="a model is needed"):
        run(folder, do_predict=True)


@pytest.mark.slow
def test_training_goes_on_with_evaluations_on_the_way(folder):
    """Without, it would train on, and then use the best of the earlier run."""
    flags = {"do_train": True, "num_train_epochs": 0.5}
    output = run(folder, **flags, eval_every=2)
    with pytest.raises(InputError, match=r"--eval_every must .*/best'.*=0"):
        run(folder, do_train=True)
    assert weights(output)["global_step"] == 5
    # What is not trained uses it.
    run(folder, do_eval=True)
    shutil.rmtree(output / "best")
    run(folder, do_train=True, num_train_epochs=0.6)
    assert weights(output)["global_step"] == 6


def test_results_of_other_data_do_not_stay(folder):
    """The right answers of other test data may have been known."""
    output = run(folder, do_train=True, num_train_epochs=0.1)
    (output / "predict_results.json").write_text("{}")
    run(folder, do_predict=True)
    assert (output / "SST-2.tsv").exists()
    assert not (output / "predict_results.json").exists()


def test_a_folder_holds_one_task(folder):
    run(folder, do_train=True, num_train_epochs=0.1)
    (folder / "SST-2").rename(folder / "RTE")
    text = "index\ta\tb\tlabel\n1\tgood\tbad\tentailment\n"
    (folder / "RTE" / "dev.tsv").write_text(text)
    with pytest.raises(InputError, match=r"whose `labels` is \['0', '1'\]"):
        run(
            folder,
            do_eval=True,
            task_name="RTE",
            data_dir=str(folder / "RTE"),
        )
