import errno
import fcntl
import os

import pytest
import tensorflow as tf
from support import write_json

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.runs.directory import RunDirectory
from official_bert.runs.record import RunRecord, fingerprints_of
from official_bert.tasks import glue


def lock(directory):
    return RunDirectory(str(directory)).lock()


def test_lock_of_another_run_is_an_error_until_that_run_ends(tmp_path):
    with open(tmp_path / "run.lock", "w") as other_lock:
        fcntl.flock(other_lock, fcntl.LOCK_EX)
        print("process 4711 on host elsewhere", file=other_lock, flush=True)
        message = f"--output_dir={tmp_path} .* process 4711 on host elsewhere"
        with pytest.raises(InputError, match=message), lock(tmp_path):
            pass
    # As if that run was killed.
    assert (tmp_path / "run.lock").exists()
    with lock(tmp_path):
        text = (tmp_path / "run.lock").read_text()
        assert text.startswith(f"process {os.getpid()} on host ")
    assert not os.listdir(tmp_path)  # The directory existed, so it stays.


def test_new_directory_is_removed_if_it_is_empty_at_the_end(tmp_path):
    new = tmp_path / "new"
    with lock(new):
        assert os.listdir(new) == ["run.lock"]
    assert not new.exists()
    with lock(new):
        (new / "model.ckpt-0.index").touch()
    assert os.listdir(new) == ["model.ckpt-0.index"]


def test_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, caplog):
    def fail(*_):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr("fcntl.flock", fail)
    with lock(tmp_path), lock(tmp_path):
        assert "no locks here" in caplog.text


def test_lock_file_that_cannot_be_opened_is_an_error(tmp_path):
    (tmp_path / "run.lock").mkdir()  # Root can open any file.
    with pytest.raises(InputError, match=r"run\.lock: "), lock(tmp_path):
        pass


def test_unfinished_files_of_a_killed_run_are_removed(tmp_path):
    (tmp_path / "best").mkdir()
    kept = {
        "data.tmp-20260705",
        "eval_results.txt.tmp-0123abcd",  # An evaluation may be running.
        "encoder.tmp-0123abcd",  # An export, too.
        "model.ckpt-5.index",
        "model.ckpt-5.data-00000-of-00001",
        "model.ckpt-5.resume.json",
        "model.ckpt-1.tmp-notes",
    }
    removed = {
        # Checkpoints without an index were being written or removed.
        "model.ckpt-4.data-00000-of-00001",
        "model.ckpt-4.resume.json",
        "best/model.ckpt-5.data-00000-of-00001",
        "model.ckpt-5.tmp-0123abcd.data-00000-of-00001",
        files.temporary_name("model.ckpt-5.resume.json"),
        files.temporary_name("checkpoint"),
        files.temporary_name("train.tf_record"),
        files.temporary_name("train_options.json"),
        files.temporary_name("eval_history.jsonl"),
        "best/model.ckpt-5.tmp-0123abcd.index",
    }
    for name in kept | removed:
        (tmp_path / name).touch()
    with lock(tmp_path):
        pass
    assert set(os.listdir(tmp_path)) == {*kept, "best"}
    assert not os.listdir(tmp_path / "best")


@pytest.mark.parametrize("folder", ["plain", 'ü "quoted"'])
def test_checkpoint_list_that_tensorflow_wrote_is_read(tmp_path, folder):
    """The checkpoints were in another directory at that time."""
    paths = [f"/{folder}/model.ckpt-{n}" for n in (8, 10, 5)]
    tf.compat.v1.train.update_checkpoint_state(str(tmp_path), paths[-1], paths)
    names = RunDirectory(str(tmp_path)).checkpoint_names()
    assert names == ["model.ckpt-8", "model.ckpt-10", "model.ckpt-5"]


OWN_FILE = {"train_file": "a.csv", "dev_share": 0.1}


