"""Cross-validation. The runs of the folds are functions in this process."""

import collections
import csv
import shlex
import types

import numpy as np
import pytest
from support import command_lines, tiny, write_json, write_json_lines
from support.run_outputs import read_json, read_json_lines

from official_bert import tasks
from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.inference.predictor import Predictor
from official_bert.io import processes
from official_bert.options import RunClassifier
from official_bert.tasks import calibration, detection
from official_bert.tasks.calibration import Calibration, Fitted

TAGS = {"good": "B-X", "bad": "B-Y"}


def write_data(folder, task_type):
    """Writes 30 rows, two of which have the same text, as `data.csv`."""
    texts = [f"it is {word} {n}" for n in range(15) for word in ("good", "bad")]
    texts[7] = texts[20]
    labels = ["+" if "good" in text else "-" for text in texts]
    labels[5] = "+"  # Wrong.
    if task_type == "regression":
        labels = [str(n / 4) for n in range(30)]
    elif task_type == "multilabel":
        labels = [["", "a", "b", "a,b"][n % 4] for n in range(30)]
    with open(folder / "data.csv", "w", newline="") as file:
        rows = [("note", "text", "label"), ("", "", "")]
        rows += zip("x" * 30, texts, labels, strict=True)
        csv.writer(file).writerows(rows)
    return texts, labels


def parse(folder, *flags, name="data.csv"):
    given = f"--train_file={folder / name}", "--text_column=text"
    return tiny.parse(folder, *given, *flags)


@pytest.mark.slow
@pytest.mark.parametrize(
    "task_type",
    [
        "classification",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in ("multilabel", "regression")
        ),
    ],
)
def test_each_row_is_answered_by_the_model_that_was_not_trained_on_it(
    tmp_path, started_runs, task_type, monkeypatch
):
    texts, labels = write_data(tmp_path, task_type)
    fitted = []

    def fit(targets, scores, labels):
        fitted.append(np.round(scores, 4).tolist())
        temperature = 2.0 if len(scores) == 30 else 1.0
        return Fitted(Calibration(temperature), {})

    monkeypatch.setattr(calibration, "fit", fit)
    flags = ["--folds=2", f"--task_type={task_type}", "--num_train_epochs=2"]
    options = parse(tmp_path, *flags, "--train_batch_size=8")
    output = tmp_path / "out"
    with monkeypatch.context() as patch:
        start = processes.start_command

        def stop_at_second(name, flags):
            if started_runs:
                raise KeyboardInterrupt
            return start(name, flags)

        patch.setattr(processes, "start_command", stop_at_second)
        with pytest.raises(KeyboardInterrupt):
            run_classifier.main(options)
    run_classifier.main(options)
    assert [run.fold for run in started_runs] == ["1of2", "2of2"]

    rows = read_json_lines(output / "out_of_fold.jsonl")
    assert [row["row"] for row in rows] == [*range(1, 31)]
    assert [row["input"] for row in rows] == [
        {"note": "x", "text": text, "label": label}
        for text, label in zip(texts, labels, strict=True)
    ]
    assert rows[7]["fold"] == rows[20]["fold"]
    for fold in (1, 2):
        of_fold = [row for row in rows if row["fold"] == fold]
        directory = output / f"fold={fold}of2"
        assert [row["input"]["text"] for row in of_fold] == [
            row["text"] for row in read_json_lines(directory / "dev.jsonl")
        ]
        answers = Predictor.from_dir(str(directory))(
            [row["input"]["text"] for row in of_fold]
        )
        for row, answer in zip(of_fold, answers, strict=True):
            for name, value in answer.items():
                assert row[name] == pytest.approx(value, abs=1e-5)
    results = [
        read_json(output / f"fold={n}of2" / "eval_results.json") for n in (1, 2)
    ]
    lines = (output / "folds.tsv").read_text().splitlines()
    header, *table = [line.split("\t") for line in lines]
    assert header == ["metric", "mean", "deviation", "1of2", "2of2"]
    assert "eval_loss" in [name for name, *_ in table]
    for name, *cells in table:
        values = [result[name] for result in results]
        expected = [np.mean(values), np.std(values, ddof=1), *values]
        assert cells == [f"{number:.4f}" for number in expected]
    # The last model is trained on all rows, and calibrated on their answers.
    if task_type != "regression":
        found = [[*row["probabilities"].values()] for row in rows]
        np.testing.assert_allclose(fitted[-1], found, atol=1e-4)
        stored = read_json(output / "task.json")["calibration"]
        assert stored == {"temperature": 2.0, "thresholds": []}
    assert read_json(output / "train.tf_record.json")["num_records"] == 30
    names = {path.name for path in output.iterdir()}
    assert "task.json" in names
    assert not {"dev.jsonl", "eval_results.json"} & names
    assert ("suspect_labels.tsv" in names) == (task_type != "regression")
    if task_type == "classification":
        assert_suspects(tmp_path, rows)


