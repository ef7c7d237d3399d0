"""Runs in the output directory of an earlier run resume or start over."""

import json
import os
import shutil
import signal
import time
import types

import pytest
from support import command_lines, pretraining_runs, review_runs, tiny
from support.conversions import change_json
from support.review_runs import run
from support.run_outputs import assert_same_weights, read_json, rewind, weights

from official_bert.commands import run_classifier
from official_bert.errors import InputError
from official_bert.options import RunClassifier
from official_bert.runs.directory import RunDirectory
from official_bert.runs.record import RunRecord, fingerprints_of
from official_bert.tasks import glue
from official_bert.training import evaluate, resuming

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A directory with data and, in `out`, a run of 5 steps."""
    folder = review_runs.write(tmp_path_factory.mktemp("reviews"))
    with pytest.MonkeyPatch.context() as patch:
        tiny.count_steps(patch)
        train(folder)
    return folder


@pytest.fixture
def folder(data, tmp_path):
    """A copy of `data`, at another path."""
    return shutil.copytree(data, tmp_path / "copy")


def train(folder, output="out", **changes):
    flags = {"do_train": True, "num_train_epochs": 0.5}
    return run(folder, output, **{**flags, **changes})


def contents(directory):
    """Returns {name: (bytes, time of writing)} of files except events."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in directory.iterdir()
        if path.is_file() and "tfevents" not in path.name
    }


@pytest.mark.parametrize(
    ("changes", "messages"),
    [
        # An error even if steps are left.
        ({"warmup_proportion": 0.2, "num_train_epochs": 2.0}, ["warmup_prop"]),
        (
            {"max_seq_length": 16, "optimizer": "lamb", "learning_rate": 1.0},
            [", now 1.0", "_seq_length: 32, now 16", "'adamw', now 'lamb'"],
        ),
        # These options may change as long as steps are left.
        (
            {"num_train_epochs": 0.4, "train_batch_size": 32, "seed": 7},
            ["5 of 4", "chs: 0.5, now 0.4", "12345, now 7", "size: 16, now 32"],
        ),
    ],
)
@pytest.mark.parametrize("eval_every", [0, 5])
def test_changed_options_that_a_resumed_run_cannot_apply_are_an_error(
    folder, changes, messages, eval_every
):
    changes = {**changes, "eval_every": eval_every}
    before = contents(folder / "out")
    with pytest.raises(InputError, match="--overwrite_output_dir") as raised:
        train(folder, do_eval=True, **changes)
    for message in messages:
        assert message in str(raised.value)
    assert contents(folder / "out") == before


def test_evaluation_needs_no_lock(folder):
    with RunDirectory(str(folder / "out")).lock():
        run(folder, do_eval=True)
        with pytest.raises(InputError, match="is in use by process"):
            train(folder)


def test_run_of_another_command_is_an_error(folder, tmp_path):
    change_json(folder / "out/train_options.json", command="run_squad.py")
    with pytest.raises(InputError, match=r"is a run of run_squad\.py\. Choose"):
        train(folder, num_train_epochs=1.0)
    line = f"--do_eval --output_dir={folder}/out"
    with pytest.raises(InputError, match=r"model, not a run of run_squad\.py"):
        command_lines.parse(RunClassifier, line)


@pytest.mark.parametrize(
    ("batch_size", "pad_to", "num_steps"), [(8, "max", 10), (3, "bucket", 26)]
)
@pytest.mark.usefixtures("without_learning")
def test_epochs_count_examples_if_the_batch_size_changes(
    folder, batch_size, pad_to, num_steps
):
    changes = {"train_batch_size": batch_size, "pad_to": pad_to}
    output = train(folder, num_train_epochs=1.0, **changes)
    state = read_json(output / f"model.ckpt-{5 + num_steps}.resume.json")
    assert state["examples_seen"] == 80 + num_steps * batch_size


