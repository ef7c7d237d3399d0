import os
import signal
import subprocess
import sys
import threading

import pytest

from official_bert.io import processes

SLOW = "import time; print(0, flush=True); time.sleep(60)"
# Only the first signal counts, as in training.
SAVING = (
    """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
"""
    + SLOW
)


@pytest.mark.slow
@pytest.mark.parametrize("code", [SLOW, SAVING])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_process_and_is_raised_when_it_has_ended(code, number):
    import polars  # noqa: F401  It changes the handler of SIGINT.

    before = signal.getsignal(signal.SIGTERM)
    with processes.start("-c", code, stdout=subprocess.PIPE) as process:
        process.stdout.read(1)  # Now its signal handlers are set.
        threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
        with pytest.raises((SystemExit, KeyboardInterrupt)) as raised:
            processes.wait(process)
    assert process.returncode == (143 if code == SAVING else -signal.SIGTERM)
    if number == signal.SIGTERM:
        assert raised.value.code == 128 + signal.SIGTERM
    else:
        assert raised.type is KeyboardInterrupt
    assert signal.getsignal(signal.SIGTERM) == before


def test_status_of_a_process_is_returned():
    assert processes.wait(processes.start("-c", "exit(3)")) == 3
    code = "import os; os.kill(os.getpid(), 9)"
    assert processes.wait(processes.start("-c", code)) == -signal.SIGKILL


@pytest.mark.skipif(sys.version_info < (3, 11), reason="needs PYTHONSAFEPATH")
def test_files_of_the_user_do_not_hide_modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random.py").write_text("raise RuntimeError")
    arguments = ("-m", "official_bert", "run_classifier", "--help")
    command = processes.start(*arguments, stdout=subprocess.DEVNULL)
    assert processes.wait(command) == 0
