"""One training run at a time in an output directory."""

import fcntl
import os
import types

import pytest

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.training import checkpointing


def lock(directory, do_train=True, is_chief=True):
    options = types.SimpleNamespace(
        do_train=do_train, is_chief=is_chief, output_dir=str(directory)
    )
    return checkpointing.output_dir_lock(options)


@pytest.fixture
def other_lock(tmp_path):
    """A lock that another run holds; closing it is like killing that run."""
    with open(tmp_path / "run.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write("process 4711 on host elsewhere\n")
        file.flush()
        yield file


def test_second_run_is_an_error_that_names_the_first(other_lock, tmp_path):
    message = f"--output_dir={tmp_path} .* process 4711 on host elsewhere"
    with pytest.raises(InputError, match=message), lock(tmp_path):
        pass
    assert (tmp_path / "run.lock").exists()


@pytest.mark.parametrize("changes", [{"do_train": False}, {"is_chief": False}])
def test_evaluations_and_workers_need_no_lock(other_lock, tmp_path, changes):
    with lock(tmp_path, **changes):
        pass


def test_lock_of_a_killed_process_is_released(other_lock, tmp_path):
    other_lock.close()
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


def test_file_system_without_locks_gives_a_warning(
    tmp_path, monkeypatch, caplog
):
    def fail(*_):
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", fail)
    with lock(tmp_path), lock(tmp_path):
        assert "cannot be locked: no locks here" in caplog.text


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
