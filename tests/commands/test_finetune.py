"""`official_bert.finetune` does what `run_classifier.py` does."""

import contextlib
import csv
import gc
import json
import pathlib
import random
import signal
import sys
import tempfile

import keras
import numpy as np
import polars
import pytest
from support import review_runs
from support.frames import PandasFrame
from support.processes import run_python
from support.run_outputs import read_json

import official_bert
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.training import loop

ROWS = [
    {"review": text, "stars": 4 + label}
    for text, label in review_runs.sentences(60, 1)
]
ROWS[7]["review"] = None
UNLABELED = [*ROWS, {"review": "good film", "stars": float("nan")}]
TAGGED = [{"review": text, "stars": ["x", "y"]} for text in ("good", "fine")]
TAGGED.append({"review": "bad", "stars": float("nan")})
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}
FRAME = polars.DataFrame(COLUMNS)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of a model, and an empty directory for temporary files."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    return review_runs.write(tmp_path)


def flags(folder):
    return {
        "bert_config_file": folder / "bert_config.json",
        "vocab_file": folder / "vocab.txt",
        "num_train_epochs": 2,
        "learning_rate": 1e-3,
        "dev_share": 0.25,
    }


def finetune(folder, data, **options):
    columns = {"text": "review", "label": "stars"}
    return official_bert.finetune(
        None, data, **{**columns, **flags(folder), **options}
    )


def temporary(folder):
    return [*(folder / "temporary").iterdir()]


def file_names(output):
    names = {path.name for path in output.rglob("*.*")}
    return {name for name in names if "tfevents" not in name}


@contextlib.contextmanager
def keras_settings(dtype):
    """Other defaults of Keras, as a user's program may have them."""
    keras.config.set_floatx(dtype)
    keras.config.set_dtype_policy(dtype)
    try:
        yield
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")


def write_table(folder):
    path = folder / "reviews.csv"
    with open(path, "w", newline="") as file:
        table = csv.DictWriter(file, ROWS[0])  # Writes None as an empty cell.
        table.writeheader()
        table.writerows(ROWS)
    return path


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_rows_and_frames_give_the_results_of_the_command(folder):
    path = write_table(folder)
    given = {"train_file": path, "output_dir": folder / "out", **flags(folder)}
    of_command = {
        name: str(value) if isinstance(value, pathlib.Path) else value
        for name, value in given.items()
    }
    run_classifier.main(
        RunClassifier(
            **of_command, text_a_column="review", label_column="stars"
        )
    )
    expected = read_json(folder / "out" / "eval_results.json")
    assert expected["per_class"].keys() == {"4", "5"}
    for number, data in enumerate((PandasFrame(COLUMNS), iter(ROWS))):
        output = folder / f"out{number}"
        with keras_settings("float64"):
            predictor = finetune(folder, data, output_dir=output)
        assert predictor.output_dir == str(output)
        assert read_json(output / "eval_results.json") == expected
        assert file_names(output) == file_names(folder / "out")
        records = [d / "train.tf_record" for d in (output, folder / "out")]
        assert records[0].read_bytes() == records[1].read_bytes()
    [answer] = predictor(["good film"])
    assert answer["label"] in ("4", "5")
    assert type(answer["probabilities"]["4"]) is float
    # Resumes, although the temporary file of the rows has another path.
    again = finetune(folder, ROWS, output_dir=folder / "out1")
    assert again(["good film"]) == [answer]


