"""Sweeps: which runs are started, skipped and written to the table."""

import dataclasses
import json
import pathlib
import types

import keras
import numpy as np
import pytest
from support import command_lines, tiny

from official_bert import plots, tasks
from official_bert.errors import InputError
from official_bert.options import RunClassifier, RunClassifierWithTfhub
from official_bert.runs import checkpoints as run_directory
from official_bert.training import finetune, loop, reporting, sweep

TASK = types.SimpleNamespace(
    input_ending="tsv",
    main_metric="accuracy",
    data=types.SimpleNamespace(
        splits=lambda mode: [mode, f"{mode}_mismatched"],
        path=lambda split: f"{split}.tsv",
    ),
)


@pytest.fixture
def options(tmp_path):
    config = {"vocab_size": 9, "max_position_embeddings": 128}
    tiny.write_model_files(tmp_path, config, ["a"])
    return RunClassifier(
        **command_lines.files_of_run(tmp_path, "out"),
        task_name="mrpc",
        data_dir=str(tmp_path),
        do_train=True,
        sweep="learning_rate=5e-5,3e-5;train_batch_size=16,32;seed=1..3",
    )


@pytest.fixture
def runs(monkeypatch):
    """The options of the runs that were started; none of them trains."""
    started = []
    monkeypatch.setattr(finetune, "run", lambda _, run: started.append(run))
    # No model is built here, and clearing can take seconds.
    monkeypatch.setattr(keras.backend, "clear_session", lambda: None)
    return started


def write_file(options, name, text):
    directory = pathlib.Path(options.output_dir)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text)
    return directory


def write_results(options, accuracy=0.5):
    text = json.dumps({"accuracy": accuracy})
    return write_file(options, "eval_results.json", text)


def write_train_options(options, **changes):
    """Writes what a run with these options writes at its start."""
    text = dataclasses.replace(options, **changes).to_json()
    return write_file(options, "train_options.json", text)


def read_table(options):
    """Returns the cells of each line of `sweep.tsv`, and `sweep.json`."""
    directory = pathlib.Path(options.output_dir)
    lines = (directory / "sweep.tsv").read_text().splitlines()
    entries = json.loads((directory / "sweep.json").read_text())
    return [line.split("\t") for line in lines], entries


def test_combinations_parse_values_by_the_type_of_the_flag(options):
    text = "pad_to=max,bucket;do_predict=true;learning_rate=5e-5;seed=1..3"
    text += ";bilstm_size=4"  # Of type int | None.
    others = {"do_predict": True, "bilstm_size": 4, "learning_rate": 5e-5}
    options = dataclasses.replace(options, sweep=text)
    assert list(sweep.combinations(options)) == [
        {"pad_to": pad_to, "seed": seed, **others}
        for pad_to in ("max", "bucket")
        for seed in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("rate=1", "'rate=1'"),
        ("seed", "'seed'"),
        ("output_dir=a,b", "'output_dir=a,b'"),
        ("do_eval=true,false", "'do_eval=true,false'"),
        ("model=a,b", " does not vary --model"),
        ("task_type=classification,multilabel", "'task_type="),
        ("task_name=csv,tsv", "'task_name=csv,tsv'"),
        ("seed=1,5..3", "`seed`.* '5..3'"),
        ("seed=a", "`seed` must be of type int"),
        ("learning_rate=1e", "`learning_rate` must be of type float"),
        ("do_predict=yes", "`do_predict` must be of type bool"),
        ("common=a,b", "'common=a,b' does not start with a flag"),
        ("seed=1;learning_rate=0;seed=2", "`seed` twice"),
        ("seed=1..3,2", "'seed=1..3,2'"),
        ("learning_rate=5e-5,0.00005", "'learning_rate=5e-5,0.00005'"),
    ],
)
def test_malformed_sweep_is_an_error(options, wrong, message):
    with pytest.raises(InputError, match=f"--sweep.*{message}"):
        dataclasses.replace(options, sweep=wrong)


def test_all_values_are_checked_before_the_first_run(options, runs):
    options = dataclasses.replace(options, sweep="learning_rate=5e-5,-1")
    with pytest.raises(InputError, match="--learning_rate=-"):
        sweep.run(TASK, options)
    assert not runs


