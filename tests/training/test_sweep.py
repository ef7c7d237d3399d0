"""Grids of runs: what is run, what is left alone, what is written."""

import dataclasses
import json
import pathlib
import statistics

import keras
import pytest

from official_bert import plots, tasks
from official_bert.errors import InputError
from official_bert.options import RunClassifier, RunClassifierWithTfhub
from official_bert.training import finetune, loop, sweep


class Task:
    main_metric = "accuracy"

    def splits(self, mode):
        return [mode, f"{mode}_mismatched"]


@pytest.fixture
def options(tmp_path):
    (tmp_path / "vocab.txt").write_text("a\n")
    config = {"vocab_size": 9, "max_position_embeddings": 128}
    (tmp_path / "bert_config.json").write_text(json.dumps(config))
    return RunClassifier(
        task_name="mrpc",
        data_dir=str(tmp_path),
        bert_config_file=str(tmp_path / "bert_config.json"),
        vocab_file=str(tmp_path / "vocab.txt"),
        output_dir=str(tmp_path / "out"),
        do_train=True,
        sweep="learning_rate=5e-5,3e-5;train_batch_size=16,32;seed=1..3",
    )


def test_all_combinations_are_run(options):
    found = list(sweep.combinations(options.sweep, options))
    assert len(found) == 2 * 2 * 3
    assert found[0] == {
        "learning_rate": 5e-5,
        "train_batch_size": 16,
        "seed": 1,
    }
    assert found[-1] == {
        "learning_rate": 3e-5,
        "train_batch_size": 32,
        "seed": 3,
    }
    assert list(sweep.combinations("pad_to=max,bucket", options)) == [
        {"pad_to": "max"},
        {"pad_to": "bucket"},
    ]
    assert list(sweep.combinations("do_predict=true", options)) == [
        {"do_predict": True}
    ]
    # A number that may also be left out.
    assert list(sweep.combinations("bilstm_size=0,4", options)) == [
        {"bilstm_size": 0},
        {"bilstm_size": 4},
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("rate=1", "begins with no flag"),
        ("seed", "begins with no flag"),
        ("output_dir=a,b", "begins with no flag"),
        ("do_eval=true,false", "begins with no flag"),
        ("seed=1,5..3", "a range of `seed` must go up.* '5..3'"),
        ("seed=a", "`seed` must be of type int"),
        ("learning_rate=1e", "`learning_rate` must be of type float"),
        ("do_predict=yes", "`do_predict` must be of type bool"),
        ("seed=1;learning_rate=0;seed=2", "a flag once.* `seed` twice"),
        ("task_type=classification,multilabel", "begins with no flag"),
        ("task_name=csv,tsv", "begins with no flag"),
        ("seed=1..3,2", "each value of a flag once.* 'seed=1..3,2'"),
        ("learning_rate=5e-5,0.00005", "each value of a flag once"),
    ],
)
def test_nonsense_is_refused(options, wrong, message):
    with pytest.raises(InputError, match=message):
        list(sweep.combinations(wrong, options))


def test_all_values_are_checked_before_the_first_run(options, monkeypatch):
    ran = []
    monkeypatch.setattr(finetune, "run", lambda *given: ran.append(given))
    options = dataclasses.replace(options, sweep="learning_rate=5e-5,-1")
    with pytest.raises(InputError, match="learning_rate must be at least 0"):
        sweep.run(Task(), options)
    assert not ran


@pytest.mark.slow
def test_the_table_is_over_seeds_and_runs_are_not_repeated(
    options, tmp_path, monkeypatch
):
    ran = []

    def run(task, given):
        assert given.do_eval
        assert not given.sweep
        ran.append(given.output_dir)
        score = given.learning_rate * 1e4 + given.seed / 100
        folder = tmp_path / given.output_dir
        folder.mkdir(parents=True)
        text = json.dumps({"accuracy": score})
        (folder / "eval_results.json").write_text(text)
        if len(ran) == 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(finetune, "run", run)
    with pytest.raises(KeyboardInterrupt):
        sweep.run(Task(), options)
    sweep.run(Task(), options)
    assert len(ran) == len(set(ran)) == 12
    header, *lines = (tmp_path / "out" / "sweep.tsv").read_text().splitlines()
    assert header.split("\t") == [
        "learning_rate",
        "train_batch_size",
        "best accuracy",
        "mean",
        "deviation",
        "runs",
    ]
    scores = [0.51, 0.52, 0.53]
    assert lines[0].split("\t") == [
        "5e-05",
        "16",
        "0.5300",
        "0.5200",
        f"{statistics.stdev(scores):.4f}",
        "3",
    ]
    assert len(lines) == 4
    assert lines[-1].startswith("3e-05")
    assert len(json.loads((tmp_path / "out" / "sweep.json").read_text())) == 12