def test_changed_training_data_and_weights_are_an_error(folder):
    path = folder / "SST-2" / "train.tsv"
    path.write_text(path.read_text().replace("good", "fine"))
    before = contents(folder / "out")
    checkpoint = str(folder / "out" / "model.ckpt-5")
    with pytest.raises(InputError) as raised:
        train(folder, init_checkpoint=checkpoint, num_train_epochs=2.0)
    assert "initial weights: none, now model.ckpt-5.index" in str(raised.value)
    line = r"data: train.tsv: \d+ bytes, SHA-256 (\w+), now .*SHA-256 (?!\1)"
    assert raised.match(line)
    assert contents(folder / "out") == before


@pytest.mark.usefixtures("without_learning")
def test_changed_evaluation_data_is_an_error(folder):
    train(folder, "new", eval_every=1, num_train_epochs=0.1)
    path = folder / "SST-2" / "dev.tsv"
    path.write_text(path.read_text().replace("good", "fine"))
    with pytest.raises(InputError, match=r"evaluation data: dev\.tsv: .* now"):
        train(folder, "new", eval_every=1, num_train_epochs=0.2)
    # Without --eval_every, the final evaluation is the only one.
    train(folder, do_eval=True)


def test_changed_hugging_face_weights_are_detected(tmp_path):
    (tmp_path / "config.json").touch()
    (tmp_path / "model.safetensors").write_bytes(b"new")
    options = types.SimpleNamespace(
        init_checkpoint=str(tmp_path), output_dir=f"{tmp_path}/out"
    )
    old = "model.safetensors: 3 bytes"
    record = RunRecord(None, {}, {"initial weights": [old]})
    [change] = record.changed_files(resuming.compared_files(options, {}))
    assert change.startswith(f"initial weights: {old}, now {old}, SHA-256 ")


def test_renamed_data_of_the_same_format_are_unchanged(tmp_path):
    for name in ("a.csv", "b.csv", "a.tsv"):
        (tmp_path / name).write_text("text,label\n")
    data = {"training data": [str(tmp_path / "a.csv")]}
    record = RunRecord(None, {}, fingerprints_of(data))
    for name, is_changed in (("b.csv", False), ("a.tsv", True)):
        renamed = {"training data": [str(tmp_path / name)]}
        assert bool(record.changed_files(renamed)) == is_changed


def test_finished_run_with_moved_files_is_unchanged(folder):
    before = contents(folder / "out")
    train(folder, eval_batch_size=3, plots=True)
    after = contents(folder / "out")
    assert {name: after[name] for name in before} == before


@pytest.mark.usefixtures("without_learning")
def test_finished_run_writes_files_that_were_removed(folder):
    before = contents(folder / "out")
    names = ("task.json", "vocab.txt", "train_options.json")
    for name in names:
        (folder / "out" / name).unlink()
    train(folder)
    after = contents(folder / "out")
    assert after["task.json"][0] == before["task.json"][0]
    assert after["vocab.txt"][0] == before["vocab.txt"][0]
    others = before.keys() - {*names}
    assert [after[n] for n in others] == [before[n] for n in others]
    run(folder, "out", do_train=False, do_eval=True)  # The record has flags.


def test_run_resumes_with_more_epochs_and_options_that_change_nothing(folder):
    parts = {"gradient_accumulation_steps": 2, "save_checkpoints_steps": 2}
    parts["distribution_strategy"] = "mirrored"
    train(folder, num_train_epochs=0.7, seed=7, **parts)
    assert weights(folder / "out")["global_step"] == 7
    options = read_json(folder / "out" / "train_options.json")["options"]
    assert options["num_train_epochs"] == 0.7
    assert options["seed"] == 12345  # The seed at the start of the run.


@pytest.mark.parametrize("version", ["2018", "without fingerprints"])
@pytest.mark.usefixtures("without_learning")
def test_runs_of_older_versions_resume(folder, version):
    output = folder / "out"
    if version == "2018":
        for path in [output / "vocab.txt", *output.glob("*.json")]:
            path.unlink()
    else:
        record = read_json(output / "train_options.json")
        del record["fingerprints"]
        del record["options"]["learning_rate"]
        (output / "train_options.json").write_text(json.dumps(record))
    train(folder, num_train_epochs=0.6, learning_rate=0.02)
    assert weights(output)["global_step"] == 6


