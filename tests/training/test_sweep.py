"""Sweeps: which runs are started, skipped and written to the table.

In most tests, a short program takes the place of `run_classifier.py`.
"""

import dataclasses
import json
import pathlib
import signal

import numpy as np
import pytest
from support import ROOT, command_lines, review_runs, write_json
from support.processes import run_python

from official_bert import tasks
from official_bert.errors import InputError
from official_bert.io import processes
from official_bert.options import RunClassifier, RunClassifierWithTfhub
from official_bert.runs import checkpoints
from official_bert.training import sweep

# Writes its flags beside itself. What it does then is the code of a test.
RUN = """
import json, os, pathlib, signal, sys

flags = dict(flag.removeprefix("--").split("=", 1) for flag in sys.argv[1:]
             if "=" in flag)
output, seed = pathlib.Path(flags["output_dir"]), int(flags["seed"])
with open(f"{os.path.dirname(__file__)}/runs.txt", "a") as file:
    print(json.dumps(sys.argv[1:]), file=file)

def write_results(accuracy):
    output.mkdir(parents=True, exist_ok=True)
    results = json.dumps({"accuracy": accuracy})
    (output / "eval_results.json").write_text(results)

"""


@pytest.fixture
def options(tmp_path):
    """Options of a sweep of 12 runs on the files of SST-2."""
    flags = review_runs.flags(review_runs.write(tmp_path))
    del flags["learning_rate"], flags["train_batch_size"]
    values = "learning_rate=5e-5,3e-5;train_batch_size=16,32;seed=1..3"
    return RunClassifier(**flags, do_train=True, sweep=values)


@pytest.fixture
def run_code(tmp_path, monkeypatch):
    """Sets the code of the runs; returns a function that returns their flags.

    Its result is a list of lists of flags, in the order of the runs.
    """
    program, started_runs = tmp_path / "run.py", tmp_path / "runs.txt"

    def start_command(name, flags):
        assert name.startswith("run_classifier")
        return processes.start(str(program), *flags)

    def started_flags():
        if not started_runs.exists():
            return []
        return list(map(json.loads, started_runs.read_text().splitlines()))

    def use(code="write_results(0.5)"):
        program.write_text(RUN + code)
        return started_flags

    monkeypatch.setattr(processes, "start_command", start_command)
    return use


def run(options):
    return sweep.run(tasks.get(options), options)


def write_file(folder, name, text):
    path = pathlib.Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    (path / name).write_text(text)
    return path


def write_results(folder, **results):
    path = pathlib.Path(folder) / "eval_results.json"
    write_json(path, {"accuracy": 0.5, **results})
    return path.parent


def write_train_options(options, **changes):
    """Writes what a run with these options writes at its start."""
    text = dataclasses.replace(options, sweep="", **changes).to_json()
    output_dir = changes.get("output_dir", options.output_dir)
    return write_file(output_dir, "train_options.json", text)


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
    assert list(sweep.combinations(options.replace(sweep=text))) == [
        {"pad_to": pad_to, "seed": seed, **others}
        for pad_to in ("max", "bucket")
        for seed in (1, 2, 3)
    ]
    # Values in quotes may contain separators.
    text = 'class_weights="a=2,b;c=3",balanced,"x=1";seed="1..2"'
    assert list(sweep.combinations(options.replace(sweep=text))) == [
        {"class_weights": value, "seed": seed}
        for value in ("a=2,b;c=3", "balanced", "x=1")
        for seed in (1, 2)
    ]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('class_weights="a=2,b=3', "lacks a closing double quote"),
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
        options.replace(sweep=wrong).resolve()


def test_values_and_data_are_checked_before_the_first_run(
    tmp_path, options, run_code
):
    started_flags = run_code()
    with pytest.raises(InputError, match="--learning_rate=-"):
        run(options.replace(sweep="learning_rate=5e-5,-1"))
    (tmp_path / "SST-2" / "dev.tsv").write_text("sentence\tlabel\na\tmaybe\n")
    with pytest.raises(InputError, match=r"dev.tsv:2.*maybe"):
        run(options)
    assert not started_flags()


