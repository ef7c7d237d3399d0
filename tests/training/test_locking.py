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


def test_what_a_killed_run_was_writing_is_removed(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "best").mkdir()
    for name in (
        f"model.ckpt-5.tmp-{dead.pid}.0123abcd.data-00000-of-00001",
        f"best/model.ckpt-5.tmp-{dead.pid}.0123abcd.index",
        f"checkpoint.tmp-{dead.pid}.0123abcd",
        # Of one that evaluates.
        f"eval_results.txt.tmp-{os.getppid()}.0123abcd",
        "my.tmp-notes",
        f"data.tmp-{dead.pid}",
    ):
        (tmp_path / name).touch()
    for name in (
        f"encoder.tmp-{dead.pid}.0123abcd",
        f"module.tmp-{os.getppid()}.0123abcd",
    ):
        (tmp_path / name / "variables").mkdir(parents=True)
    with locking.only_run(options(tmp_path)):
        pass
    assert sorted(os.listdir(tmp_path)) == [
        "best",
        f"data.tmp-{dead.pid}",
        f"eval_results.txt.tmp-{os.getppid()}.0123abcd",
        f"module.tmp-{os.getppid()}.0123abcd",
        "my.tmp-notes",
    ]
    assert not os.listdir(tmp_path / "best")


def test_what_is_being_written_has_a_name_that_is_known(tmp_path, monkeypatch):
    name = files.temporary_name(str(tmp_path / "model.ckpt-5"))
    (tmp_path / f"{name}.index").touch()
    ours = os.getpid()
    for number, is_another in ((0, True), (ours, False)):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        with locking.only_run(options(tmp_path)):
            pass
        assert len(os.listdir(tmp_path)) == is_another