def test_run_that_ended_before_its_first_step_starts_over(folder):
    """With other options, data, vocabulary and config."""
    output = folder / "out"
    rewind(output, 0)
    change_json(folder / "bert_config.json", hidden_size=8, vocab_size=16)
    words = (folder / "vocab.txt").read_text().split()
    (folder / "vocab.txt").write_text("\n".join([*words, "more"]))
    changes = {"learning_rate": 0.02, "seed": 2}
    expected = train(folder, "expected", **changes)
    assert_same_weights(train(folder, **changes), expected)


def test_overwriting_removes_all_files_of_a_run_and_no_others(folder):
    output = train(folder, do_eval=True, do_predict=True, eval_every=3)
    (output / "notes.txt").write_text("mine")
    (output / "best" / "other.txt").write_text("mine")
    (output / "train.csv").write_text("mine")
    changes = {"learning_rate": 0.02, "overwrite_output_dir": True}
    wrong_data = {**changes, "data_dir": str(folder)}
    with pytest.raises(InputError, match=r"train\.tsv"):
        train(folder, **wrong_data)
    assert weights(output)["global_step"] == 5
    train(folder, **changes)
    expected = train(folder, "expected", learning_rate=0.02)
    assert_same_weights(output, expected)
    added = {"notes.txt", "train.csv", "best", "eval", "eval.tf_record"}
    names = {path.name for path in output.iterdir() if "tfev" not in path.name}
    assert names - added - {"predict.tf_record"} == {
        path.name for path in expected.iterdir() if "tfev" not in path.name
    }
    assert os.listdir(output / "best") == ["other.txt"]
    assert len(list(output.glob("events*"))) == 1


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("vocab_file", "out/vocab.txt", r"--vocab_file=.*vocab\.txt"),
        ("init_checkpoint", "out/model.ckpt-5", "--init_checkpoint=.*-5"),
        ("init_checkpoint", "out", "--init_checkpoint=.*out "),
    ],
)
def test_overwriting_does_not_remove_inputs(folder, name, value, message):
    before = contents(folder / "out")
    changes = {name: str(folder / value), "overwrite_output_dir": True}
    with pytest.raises(InputError, match=message):
        train(folder, **changes)
    assert contents(folder / "out") == before


def test_overwriting_does_not_remove_one_of_several_inputs(folder):
    shutil.copy(folder / "SST-2" / "train.tsv", folder / "out" / "MRPC.tsv")
    line = " ".join(command_lines.flags_of_run(folder, "out"))
    line += f" --train_file={folder}/SST-2/train.tsv,{folder}/o*/M*.tsv"
    line += " --text_column=sentence --overwrite_output_dir"
    options = command_lines.parse(RunClassifier, line)
    with pytest.raises(InputError, match=r"out/MRPC\.tsv\. Choose another"):
        run_classifier.main(options)


@pytest.mark.usefixtures("without_learning")
def test_changing_the_held_out_examples_is_an_error(folder):
    line = " ".join(command_lines.flags_of_run(folder, "own"))
    line += f" --train_file={folder}/SST-2/train.tsv --max_seq_length=16"
    line += " --num_train_epochs=0.5"
    first, same_data, other_share, other_file = [
        command_lines.parse(RunClassifier, f"{line} {more}")
        for more in (
            "",
            "--eval_batch_size=4",
            "--dev_share=0.3",
            f"--dev_file={folder}/SST-2/dev.tsv",
        )
    ]
    run_classifier.main(first)
    with pytest.raises(InputError, match=r"--dev_share: 0\.1, now 0\.3"):
        run_classifier.main(other_share)
    with pytest.raises(InputError, match=r"--dev_file: None, now '.*dev\.tsv'"):
        run_classifier.main(other_file)
    run_classifier.main(same_data)


