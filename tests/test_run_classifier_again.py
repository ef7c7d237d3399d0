"""run_classifier.py in the output directory of an earlier run."""

import json
import os
import shutil
import signal
import time

import pytest
from support import review_runs
from support.review_runs import assert_same_weights, run, weights

from official_bert.errors import InputError
from official_bert.tasks import glue
from official_bert.training import evaluate


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory with data and, in `out`, a run of 5 steps."""
    folder = review_runs.write(tmp_path_factory.mktemp("reviews"))
    run(folder, do_train=True, num_train_epochs=0.5)
    return folder


@pytest.fixture
def folder(data, tmp_path):
    """A copy of `data`."""
    return shutil.copytree(data, tmp_path, dirs_exist_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_run(
    folder, pad_to
):
    flags = {"do_train": True, "keep_checkpoint_max": 9, "pad_to": pad_to}
    whole = run(folder, "whole", **flags)
    resumed = shutil.copytree(whole, folder / "resumed")
    for path in [*resumed.glob("model.ckpt-[12]*"), resumed / "checkpoint"]:
        path.unlink()
    run(folder, "resumed", **flags)
    assert_same_weights(whole, resumed)


@pytest.mark.parametrize(
    "changes",
    [{"num_train_epochs": 2.0}, {"num_train_epochs": 3.0, "early_stopping": 1}],
)
def test_a_signal_during_the_last_evaluation_ends_the_run(
    folder, monkeypatch, changes
):
    record_dirs = []

    def evaluate_model(*_, record_dir=None):
        record_dirs.append(record_dir)
        if len(record_dirs) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)  # A thread notes it.
        return {"accuracy": 0.5}

    monkeypatch.setattr(evaluate, "evaluate", evaluate_model)
    modes = dict.fromkeys(("do_train", "do_eval", "do_predict"), True)
    with pytest.raises(SystemExit, match=r"^0$"):
        run(folder, eval_every=10, **modes, **changes)
    assert record_dirs == [None, None]
    assert weights(folder / "out")["global_step"] == 20


@pytest.mark.parametrize("pad_to", ["max", "bucket"])
def test_a_run_resumes_with_smaller_batches(folder, pad_to):
    """As it must if memory did not suffice."""
    flags = {"train_batch_size": 3, "num_train_epochs": 0.5}
    output = run(folder, do_train=True, pad_to=pad_to, **flags)
    assert weights(output)["global_step"] == 160 // 3 // 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_file": "other.txt"}, r"other\.txt"),
        ({"do_lower_case": False}, "`do_lower_case`.*False"),
        ({"task_name": "RTE", "data_dir": "RTE"}, r"`labels` \['0', '1'\]"),
    ],
)
def test_a_model_is_used_as_it_was_trained(
    folder, monkeypatch, changes, message
):
    """The weights fit, so only the files beside them can tell."""
    monkeypatch.chdir(folder)
    vocab = (folder / "out" / "vocab.txt").read_text()
    (folder / "other.txt").write_text("\n".join(vocab.split()[::-1]) + "\n")
    (folder / "RTE").mkdir()
    text = "index\ta\tb\tlabel\n1\tgood\tbad\tentailment\n"
    (folder / "RTE" / "dev.tsv").write_text(text)
    with pytest.raises(InputError, match=message):
        run(folder, do_eval=True, **changes)
    assert (folder / "out" / "vocab.txt").read_text() == vocab


def test_training_with_another_metric_is_an_error(folder):
    """CoLA and SST-2 have the same labels, but not the same best model."""
    trained = glue.make_task(glue.TASKS["cola"], "")
    (folder / "cola").mkdir()
    text = json.dumps({**trained.to_json(), "do_lower_case": True})
    (folder / "cola" / "task.json").write_text(text)
    with pytest.raises(InputError, match="`metric` 'matthews'"):
        run(folder, "cola", do_train=True)
    with pytest.raises(InputError, match="--init_checkpoint"):
        run(folder, "cola", do_predict=True)


@pytest.mark.slow
def test_resuming_without_eval_every_is_an_error_if_there_is_a_best_model(
    folder,
):
    """It would train, and then use the best model of the earlier run."""
    flags = {"do_train": True, "num_train_epochs": 0.5, "eval_every": 2}
    output = run(folder, "best", **flags)
    with pytest.raises(InputError, match=r"--eval_every .*/best'"):
        run(folder, "best", do_train=True)
    assert weights(output)["global_step"] == 5
    run(folder, "best", do_eval=True)
    shutil.rmtree(output / "best")
    run(folder, "best", do_train=True, num_train_epochs=0.6)
    assert weights(output)["global_step"] == 6


def test_a_checkpoint_is_evaluated_once(folder, monkeypatch):
    """Also if a run was killed before it could evaluate one."""
    evaluated = []

    def evaluate_model(*_, **__):
        evaluated.append(int(weights(folder / "new")["global_step"]))
        return {"accuracy": 0.5}

    monkeypatch.setattr(evaluate, "evaluate", evaluate_model)
    changes = {"do_train": True, "eval_every": 5, "save_checkpoints_steps": 5}
    run(folder, "new", num_train_epochs=1.0, **changes)
    run(folder, "new", num_train_epochs=1.5, **changes)
    history = folder / "new" / "eval_history.jsonl"
    *lines, _ = history.read_text().splitlines(keepends=True)
    history.write_text("".join(lines))
    run(folder, "new", num_train_epochs=2.0, **changes)
    assert evaluated == [5, 10, 15, 15, 20]
    history.write_text("".join(lines) + "[\n")
    message = r"eval_history\.jsonl:3: .* Remove the file to forget"
    with pytest.raises(InputError, match=message):
        run(folder, "new", num_train_epochs=2.5, **changes)


def test_metrics_of_other_test_data_are_removed(folder):
    """The labels of an earlier run's test data may have been known."""
    (folder / "out" / "predict_results.json").write_text("{}")
    output = run(folder, do_predict=True)
    assert (output / "SST-2.tsv").exists()
    assert not (output / "predict_results.json").exists()