def test_a_run_that_diverges_does_not_end_the_others(
    options, tmp_path, monkeypatch
):
    def run(task, given):
        if given.learning_rate == 5e-5 and given.seed == 2:
            raise loop.DivergedError("The loss must be finite. Received: nan.")
        folder = tmp_path / given.output_dir
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"accuracy": given.seed / 100})
        (folder / "eval_results.json").write_text(text)

    monkeypatch.setattr(finetune, "run", run)
    # Nothing is built here; after a thousand tests it takes two seconds.
    monkeypatch.setattr(keras.backend, "clear_session", lambda: None)
    message = r"losses in 2 of 12, .*\n  .*5e-05,train_batch_size=16,seed=2\n"
    with pytest.raises(InputError, match=message):
        sweep.run(Task(), options)
    found = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert len(found) == 10
    for one in found:
        assert one["results"]["accuracy"] == one["setting"]["seed"] / 100
    _, *lines = (tmp_path / "out" / "sweep.tsv").read_text().splitlines()
    assert sorted(line.split("\t")[-1] for line in lines) == list("2233")


def test_finished_runs_do_what_is_new(options, monkeypatch):
    """Once: here predictions, of which another kind of task leaves others."""
    ran, drawn = [], []
    monkeypatch.setattr(tasks, "get", lambda options: Task())
    monkeypatch.setattr(finetune, "run", lambda _, given: ran.append(given))
    monkeypatch.setattr(plots, "write", drawn.append)
    options = dataclasses.replace(
        options, sweep="seed=1..4", do_predict=True, plots=True
    )
    for seed, names in [
        (1, ["eval_results.txt"]),
        (2, ["test_results.tsv", "test_results_mismatched.tsv"]),
        (3, ["test_predictions.txt", "test_mismatched_predictions.txt"]),
        (4, ["test_results.tsv"]),  # It was ended in between.
    ]:
        its_options = sweep._options_of({"seed": seed}, options)
        folder = pathlib.Path(its_options.output_dir)
        folder.mkdir(parents=True)
        (folder / "eval_results.json").write_text('{"accuracy": 0.5}')
        for name in names:
            (folder / name).write_text("")
    sweep.run(Task(), options)
    assert [given.seed for given in ran] == [1, 4]
    for given in ran:
        assert given.do_predict
        assert not given.do_train
        assert not given.do_eval
    assert [folder[-6:] for folder in drawn] == ["seed=2", "seed=3"]


def leave(options, **changes):
    """Leaves what a run leaves of its flags when it begins to train."""
    folder = pathlib.Path(options.output_dir)
    folder.mkdir(parents=True)
    told = json.loads(dataclasses.replace(options, **changes).to_json("x"))
    (folder / "train_options.json").write_text(json.dumps(told))
    return folder, told


@pytest.mark.parametrize("has_ended", [True, False])
def test_a_folder_of_a_run_with_other_flags_is_refused(
    options, monkeypatch, has_ended
):
    """It is the last one: nothing runs before all have been looked at."""
    ran = []
    monkeypatch.setattr(finetune, "run", lambda *given: ran.append(given))
    setting = {"learning_rate": 3e-5, "train_batch_size": 32, "seed": 3}
    of_run = sweep._options_of(setting, options)
    folder, _ = leave(of_run, num_train_epochs=1.0)
    if has_ended:
        (folder / "eval_results.json").write_text('{"accuracy": 0.5}')
    with pytest.raises(InputError) as caught:
        sweep.run(Task(), options)
    message = str(caught.value)
    assert message.startswith(f"{folder}: ")
    assert "--num_train_epochs=3.0, and 1.0 in" in message
    assert "Choose another --output_dir" in message
    assert not ran


def test_a_folder_of_the_same_run_goes_on(options):
    """A flag of another version is none of ours; folders may move."""
    folder, told = leave(options)
    del told["options"]["keep_checkpoint_max"]
    told["options"] |= {"output_dir": "elsewhere", "old_flag": 3}
    (folder / "train_options.json").write_text(json.dumps(told))
    sweep._require_same_flags(options)


def test_what_a_module_brings_is_not_compared(tmp_path):
    options = RunClassifierWithTfhub(
        bert_hub_module_handle="https://tfhub.dev/x",
        task_name="mrpc",
        data_dir=str(tmp_path),
        output_dir=str(tmp_path / "out"),
        do_train=True,
    )
    leave(options, vocab_file="vocab.txt", do_lower_case=False)
    sweep._require_same_flags(options)
    options = dataclasses.replace(options, seed=3)
    with pytest.raises(InputError, match="--seed=3, and 12345 in"):
        sweep._require_same_flags(options)


def test_rows_are_ranked_by_their_means(tmp_path):
    results = [
        ({"learning_rate": rate, "seed": seed}, {"accuracy": score})
        for rate, seed, score in (
            *((1e-3, 1, 0.9), (1e-3, 2, 0.1)),
            *((2e-3, 1, 0.6), (2e-3, 2, 0.6)),
        )
    ]
    sweep._write(str(tmp_path), results, "accuracy")
    _, first, second = (tmp_path / "sweep.tsv").read_text().splitlines()
    assert first.split("\t")[:3] == ["0.002", "0.6000", "0.6000"]
    assert second.split("\t")[:3] == ["0.001", "0.9000", "0.5000"]