def test_interrupted_sweep_resumes_and_aggregates_over_seeds(
    options, monkeypatch, runs
):
    def run(task, given):
        assert given.do_eval
        assert not given.sweep
        accuracy = 0.5 + given.seed / 100
        if given.learning_rate == 3e-5:  # The best run, but not on average.
            accuracy = 0.9 if given.seed == 1 else 0.1
        write_results(given, accuracy)
        runs.append(given.output_dir)
        if len(runs) == 5:
            raise KeyboardInterrupt

    best_runs = []
    monkeypatch.setattr(finetune, "run", run)
    monkeypatch.setattr(
        reporting, "print_next_command", lambda _, best: best_runs.append(best)
    )
    with pytest.raises(KeyboardInterrupt):
        sweep.run(TASK, options)
    sweep.run(TASK, options)
    assert [(r.learning_rate, r.seed) for r in best_runs] == [(5e-5, 3)]
    assert len(runs) == len(set(runs)) == 2 * 2 * 3
    (header, *lines), entries = read_table(options)
    assert header[:3] == ["learning_rate", "train_batch_size", "best accuracy"]
    assert header[3:] == ["mean", "deviation", "runs"]
    # Accuracies of 0.51, 0.52 and 0.53.
    assert lines[0] == ["5e-05", "16", "0.5300", "0.5200", "0.0100", "3"]
    best = [line[:3] for line in lines[2:]]
    assert best == [["3e-05", size, "0.9000"] for size in ("16", "32")]
    assert len(entries) == 12


def test_diverged_run_is_left_out_and_reported_at_the_end(
    options, monkeypatch, runs
):
    def run(task, given):
        if given.learning_rate == 5e-5 and given.seed == 2:
            raise loop.DivergedError("The loss must be finite. Received: nan.")
        write_results(given, given.seed / 100)

    monkeypatch.setattr(finetune, "run", run)
    message = r"2 of 12 .*\n  .*5e-05,train_batch_size=16,seed=2\n"
    with pytest.raises(InputError, match=message):
        sweep.run(TASK, options)
    (_, *lines), entries = read_table(options)
    assert len(entries) == 10
    for entry in entries:
        seed = entry["setting"]["seed"]
        assert entry["results"]["accuracy"] == seed / 100
    assert sorted(line[-1] for line in lines) == list("2233")


def test_finished_runs_get_only_missing_predictions_and_plots(
    options, monkeypatch, runs
):
    plotted = []
    monkeypatch.setattr(tasks, "get", lambda options: TASK)
    monkeypatch.setattr(plots, "write", plotted.append)
    options = dataclasses.replace(
        options, sweep="seed=1..4", do_predict=True, plots=True
    )
    files = {
        1: "eval_results.txt",
        2: "test_results.tsv test_results_mismatched.tsv",
        # Tasks without probabilities write these.
        3: "test_predictions.txt test_mismatched_predictions.txt",
        4: "test_results.tsv",  # Ended between two test sets.
    }
    for seed, names in files.items():
        directory = write_results(sweep._run_options({"seed": seed}, options))
        for name in names.split():
            (directory / name).touch()
    sweep.run(TASK, options)
    found = [(r.seed, r.do_train, r.do_eval, r.do_predict) for r in runs]
    assert found == [(seed, False, False, True) for seed in (1, 4)]
    assert [directory[-6:] for directory in plotted] == ["seed=2", "seed=3"]


@pytest.mark.parametrize("is_finished", [True, False])
def test_run_with_other_flags_is_an_error_before_the_first_run(
    options, runs, is_finished
):
    last = {"learning_rate": 3e-5, "train_batch_size": 32, "seed": 3}
    run_options = sweep._run_options(last, options)
    directory = write_train_options(run_options, num_train_epochs=1.0)
    if is_finished:
        write_results(run_options)
    message = f"(?s)^{directory} .*--num_train_epochs: 1.0, now 3.0"
    with pytest.raises(InputError, match=message):
        sweep.run(TASK, options)
    assert not runs


def test_finished_run_on_other_data_is_an_error(options, runs, monkeypatch):
    monkeypatch.setattr(tasks, "get", lambda _: TASK)
    [setting, *_] = sweep.combinations(options)
    finished = sweep._run_options(setting, options)
    write_results(finished)
    arrays = {"global_step": np.int64(1)}
    run_directory.save(finished.output_dir, 1, arrays, None, keep=1)
    record = {"fingerprints": {"training data": ["train.tsv: 5 bytes"]}}
    write_file(finished, "train_options.json", json.dumps(record))
    message = "with other .* data:\n  training data: train.tsv: 5 bytes"
    with pytest.raises(InputError, match=message):
        sweep.run(TASK, options)
    assert not runs


def test_run_of_another_version_in_a_moved_directory_is_resumed(options):
    path = write_train_options(options) / "train_options.json"
    written = json.loads(path.read_text())
    del written["options"]["keep_checkpoint_max"]
    written["options"] |= {"output_dir": "elsewhere", "old_flag": 3}
    path.write_text(json.dumps(written))
    sweep._require_same_run(options, TASK)


def test_flags_that_a_module_sets_are_not_compared(tmp_path):
    flags = {"data_dir": str(tmp_path), "output_dir": str(tmp_path / "out")}
    flags |= {"bert_hub_module_handle": "https://tfhub.dev/x"}
    options = RunClassifierWithTfhub(task_name="mrpc", do_train=True, **flags)
    write_train_options(options, vocab_file="vocab.txt", do_lower_case=False)
    sweep._require_same_run(options, TASK)
    with pytest.raises(InputError, match="--seed: 12345, now 3"):
        sweep._require_same_run(dataclasses.replace(options, seed=3), TASK)
