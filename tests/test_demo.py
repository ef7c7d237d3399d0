"""The demo runs all of its steps, and skips those that are done."""

import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import pytest

import demo
from official_bert.errors import InputError
from official_bert.options import Demo

SMALL = {
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_seq_length": 32,
    "max_predictions_per_seq": 5,
    "vocab_size": 2000,
    "dupe_factor": 1,
    "train_batch_size": 8,
    "num_train_steps": 9,
    "num_train_epochs": 0.01,
}


def test_every_step_runs_an_existing_command():
    root = pathlib.Path(demo.ROOT)
    for step in demo.steps(Demo()):
        assert (root / step.command[0]).is_file()
        assert step.result.startswith("demo/")


@pytest.mark.slow
def test_demo_reports_accuracies_and_skips_finished_steps(tmp_path, capfd):
    options = Demo(output_dir=str(tmp_path / "demo"), **SMALL)
    demo.main(options)
    report = (tmp_path / "demo" / "report.txt").read_text()
    assert report in capfd.readouterr().out
    rows = ["  this model", "before training", "always 'the', NotNext"]
    for row in (*rows, "from this model", "from random weights"):
        (line,) = (line for line in report.splitlines() if row in line)
        assert line.count("%") == 2
    # Half of the pairs are right.
    assert re.search(r"  always '(yes' +50.0% +66.7|no' +50.0% +0.0)%", report)
    for question in (*demo.SENTENCES, *map("  ".join, demo.PAIRS)):
        _, answer = report.split(f"\n{question}\n    ")
        assert re.match(r"\S+ \d+%", answer)

    demo.main(options)
    shown = capfd.readouterr().out
    assert shown.count("already done") == len(demo.steps(options))
    assert report in shown

    with pytest.raises(InputError, match="demo_options"):
        demo.main(dataclasses.replace(options, num_train_steps=10))

    (tmp_path / "demo" / "held_out.tfrecord").unlink()
    demo.main(options)
    shown = capfd.readouterr().out
    assert shown.count("already done") == 3


SLOW = "import time; print(0, flush=True); time.sleep(60)"
SAVING = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + SLOW
)


@pytest.mark.parametrize("code", [SLOW, SAVING])
def test_stopped_demo_stops_its_command_and_runs_no_further_step(code):
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE
    )
    process.stdout.read(1)  # Its signal handlers are set.
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert demo.wait_for(process) == -signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    process.stdout.close()


def test_step_without_result_ends_the_demo(tmp_path, monkeypatch):
    def stopped(process):
        process.kill()
        process.wait()
        return 0

    monkeypatch.setattr(demo, "wait_for", stopped)
    step = demo.Step("Ask", str(tmp_path / "none"), ["predict.py"])
    with pytest.raises(SystemExit, match="stopped"):
        demo.run(step)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output_dir": "de mo [1]"}, "de mo "),
        ({"finetuning_learning_rate": -1.0}, "--finetuning_learning_rate=-1"),
        ({"max_seq_length": 600}, "--max_seq_length=600"),
        ({"hidden_size": 30}, "num_attention_heads=4.*30"),
    ],
)
def test_invalid_options_of_later_steps_are_an_error_at_the_start(
    changes, message
):
    with pytest.raises(InputError, match=message):
        Demo(**changes)
