"""`create_pretraining_data.py` on a full disk, and interrupted."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from support import ROOT, pretraining_records

DOCUMENT = "the cat sat on the mat .\nit was warm there .\nthen it slept .\n\n"


@pytest.fixture
def directory(tmp_path):
    words = ["the", "cat", "sat", "on", "mat", ".", "it", "was", "warm"]
    return pretraining_records.write_inputs(tmp_path, DOCUMENT * 2, words)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def start(directory, *arguments, limit=None):
    """Starts the command in its own process group."""

    def prepare():
        if limit is not None:  # As if the disk were full.
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [
            *(sys.executable, str(ROOT / "create_pretraining_data.py")),
            f"--input_file={directory / 'text.txt'}",
            f"--output_file={directory / 'a'},{directory / 'b'}",
            f"--vocab_file={directory / 'vocab.txt'}",
            *("--max_seq_length=16", "--max_predictions_per_seq=3"),
            *arguments,
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=prepare,
    )


@pytest.mark.parametrize("workers", ["0", "1", "2"])
@pytest.mark.parametrize("limit", [300, 20_000])
def test_full_disk_is_reported_and_keeps_the_output(directory, workers, limit):
    (directory / "a").write_text("before")
    before = contents(directory)
    flags = f"--num_workers={workers}", "--dupe_factor=400"
    with start(directory, *flags, limit=limit) as process:
        stderr = process.communicate()[1]
    assert process.returncode == 1
    [message] = [line for line in stderr.splitlines() if "error: " in line]
    assert "File too large" in message
    assert "Traceback" not in stderr
    assert contents(directory) == before


def test_full_disk_at_the_end_replaces_no_file(directory):
    # The file is so small that it is written when closed; the other one fits.
    odd = "--random_seed=2"  # One more record in the first file.
    with start(directory, odd) as process:
        assert "Wrote" in process.communicate()[1]
    sizes = [(directory / name).stat().st_size for name in "ab"]
    assert sizes[1] < sizes[0] < 8192
    for name in "ab":
        (directory / name).write_text("before")
    before = contents(directory)
    with start(directory, odd, limit=sizes[0] - 1) as process:
        assert "File too large" in process.communicate()[1]
    assert process.returncode == 1
    assert contents(directory) == before


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("send", "number", "status"),
    [
        (os.killpg, signal.SIGINT, 130),
        (os.killpg, signal.SIGTERM, 143),
        (os.kill, signal.SIGTERM, 143),
    ],
)
def test_interrupted_process_leaves_no_files(
    directory, workers, send, number, status
):
    before = contents(directory)
    # Half a minute of work.
    flags = f"--num_workers={workers}", "--dupe_factor=20000"
    with start(directory, *flags) as process:
        shown = ""
        while "Making instances" not in shown:  # A line ends after 10 seconds.
            shown += process.stderr.read(1)
            assert process.poll() is None
        send(process.pid, number)
        # Ends with the last process that may write to it.
        assert "Traceback" not in process.communicate(timeout=30)[1]
    assert process.returncode == status
    assert contents(directory) == before
    ended = time.monotonic() + 5
    while running := processes_of_group(process.pid):
        assert time.monotonic() < ended, running
        time.sleep(0.1)


def processes_of_group(group):
    """Returns the processes of a group that run."""
    command = ["ps", "-eo", "pgid=,stat=,args="]
    listed = subprocess.check_output(command, text=True)
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    return [r for r in rows if r[0] == str(group) and r[1][0] != "Z"]