def test_flags_of_a_run_give_the_options_of_its_setting(options, run_code):
    started_flags = run_code()
    changes = {"warmup_proportion": 0.25, "freeze": "embeddings"}
    options = options.replace(sweep="seed=3;pad_to=bucket", **changes)
    run(options)
    [flags] = started_flags()
    directory = f"{options.output_dir}/seed=3,pad_to=bucket"
    setting = {"seed": 3, "pad_to": "bucket", "output_dir": directory}
    expected = options.replace(**setting, sweep="", do_eval=True)
    assert command_lines.parse(RunClassifier, " ".join(flags)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_sweep_resumes_and_aggregates_over_seeds(
    options, run_code, capsys, number
):
    started_flags = run_code(
        f"""
accuracy = 0.5 + seed / 100
if flags["learning_rate"] == "3e-05":  # The best run, but not on average.
    accuracy = 0.9 if seed == 1 else 0.1
write_results(accuracy)
if len(list(output.parent.glob("*/eval_results.json"))) == 5:
    os.kill(os.getppid(), {number})
"""
    )
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        run(options)
    assert len(started_flags()) == 5
    best = f"{options.output_dir}/learning_rate=5e-05,train_batch_size=16"
    assert run(options) == f"{best},seed=3"
    assert f"--model_dir={best},seed=3 " in capsys.readouterr().out
    directories = {flag for flags in started_flags() for flag in flags}
    directories = {f for f in directories if f.startswith("--output_dir")}
    assert len(started_flags()) == len(directories) == 2 * 2 * 3
    (header, *lines), entries = read_table(options)
    assert header[:3] == ["learning_rate", "train_batch_size", "best accuracy"]
    assert header[3:] == ["mean", "deviation", "runs"]
    # Accuracies of 0.51, 0.52 and 0.53.
    assert lines[0] == ["5e-05", "16", "0.5300", "0.5200", "0.0100", "3"]
    best = [line[:3] for line in lines[2:]]
    assert best == [["3e-05", size, "0.9000"] for size in ("16", "32")]
    assert len(entries) == 12


@pytest.mark.slow
def test_failed_runs_are_listed_at_the_end_and_repeated(options, run_code):
    started_flags = run_code(
        """
if flags["learning_rate"] == "5e-05" and flags["train_batch_size"] == "16":
    if seed == 1:
        sys.exit("run_classifier.py: error: The loss must be finite.")
    if seed == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    sys.exit(143)  # As if it had saved a checkpoint after a signal.
write_results(seed / 100)
"""
    )
    with pytest.raises(InputError, match=r"^3 of 12 runs failed") as raised:
        run(options)
    failed = f"  {options.output_dir}/learning_rate=5e-05,train_batch_size=16"
    killed = "killed by SIGKILL, possibly because memory ran out"
    assert str(raised.value).splitlines()[1:4] == [
        f"{failed},seed=1: exit status 1",
        f"{failed},seed=2: {killed}",
        f"{failed},seed=3: stopped before its end",
    ]
    assert len(started_flags()) == 12
    (_, *lines), entries = read_table(options)
    assert len(entries) == 9
    for entry in entries:
        seed = entry["setting"]["seed"]
        assert entry["results"]["accuracy"] == seed / 100
    assert [line[-1] for line in lines] == list("333")
    run_code()
    run(options)
    assert len(started_flags()) == 12 + 3
    assert len(read_table(options)[1]) == 12


def test_finished_runs_get_only_missing_files(tmp_path, options, run_code):
    started_flags = run_code("pass")
    line = "\t".join(["x"] * 8 + ["good", "bad", "neutral"])
    for split in ("train", "dev_matched", "dev_mismatched"):
        write_file(tmp_path, f"{split}.tsv", f"header\n{line}\n")
    for split in ("test_matched", "test_mismatched"):
        write_file(tmp_path, f"{split}.tsv", f"header\n{line}\n")
    data = {"task_name": "mnli", "data_dir": str(tmp_path)}
    options = options.replace(
        sweep="seed=1..4", do_predict=True, plots=True, **data
    )
    files = {
        1: "eval_results.txt",
        2: "test_results.tsv test_results_mismatched.tsv",
        # Tasks without probabilities write these.
        3: "test_predictions.txt test_mismatched_predictions.txt",
        4: "test_results.tsv",  # Ended between two test sets.
    }
    folders = {n: f"{options.output_dir}/seed={n}" for n in files}
    scores = dict.fromkeys(("precision", "recall", "f1", "support"), 1.0)
    matrix = {"per_class": {"0": scores}, "confusion_matrix": [[1]]}
    for seed, names in files.items():
        write_results(folders[seed], **matrix)
        for name in names.split():
            write_file(folders[seed], name, "")
    run(options)
    modes = {"--nodo_train", "--nodo_eval", "--do_predict", "--plots"}
    for seed, flags in zip((1, 4), started_flags(), strict=True):
        assert {*modes, f"--output_dir={folders[seed]}"} < {*flags}
    plotted = tmp_path.glob("out/*/confusion_matrix.png")
    assert {path.parent.name for path in plotted} == {"seed=2", "seed=3"}


@pytest.mark.parametrize("is_finished", [True, False])
def test_run_with_other_flags_is_an_early_error(options, run_code, is_finished):
    started_flags = run_code()
    name = "learning_rate=3e-05,train_batch_size=32,seed=3"
    setting = {"learning_rate": 3e-5, "train_batch_size": 32, "seed": 3}
    setting["output_dir"] = f"{options.output_dir}/{name}"
    directory = write_train_options(options, **setting, num_train_epochs=1.0)
    if is_finished:
        write_results(directory)
    message = f"(?s)^{directory} .*--num_train_epochs: 1.0, now 2.0"
    with pytest.raises(InputError, match=message):
        run(options)
    assert not started_flags()


def test_finished_run_on_other_data_is_an_error(options, run_code):
    started_flags = run_code()
    options = dataclasses.replace(options, sweep="seed=1")
    finished = write_results(f"{options.output_dir}/seed=1")
    arrays = {"global_step": np.int64(1)}
    checkpoints.save(str(finished), 1, arrays, None, keep=1)
    record = {"fingerprints": {"training data": ["train.tsv: 5 bytes"]}}
    write_file(finished, "train_options.json", json.dumps(record))
    message = "with other .* data:\n  training data: train.tsv: 5 bytes"
    with pytest.raises(InputError, match=message):
        run(options)
    assert not started_flags()


def test_moved_run_of_another_version_is_resumed(options, run_code):
    started_flags = run_code()
    options = dataclasses.replace(options, sweep="seed=1")
    folder = f"{options.output_dir}/seed=1"
    path = write_train_options(options, seed=1, do_eval=True, output_dir=folder)
    written = json.loads((path / "train_options.json").read_text())
    del written["options"]["keep_checkpoint_max"]
    written["options"] |= {"output_dir": "elsewhere", "old_flag": 3}
    written["options"]["train_file"] = "moved.csv"
    write_file(folder, "train_options.json", json.dumps(written))
    run(options)
    assert len(started_flags()) == 1


def test_flags_that_a_module_sets_are_not_compared(options, run_code):
    started_flags = run_code()
    options = RunClassifierWithTfhub(
        task_name="SST-2",
        do_train=True,
        sweep="seed=1",
        data_dir=options.data_dir,
        output_dir=options.output_dir,
        bert_hub_module_handle="https://tfhub.dev/x",
    )
    record = {"seed": 1, "output_dir": f"{options.output_dir}/seed=1"}
    record |= {"vocab_file": "vocab.txt", "do_lower_case": False}
    write_train_options(options, do_eval=True, **record)
    run(options)
    assert len(started_flags()) == 1
    with pytest.raises(InputError, match=r"warmup_proportion: 0\.1, now 0\.2"):
        run(dataclasses.replace(options, warmup_proportion=0.2))


@pytest.mark.nightly
def test_diverged_run_fails_and_the_others_are_in_the_table(tmp_path):
    review_runs.write(tmp_path)
    flags = {"do_train": True, "sweep": "learning_rate=1e30,1e-2"}
    options = RunClassifier(**review_runs.flags(tmp_path, **flags))
    command = [ROOT / "run_classifier.py", *options.flags()]
    done = run_python(*command, status=1, timeout=200)
    assert "The loss must be finite" in done.stderr
    assert "1 of 2 runs failed" in done.stderr
    assert f"{tmp_path}/out/learning_rate=1e+30: exit status 1" in done.stderr
    assert "accuracy" in done.stdout
    assert f"--model_dir={tmp_path}/out/learning_rate=0.01 " in done.stdout
    (_, *lines), _ = read_table(options)
    assert [line[0] for line in lines] == ["0.01"]
    assert lines[0][3:] == ["-", "1"]  # One run has no deviation.
