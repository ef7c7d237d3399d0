"""Runs in a folder that an earlier run left: what they keep, and refuse."""

import json
import os
import shutil
import signal
import time

import numpy as np
import pytest
from support import review_runs
from support.review_runs import run, told_again, weights

import run_classifier
from official_bert.errors import InputError
from official_bert.tasks import glue
from official_bert.training import evaluate


@pytest.fixture
def folder(tmp_path):
    return review_runs.write(tmp_path)


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
    with pytest.raises(InputError, match="--bert_config_file is required"):
        told_again("--do_train", f"--output_dir={output}")
    with pytest.raises(InputError, match="--bert_config_file is required"):
        told_again("--do_predict", f"--output_dir={folder / 'new'}")


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


@pytest.mark.parametrize(
    "changes",
    [{"num_train_epochs": 2.0}, {"num_train_epochs": 3.0, "early_stopping": 1}],
)
def test_a_signal_while_the_last_model_is_measured_ends_the_run(
    folder, monkeypatch, changes
):
    """Nothing is evaluated or predicted any more; all is saved."""
    measured = []

    def evaluate_model(*args, record_dir=None):
        measured.append(record_dir is not None)
        if len(measured) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)  # A thread notes it.
        return {"accuracy": 0.5}

    monkeypatch.setattr(evaluate, "evaluate", evaluate_model)
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
        ({"vocab_file": "other.txt"}, r"other\.txt: "),
        ({"do_lower_case": False}, "`do_lower_case` True"),
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
    trained = glue.make_task(glue.TASKS["cola"], "")
    (folder / "out").mkdir()
    text = json.dumps({**trained.to_json(), "do_lower_case": True})
    (folder / "out" / "task.json").write_text(text)
    with pytest.raises(InputError, match=r"`metric` .matthews."):
        run(folder, do_train=True)
    with pytest.raises(InputError, match="--init_checkpoint"):
        run(folder, do_predict=True)


@pytest.mark.slow
def test_training_goes_on_with_evaluations_on_the_way(folder):
    """Without, it would train on, and then use the best of the earlier run."""
    flags = {"do_train": True, "num_train_epochs": 0.5}
    output = run(folder, **flags, eval_every=2)
    with pytest.raises(InputError, match=r"--eval_every .*best"):
        run(folder, do_train=True)
    assert weights(output)["global_step"] == 5
    # What is not trained uses it.
    run(folder, do_eval=True)
    shutil.rmtree(output / "best")
    run(folder, do_train=True, num_train_epochs=0.6)
    assert weights(output)["global_step"] == 6


def test_what_was_measured_is_not_measured_again(folder, monkeypatch):
    """A run that was killed before it could measure does so, and no other."""
    measured = []

    def evaluate_model(*args, **named):
        measured.append(int(weights(folder / "out")["global_step"]))
        return {"accuracy": 0.5}

    monkeypatch.setattr(evaluate, "evaluate", evaluate_model)
    changes = {"do_train": True, "eval_every": 5, "save_checkpoints_steps": 5}
    output = run(folder, num_train_epochs=1.0, **changes)
    run(folder, num_train_epochs=1.5, **changes)
    history = output / "eval_history.jsonl"
    lines = history.read_text().splitlines()
    history.write_text("\n".join(lines[:-1]) + "\n")
    run(folder, num_train_epochs=2.0, **changes)
    assert measured == [5, 10, 15, 15, 20]


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
    with pytest.raises(InputError, match=r"`labels` \['0', '1'\]"):
        run(
            folder,
            do_eval=True,
            task_name="RTE",
            data_dir=str(folder / "RTE"),
        )