@pytest.mark.parametrize(
    ("name", "recorded", "is_removed"),
    [
        ("predictions.json", {}, True),
        ("eval/events.out.tfevents.1", {}, True),
        *((f"{row.submission}.tsv", {}, True) for row in glue.TASKS.values()),
        ("XNLI-zh_translated.tsv", {}, True),
        ("Data.tsv", {}, False),
        # Models converted from a checkpoint; an export of the user.
        ("openvino/finetuned/SOURCE.txt", {}, True),
        ("best/openvino/encoder/SOURCE.txt", {}, True),
        ("openvino/1/model.xml", {}, False),
        # Without train_options.json, the directory is not that of a run.
        ("predictions.json", None, False),
        ("eval/events.out.tfevents.1", None, False),
        ("eval_results_other_v2.json", {}, True),
        ("dev_errors_other_v2.csv", {}, True),
        ("confusion_matrix_other_v2.png", {}, True),
        # Held-out examples, and files of the user.
        ("dev.jsonl", OWN_FILE, True),
        ("dev.jsonl", {**OWN_FILE, "dev_file": "b"}, False),
        ("dev.jsonl", {"task_name": "jsonl", "dev_share": 0.1}, False),
    ],
)
def test_overwriting_removes_only_what_a_training_run_wrote(
    tmp_path, name, recorded, is_removed
):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    if recorded is not None:
        write_json(tmp_path / "train_options.json", {"options": recorded})
    run = RunDirectory(str(tmp_path))
    assert run.files_of_model() == [str(path)] * is_removed
    run.remove_model()
    assert path.exists() != is_removed
    assert (tmp_path / "openvino").exists() == ("openvino/1" in name)


@pytest.mark.parametrize(
    ("recorded", "split", "path", "variant"),
    [
        ({"train_file": "a.csv"}, "dev", None, ""),
        ({"train_file": "a.csv"}, "dev", "out/../out/dev.jsonl", ""),
        ({"dev_file": "d/b.csv"}, "dev", "d/b.csv", ""),
        ({"dev_file": "b.csv"}, "dev", "d/b.csv", "_b"),
        ({"train_file": "a.csv"}, "dev", "d/höhe 2.v1.csv.GZ", "_höhe_2_v1"),
        # No run: the results of a model of another format.
        ({}, "dev", "b.csv", ""),
        ({"test_file": "d/b.csv"}, "test", "d/b.csv", ""),
        ({"test_file": "b.csv"}, "test", "d/b.csv", "_b"),
        ({"train_file": "a.csv"}, "test", "out/dev.jsonl", "_dev"),
    ],
)
def test_results_of_other_files_than_those_of_the_run_have_their_own_names(
    tmp_path, monkeypatch, recorded, split, path, variant
):
    monkeypatch.chdir(tmp_path)
    run = RunDirectory("out")
    os.mkdir("out")
    if recorded:
        record = {"options": recorded}
        write_json(tmp_path / "out" / "train_options.json", record)
    assert run.variant_of_results(split, path) == variant
    (tmp_path / "out" / f"eval_results{variant}.json").touch()
    (tmp_path / "out" / f"dev_errors{variant}.csv").touch()
    (tmp_path / "out" / f"test_results{variant}.tsv").touch()
    assert len(run.result_names()) == 3


def test_evaluation_data_is_known_by_its_content(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.csv", "old"), ("b.csv", "old"), ("c.csv", "new")):
        (tmp_path / name).write_text(text)
    data = {"evaluation data": ["a.csv"], "corpus": ["a.csv"]}
    options = {"dev_file": "a.csv", "corpus_file": "a.csv"}
    run = RunDirectory("out")
    os.mkdir("out")
    run.write_record(RunRecord(None, options, fingerprints_of(data)))

    def variants():
        names = "a.csv", "b.csv", "c.csv"
        return [run.variant_of_results("dev", n, n) for n in names]

    assert variants() == ["", "", "_c_c"]
    # The same path, as seen from another working directory.
    (tmp_path / "a.csv").write_text("other")
    assert variants() == ["_a_a", "", "_c_c"]
    data = {"evaluation data": ["a.csv", "c.csv"]}
    options = {"dev_file": "a.csv,c.csv"}
    run.write_record(RunRecord(None, options, fingerprints_of(data)))
    assert run.variant_of_results("dev", "[ac].csv") == ""
    assert run.variant_of_results("dev", "a.csv") == "_a"
