import re

import pytest
from support import ROOT, tiny
from support.processes import run_python

from official_bert.tasks.classification import ClassificationTask

COMMANDS = [*sorted(ROOT.glob("*.py")), *sorted((ROOT / "data").glob("*.py"))]

# Packages that take a tenth of a second or more to import.
SLOW = {
    *("apache_beam", "keras", "keras_hub", "matplotlib", "numpy"),
    *("pandas", "scipy", "sklearn", "tensorflow", "tensorflow_hub", "torch"),
    *("tensorflow_text", "tf_keras", "tokenizers", "transformers"),
}


def run(command, *arguments):
    """Runs a command; returns its output and the packages it imported."""
    done = run_python("-X", "importtime", command, *arguments)
    pattern = r"^import time: .* \| +(\S+)$"
    lines = re.findall(pattern, done.stderr, re.MULTILINE)
    return done.stdout, {name.partition(".")[0] for name in lines}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda path: path.stem)
def test_help_fits_two_screens_and_needs_no_slow_imports(command):
    output, imported = run(command, "--help")
    assert imported & SLOW == set()
    assert "--" in output
    lines = output.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 100


def test_slow_import_is_found(tmp_path):
    command = tmp_path / "slow.py"
    command.write_text("import numpy.linalg")
    assert run(command)[1] & SLOW == {"numpy"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run_classifier.py --train_file=t.csv", "--text_column must be given"),
        (
            "run_classifier.py --train_file=tags.txt --dev_file=bad.txt "
            "--task_name=ner",
            "bad.txt:2: all lines must have 2 columns",
        ),
        ("run_squad.py --do_predict --predict_file=bad.jsonl", "bad.jsonl:"),
        ("predict.py --input_file=bad.jsonl", "bad.jsonl:2: must be a text"),
    ],
)
def test_errors_in_the_data_do_not_wait_for_tensorflow(tmp_path, line, message):
    command, *flags = line.split()
    model = "--output_dir=o --model=bert_tiny_demo"
    if command == "predict.py":
        model = "--model_dir=tuned"
    flags += model.split()
    (tmp_path / "t.csv").write_text("a,b\nthe cat,the dog\na b,c d\n")
    (tmp_path / "tags.txt").write_text("Ada B-X\nsees O\n\nBob B-X\n")
    (tmp_path / "bad.txt").write_text("Ada B-X\nsees\n")
    (tmp_path / "bad.jsonl").write_text('"good"\n7\n')
    task = ClassificationTask(labels=("no", "yes"))
    tiny.save_finetuned(tmp_path / "tuned", task)
    done = run_python(
        *("-X", "importtime", str(ROOT / command), *flags),
        cwd=tmp_path,
        status=1,
    )
    assert message in done.stderr
    assert not re.search(r"\| +(tensorflow|keras)$", done.stderr, re.MULTILINE)


@pytest.mark.slow
def test_commands_start_without_collections_or_packages_for_evaluation():
    code = """
import gc, os, sys
from official_bert.options import cli

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # As without --verbose.
before = gc.get_stats()[2]["collections"]
with cli.quiet_imports():
    import official_bert.inference.line_prediction
    import official_bert.training.finetuning_run
found = {"matplotlib", "scipy.stats", "sklearn"} & set(sys.modules)
assert not found, found
assert gc.get_stats()[2]["collections"] == before
assert gc.isenabled() and gc.get_freeze_count() > 100_000
import sklearn.metrics
"""
    run_python("-c", code)
