"""One training run at a time in an output directory."""

import os
import signal
import subprocess
import sys
import types

import pytest

from official_bert import files
from official_bert.errors import InputError
from official_bert.training import checkpointing

# Holds the lock until it is killed; without the seconds that TensorFlow takes.
HOLDER = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
os.write(descriptor, b"process 4711 on host elsewhere\\n")
print("locked", flush=True)
sys.stdin.read()
"""


def lock(directory, **changes):
    options = {
        "do_train": True,
        "output_dir": str(directory),
        "is_chief": True,
        **changes,
    }
    return checkpointing.output_dir_lock(types.SimpleNamespace(**options))


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_second_run_is_an_error_that_names_the_first(holder, tmp_path):
    message = f"--output_dir={tmp_path} .* process 4711 on host elsewhere"
    with pytest.raises(InputError, match=message), lock(tmp_path):
        pass
    assert (tmp_path / "run.lock").exists()


@pytest.mark.parametrize("changes", [{"do_train": False}, {"is_chief": False}])
def test_evaluations_and_workers_need_no_lock(holder, tmp_path, changes):
    with lock(tmp_path, **changes):
        pass


def test_lock_ends_with_a_killed_process(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run.lock").exists()
    with lock(tmp_path):
        text = (tmp_path / "run.lock").read_text()
        assert text.startswith(f"process {os.getpid()} on host ")
    assert not os.listdir(tmp_path)


def test_two_runs_of_one_process_need_two_directories(tmp_path):
    with lock(tmp_path / "new"):
        with (
            pytest.raises(InputError, match=f"process {os.getpid()} on host"),
            lock(tmp_path / "new"),
        ):
            pass
        with lock(tmp_path / "other"):
            pass
    with lock(tmp_path / "new"):
        pass


def test_new_directory_is_removed_if_it_is_empty_at_the_end(tmp_path):
    with lock(tmp_path / "new"):
        assert (tmp_path / "new" / "run.lock").exists()
    assert not (tmp_path / "new").exists()
    with lock(tmp_path / "new"):
        (tmp_path / "new" / "model.ckpt-0.index").touch()
    assert os.listdir(tmp_path / "new") == ["model.ckpt-0.index"]
    with lock(tmp_path):
        pass
    assert tmp_path.exists()


def test_file_system_without_locks_gives_a_warning(
    tmp_path, monkeypatch, caplog
):
    def fail(*_):
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", fail)
    with lock(tmp_path):
        assert "cannot be locked: no locks here" in caplog.text


def test_lock_file_that_cannot_be_opened_is_an_error(tmp_path):
    (tmp_path / "run.lock").mkdir()  # Root may open any file.
    with pytest.raises(InputError, match=r"run\.lock: "), lock(tmp_path):
        pass


def test_unfinished_files_of_a_killed_run_are_removed(tmp_path):
    kept = {
        "best",
        "data.tmp-20260705",
        "eval_results.txt.tmp-12.0123abcd",  # An evaluation may be running.
        "encoder.tmp-12.0123abcd",  # An export, too.
        "model.ckpt-5.index",
        "model.ckpt-1.tmp-notes",
    }
    (tmp_path / "best").mkdir()
    removed = {
        "model.ckpt-5.tmp-12.0123abcd.data-00000-of-00001",
        files.temporary_name("model.ckpt-5.resume.json"),
        files.temporary_name("checkpoint"),
        files.temporary_name("train.tf_record"),
        "best/model.ckpt-5.tmp-12.0123abcd.index",
    }
    for name in {*kept, *removed} - {"best"}:
        (tmp_path / name).touch()
    with lock(tmp_path):
        pass
    assert set(os.listdir(tmp_path)) == kept
    assert not os.listdir(tmp_path / "best")
