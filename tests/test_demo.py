"""The demo's own parts; all of it, small, in a slow test."""

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


def test_every_step_is_a_command_there_is():
    root = pathlib.Path(demo.ROOT)
    for step in demo.steps(Demo()):
        assert (root / step.command[0]).is_file()
        assert step.result.startswith("demo/")


@pytest.mark.slow
def test_runs_through_and_reuses_what_is_there(tmp_path, capfd):
    options = Demo(output_dir=str(tmp_path / "demo"), **SMALL)
    demo.main(options)
    report = (tmp_path / "demo" / "report.txt").read_text()
    assert report in capfd.readouterr().out
    for row in (
        "  this model",
        "before training",
        "always 'the', NotNext",
        "from this model",
        "from random weights",
    ):
        (line,) = (x for x in report.splitlines() if row in x)
        assert line.count("%") == 2
    # Half of the pairs are right.
    assert re.search(r"  always '(yes' +50.0% +66.7|no' +50.0% +0.0)%", report)
    for question in (*demo.SENTENCES, *map("  ".join, demo.PAIRS)):
        _, answer = report.split(f"\n{question}\n    ")
        assert re.match(r"\S+ \d+%", answer)

    demo.main(options)
    shown = capfd.readouterr().out
    assert shown.count("done before") == len(demo.steps(options))
    assert report in shown

    with pytest.raises(InputError, match="must be the options of this run"):
        demo.main(dataclasses.replace(options, num_train_steps=10))

    (tmp_path / "demo" / "held_out.tfrecord").unlink()
    demo.main(options)
    shown = capfd.readouterr().out
    assert shown.count("done before") == 3


SLOW = "import time; print(0, flush=True); time.sleep(60)"
SAVING = (
    "import signal, sys, time\n"
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n" + SLOW
)


@pytest.mark.parametrize("code", [SLOW, SAVING])
def test_a_stopped_demo_stops_its_command_and_goes_no_further(code):
    """Whether the command calls what it saved a success or not."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE
    )
    process.stdout.read(1)  # It hears signals now.
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
    assert demo.wait_for(process) == -signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    process.stdout.close()


def test_a_command_that_left_nothing_was_stopped(tmp_path, monkeypatch):
    """As training is that saved on the way and calls that a success."""

    def stopped(process):
        process.kill()
        process.wait()
        return 0

    monkeypatch.setattr(demo, "wait_for", stopped)
    step = demo.Step("Ask", str(tmp_path / "none"), ["predict.py"])
    with pytest.raises(SystemExit, match="Stopped on the way"):
        demo.run(step)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output_dir": "de mo [1]"}, "de mo "),
        ({"finetuning_learning_rate": -1.0}, "--finetuning_learning_rate=-1"),
        ({"max_seq_length": 600}, "--max_seq_length=600"),
        ({"hidden_size": 30}, "hidden_size=30"),
    ],
)
def test_what_later_steps_would_refuse_is_refused_at_once(changes, message):
    with pytest.raises(InputError, match=message):
        Demo(**changes)