def assert_suspects(folder, rows):
    """Checks that the lowest probabilities of labels are listed first."""
    by_probability = sorted(
        (row["probabilities"][row["input"]["label"]], row["row"], row)
        for row in rows
        if row["label"] != row["input"]["label"]
    )
    with open(folder / "out" / "suspect_labels.tsv", newline="") as file:
        found = list(csv.DictReader(file, delimiter="\t"))
    assert found == [
        {
            "file": str(folder / "data.csv"),
            "line": str(number + 2),  # After the header and an empty row.
            "label": row["input"]["label"],
            "prediction": row["label"],
            "label_probability": f"{probability:.6f}",
            "text": row["input"]["text"],
        }
        for probability, number, row in by_probability
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("without_learning")
def test_folds_of_tags_have_a_table_of_metrics(tmp_path, started_runs):
    words = [f"it is {w} {n}".split() for n in range(8) for w in TAGS]
    tags = [[TAGS.get(word, "O") for word in text] for text in words]
    rows = zip(words, tags, strict=True)
    rows = [{"tokens": text, "tags": of_text} for text, of_text in rows]
    write_json_lines(tmp_path / "data.jsonl", rows)
    flags = ["--task_name=ner", "--text_column=tokens", "--folds=2"]
    flags += ["--train_batch_size=8", "--max_seq_length=16"]
    run_classifier.main(parse(tmp_path, *flags, name="data.jsonl"))
    output = tmp_path / "out"
    text = (output / "folds.tsv").read_text()
    assert "\nf1\t" in text
    assert [run.fold for run in started_runs] == ["1of2", "2of2"]
    assert not (output / "out_of_fold.jsonl").exists()
    assert read_json(output / "train.tf_record.json")["num_records"] == 16


def test_folds_divide_the_rows(tmp_path):
    texts, _ = write_data(tmp_path, "classification")
    held_out, sizes = [], []
    for fold in (1, 2, 3):
        options = parse(tmp_path, f"--fold={fold}of3", "--dev_share=0.5")
        data = tasks.get(*detection.detect_omitted(options)).data
        dev = [example.guid for example in data.read("dev")]
        train = [example.guid for example in data.read("train")]
        assert len({*dev, *train}) == len(dev) + len(train) == len(texts)
        held_out += dev
        sizes.append(collections.Counter(e.label for e in data.read("dev")))
    assert len({*held_out}) == len(held_out) == len(texts)
    for label in "+-":
        counts = [size[label] for size in sizes]
        assert max(counts) - min(counts) <= 1


def test_sweep_aggregates_over_folds_which_also_predict(tmp_path, monkeypatch):
    write_data(tmp_path, "classification")
    actions = []

    def start_command(name, flags):
        options = command_lines.parse(RunClassifier, shlex.join(flags))
        actions.append((options.do_train, options.do_predict))
        path = tmp_path / "out" / options.output_dir / "eval_results.json"
        write_json(path, {"accuracy": 0.5 if options.fold == "1of2" else 0.7})
        return types.SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr(processes, "start_command", start_command)
    sweep = "--sweep=learning_rate=1e-4,3e-4;fold=1of2,2of2"
    run_classifier.main(parse(tmp_path, sweep))
    lines = (tmp_path / "out" / "sweep.tsv").read_text().splitlines()
    assert [line.split("\t")[2:] for line in lines[1:]] == [
        ["0.6000", "0.1414", "2"],
        ["0.6000", "0.1414", "2"],
    ]
    test_file = f"--test_file={tmp_path / 'data.csv'}"
    run_classifier.main(parse(tmp_path, sweep, test_file))
    assert actions == [(True, False)] * 4 + [(False, True)] * 4


@pytest.mark.parametrize(
    ("name", "value"), [("dev_share", 0.1), ("num_train_epochs", 9.0)]
)
def test_other_run_in_the_output_directory_is_an_early_error(
    tmp_path, started_runs, name, value
):
    write_data(tmp_path, "classification")
    options = parse(tmp_path, "--folds=2")
    record = {"options": {name: value, "folds": 3}}
    write_json(tmp_path / "out" / "train_options.json", record)
    message = f"other flags .*\n  --{name}: {value}"
    with pytest.raises(InputError, match=message):
        run_classifier.main(options)
    assert not started_runs


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--folds=1", "--folds=1 must be at least 2"),
        ("--folds=99", "different texts, 29. Received: 99"),
        ("--folds=3 --dev_share=0.2", "--dev_share=0.2 conflicts with --folds"),
        ("--folds=3 --dev_file=data.csv", "--folds=3 conflicts with --dev_fi"),
        ("--folds=3 --do_eval", "--folds=3 conflicts with --do_eval"),
        ("--folds=3 --eval_every=5", "--folds=3 conflicts with --eval_every"),
        ("--folds=3 --sweep=seed=1..2", "--folds=3 conflicts with --sweep"),
        ("--folds=3 --nodo_train --do_predict", "--folds=3 needs --do_train"),
        ("--fold=3", "--fold=3 must be .* such as 2of5"),
        ("--fold=0of3", "--fold=0of3 must be .* such as 2of5"),
        ("--fold=4of3", "--fold=4of3 must be .* such as 2of5"),
    ],
)
def test_malformed_folds_are_an_error(tmp_path, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path, "classification")
    with pytest.raises(InputError, match=message):
        run_classifier.main(parse(tmp_path, *line.split()))