@pytest.mark.parametrize(
    "changes",
    [{"num_train_epochs": 0.2}, {"num_train_epochs": 0.5, "early_stopping": 1}],
)
@pytest.mark.usefixtures("without_learning")
def test_signal_in_the_last_evaluation_ends_a_run(folder, monkeypatch, changes):
    are_final = []

    def evaluate_model(*_, is_final):
        are_final.append(is_final)
        if len(are_final) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)  # A thread records the signal.
        return {"accuracy": 0.5}

    monkeypatch.setattr(evaluate, "evaluate", evaluate_model)
    modes = dict.fromkeys(("do_train", "do_eval", "do_predict"), True)
    with pytest.raises(SystemExit, match=r"^143$"):
        run(folder, "new", eval_every=1, **modes, **changes)
    assert are_final == [False, False]
    assert weights(folder / "new")["global_step"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_file": "other.txt"}, r"other\.txt"),
        ({"do_lower_case": False}, '"do_lower_case": false'),
        ({"strip_accents": "false"}, '"strip_accents": false'),
        ({"never_split": "good"}, "good"),
        ({"task_name": "RTE", "data_dir": "RTE"}, r"`labels` \['0', '1'\]"),
        ({"task_name": "WNLI", "data_dir": "RTE"}, "`is_pair` False"),
    ],
)
def test_vocabulary_casing_and_labels_must_be_those_of_training(
    folder, monkeypatch, changes, message
):
    """The weights fit, so only the other files show the difference."""
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
    trained = glue.make(RunClassifier(task_name="cola"))
    (folder / "cola").mkdir()
    text = json.dumps({**trained.to_json(), "do_lower_case": True})
    (folder / "cola" / "task.json").write_text(text)
    with pytest.raises(InputError, match="`metric` 'matthews'"):
        run(folder, "cola", do_train=True)
    with pytest.raises(InputError, match="--init_checkpoint"):
        run(folder, "cola", do_predict=True)


@pytest.mark.usefixtures("without_learning")
def test_resuming_without_eval_every_is_an_error_with_a_best_model(folder):
    """It would train, and then use the best model of the earlier run."""
    output = folder / "out"
    best = shutil.copytree(output, output / "best")
    with pytest.raises(InputError, match=r"--eval_every .*/best'"):
        train(folder, num_train_epochs=2.0)
    assert weights(output)["global_step"] == 5
    run(folder, do_eval=True)
    shutil.rmtree(best)
    train(folder, num_train_epochs=0.6)
    assert weights(output)["global_step"] == 6
    # The same if the run starts over, because its checkpoints are missing.
    shutil.copytree(output, best)
    for path in [output / "checkpoint", *output.glob("model.ckpt-*")]:
        path.unlink()
    with pytest.raises(InputError, match=r"--eval_every .*/best'"):
        train(folder)


def test_metrics_of_other_test_data_are_removed(folder):
    """The labels of an earlier run's test data may have been known."""
    (folder / "out" / "predict_results.json").write_text("{}")
    output = run(folder, do_predict=True)
    assert (output / "SST-2.tsv").exists()
    assert not (output / "predict_results.json").exists()


def test_pretraining_on_other_data_or_for_another_loss_is_an_error(tmp_path):
    folder = pretraining_runs.write(tmp_path)

    def train(output="out", **changes):
        return pretraining_runs.run(folder, output, do_train=True, **changes)

    output = train()
    before = contents(output)
    records = folder / "train.tfrecord"
    records.rename(folder / "moved.tfrecord")
    shutil.copy(folder / "moved.tfrecord", records)
    train()
    assert contents(output) == before
    two_files = f"{records},{folder}/moved.tfrecord"
    changes = {"input_file": two_files, "num_train_steps": 8, "nsp": "none"}
    message = r"(?s)--nsp: 'next', now 'none'.*data: none, now moved\.tfrecord"
    with pytest.raises(InputError, match=message):
        train(**changes)
    assert contents(output) == before
    train(overwrite_output_dir=True, **changes)
    assert_same_weights(output, train("new", **changes))


@pytest.mark.usefixtures("without_learning")
def test_resumed_training_removes_the_calibration_of_earlier_weights(folder):
    path = folder / "out" / "task.json"
    content = read_json(path)
    content["calibration"]["temperature"] = 2.0
    path.write_text(json.dumps(content))
    train(folder)  # No step is left.
    assert read_json(path) == content
    train(folder, num_train_epochs=0.6)
    assert read_json(path)["calibration"]["temperature"] == 1.0
