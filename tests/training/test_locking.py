"""One run at a time in an output folder."""

import os
import signal
import subprocess
import sys
import types

import pytest

from official_bert import files
from official_bert.errors import InputError
from official_bert.training import locking

# Holds the lock until it is killed, or told to end. Without TensorFlow's
# seconds: only the loading of the module needs them.
HOLDER = """
import fcntl, os, sys
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(descriptor, fcntl.LOCK_EX)
os.write(descriptor, b"process 4711 on elsewhere\\n")
print("locked", flush=True)
sys.stdin.read()
"""


def options(folder, **changes):
    given = {
        "do_train": True,
        "output_dir": str(folder),
        "resolved_strategy": "none",
        **changes,
    }
    return types.SimpleNamespace(**given)


@pytest.fixture
def holder(tmp_path):
    """Another process that has the lock."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_second_run_is_refused(holder, tmp_path):
    with (
        pytest.raises(InputError, match="process 4711 on elsewhere, which is"),
        locking.only_run(options(tmp_path)),
    ):
        pass
    assert (tmp_path / "run.lock").exists()


def test_a_killed_run_leaves_no_lock(holder, tmp_path):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / "run.lock").exists()
    with locking.only_run(options(tmp_path)):
        text = (tmp_path / "run.lock").read_text()
        assert text.startswith(f"process {os.getpid()} on ")
    assert not os.listdir(tmp_path)


def test_two_in_one_process(tmp_path):
    with locking.only_run(options(tmp_path / "new")):
        with (
            pytest.raises(InputError, match=f"process {os.getpid()} on"),
            locking.only_run(options(tmp_path / "new")),
        ):
            pass
        with locking.only_run(options(tmp_path / "other")):
            pass
    with locking.only_run(options(tmp_path / "new")):
        pass


def test_a_run_that_writes_nothing_leaves_no_folder(tmp_path):
    with locking.only_run(options(tmp_path / "new")):
        assert (tmp_path / "new" / "run.lock").exists()
    assert not (tmp_path / "new").exists()


def test_a_folder_that_was_there_stays(tmp_path):
    with locking.only_run(options(tmp_path)):
        pass
    assert tmp_path.exists()
    with locking.only_run(options(tmp_path / "new")):
        (tmp_path / "new" / "model.ckpt-0.index").touch()
    assert os.listdir(tmp_path / "new") == ["model.ckpt-0.index"]


def test_evaluating_is_no_other_run(holder, tmp_path):
    with locking.only_run(options(tmp_path, do_train=False)):
        pass


def test_a_file_system_without_locks_passes(tmp_path, monkeypatch, caplog):
    def fail(*_):
        raise OSError("no locks here")

    monkeypatch.setattr("fcntl.flock", fail)
    with locking.only_run(options(tmp_path)):
        assert "cannot be locked: no locks here" in caplog.text


def test_a_lock_that_another_user_left_is_told(tmp_path):
    """Here a folder, as nothing is forbidden to who runs tests as root."""
    (tmp_path / "run.lock").mkdir()
    with (
        pytest.raises(
            InputError, match=r"run\.lock: must be writable.*remove it"
        ),
        locking.only_run(options(tmp_path)),
    ):
        pass


def test_only_the_chief_of_several_hosts_has_it(holder, tmp_path, monkeypatch):
    config = (
        '{"cluster": {"worker": ["a:1", "b:1"]}, '
        '"task": {"type": "worker", "index": %d}}'
    )
    both = options(tmp_path, resolved_strategy="multi_worker_mirrored")
    monkeypatch.setenv("TF_CONFIG", config % 1)
    with locking.only_run(both):
        pass
    monkeypatch.setenv("TF_CONFIG", config % 0)
    with pytest.raises(InputError, match="4711"), locking.only_run(both):
        pass


def test_checkpoints_that_a_killed_run_was_writing_are_removed(tmp_path):
    (tmp_path / "best").mkdir()
    for name in (
        f"{files.temporary_name('model.ckpt-5')}.index",
        f"best/{files.temporary_name('model.ckpt-5')}.index",
        "model.ckpt-5.tmp-4711.0123abcd.data-00000-of-00001",  # Until 2026.
        files.temporary_name("model.ckpt-5.resume.json"),
        files.temporary_name("checkpoint"),
    ):
        (tmp_path / name).touch()
    kept = [files.temporary_name("eval_results.txt"), "model.ckpt-1.tmp-notes"]
    for name in kept:
        (tmp_path / name).touch()
    with locking.only_run(options(tmp_path)):
        pass
    assert sorted(os.listdir(tmp_path)) == sorted(["best", *kept])
    assert not os.listdir(tmp_path / "best")