@pytest.mark.nightly
def test_first_call_of_a_process_keeps_no_predictor_alive(folder):
    code = """
import gc, json, os, sys
import official_bert

rows, flags = map(json.loads, sys.argv[1:])
predictor = official_bert.finetune(None, rows, **flags)
assert os.path.exists(directory := predictor.output_dir)
del predictor
gc.collect()
assert not os.path.exists(directory)
"""
    given = json.dumps(flags(folder), default=str)
    run_python("-c", code, json.dumps(ROWS), given)


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_call_leaves_no_directory_and_no_seed_behind(folder, capsys):
    dev = polars.DataFrame(COLUMNS)[:20]
    path = write_table(folder)
    random.seed(1)
    np.random.seed(1)
    drawn = random.random(), np.random.rand()
    random.seed(1)
    np.random.seed(1)
    predictor = finetune(folder, path, dev_file=dev, dev_share=None)
    assert (random.random(), np.random.rand()) == drawn
    directory = pathlib.Path(predictor.output_dir)
    assert directory.is_relative_to(temporary(folder)[0])
    scores = read_json(directory / "eval_results.json")["per_class"].values()
    assert sum(score["support"] for score in scores) == 20
    printed = capsys.readouterr().out
    assert "predict.py" not in printed
    assert printed.endswith("To keep the model, pass output_dir.\n")
    del predictor
    gc.collect()
    assert temporary(folder) == []


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_runs_of_a_sweep_are_repeated_for_other_data_only(folder, started_runs):
    options = {"sweep": "seed=1,2", "dev_share": None}
    options["output_dir"] = folder / "out"
    for _ in range(2):
        finetune(folder, ROWS, dev_file=ROWS[:20], **options)
        assert len(started_runs) == 2
    finetune(folder, ROWS, dev_file=ROWS[:20], test_file=ROWS[:3], **options)
    assert [run.do_train for run in started_runs] == [True] * 2 + [False] * 2
    with pytest.raises(InputError, match=r"data: dev_file.* now dev_file"):
        finetune(folder, ROWS, dev_file=ROWS[:19], **options)


@pytest.mark.slow
def test_ctrl_c_is_a_keyboard_interrupt(folder, monkeypatch):
    # The loop exits so after it has saved a checkpoint.
    status = 128 + signal.SIGINT
    monkeypatch.setattr(loop, "train", lambda *_: sys.exit(status))
    with pytest.raises(KeyboardInterrupt):
        finetune(folder, ROWS)
    assert temporary(folder) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 1e-3}, "no flag --lr. Did you mean --learning_rate?"),
        ({"epochs": 1}, "Did you mean --num_train_epochs?"),
        ({"text_column": "review"}, "--text_column is given twice"),
        ({"text_a_column": "review"}, "--text_a_column is given twice"),
        ({"train_file": "a.csv"}, "--train_file is given twice"),
        ({"num_train_epochs": "3"}, "=3 must be a number, not str"),
        ({"label": "star"}, "--label_column.*Did you mean 'stars'?"),
        ({"learning_rate": np.float64("nan")}, "=nan must be finite"),
        ({"label": float("nan")}, "^--label_column=nan must be text"),
        ({"label": 7}, "must have a column '7'"),
        ({"label": [0, 1]}, "must have a column '0'"),
        ({"data": UNLABELED}, "^train_file.jsonl:61: .*'stars' must not be em"),
        ({"data": []}, "^train_file.jsonl: must contain examples"),
        ({"data": ["a film.", "bad"]}, r"list of dicts .*'a film\.'"),
        ({"data": [pathlib.Path("a.csv"), "b.csv"]}, "'a.csv' does not exist"),
        ({"data": 7}, "`data` must be a pandas or polars DataFrame"),
        ({"dev_file": {"review": []}}, "`dev_file` must be a pandas or"),
        ({"unlabeled_file": FRAME}, "^--unlabeled_file.* needs --teacher"),
        ({"label_file": FRAME}, "^--label_file must not be a data frame"),
        ({"label": ["review", "stars"]}, "^--text_column=review must differ"),
        ({"label": FRAME["stars"]}, r"^--label_column=\[4, .* must be text"),
        (
            {"data": TAGGED},
            r"^train_file.jsonl:3: .*'stars' must be a list .*N",
        ),
    ],
)
def test_errors_are_those_of_the_command(folder, options, message):
    options = {"data": ROWS, **options}
    with pytest.raises(InputError, match=message):
        finetune(folder, **options)
    assert temporary(folder) == []
