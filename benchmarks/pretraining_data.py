"""Pre-training instances per second, and memory.

  python -m benchmarks.pretraining_data CORPUS VOCAB_FILE [NUM_COPIES]

CORPUS has one sentence per line. `create_pretraining_data.py` runs as a command
on the first 20,000 lines, with sequences of 128 tokens and ten rounds. The time
includes its start-up. The default mode has one core. Then the command runs on
the whole corpus and on NUM_COPIES copies of it, to show that memory does not
grow. Memory is the largest sum of the resident sets of all processes, sampled
every 20 ms.

The ratio is to the 3,980 instances per second of the original implementation,
which is not run here. It took 16.1 seconds for the 64,189 instances of 20,000
lines of Wikipedia on one quiet core of the machine of README.md, with Python
3.11 and the import of TensorFlow 2.21 included. On another day it took 52
seconds.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
NUM_LINES = 20_000
ORIGINAL = 3_980  # Instances a second.
ROW = "{:16} {:>9,} {:>10,} {:8.2f} {:>12,.0f} {:6.1f} {:8,.0f}"
COLUMNS = ("mode", "lines", "instances", "seconds", "a second", "ratio", "MB")
HEADER = "{:16} {:>9} {:>10} {:>8} {:>12} {:>6} {:>8}"


def processes(group: int) -> Iterator[pathlib.Path]:
    """Yields the /proc directories of a process group."""
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # It has ended.
            continue
        if int(fields[2]) == group:
            yield directory


def resident(group: int) -> float:
    """Returns the resident memory of a process group in megabytes."""
    pages = 0
    for directory in processes(group):
        try:
            pages += int((directory / "statm").read_text().split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def run(arguments: list[str], core: int | None) -> tuple[int, float, float]:
    """Runs the command; returns instances, seconds and megabytes."""
    command = [sys.executable, str(ROOT / "create_pretraining_data.py")]
    with tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, *arguments, "--max_seq_length=128", "--dupe_factor=10"],
            stderr=log,
            start_new_session=True,
        )
        if core is not None:
            os.sched_setaffinity(process.pid, {core})
        peak = 0.0
        while process.poll() is None:
            peak = max(peak, resident(process.pid))
            time.sleep(0.02)
        seconds = time.perf_counter() - start
        log.seek(0)
        output = log.read()
    written = re.search(r"Wrote (\d+) records", output)
    if process.returncode or not written:
        raise SystemExit(output)
    return int(written[1]), seconds, peak


def show(
    mode: str, inputs: str, num_lines: int, vocab_file: str, directory: str
) -> None:
    workers = int(mode.rpartition("=")[2]) if "=" in mode else 0
    instances, seconds, peak = run(
        [
            f"--input_file={inputs}",
            f"--vocab_file={vocab_file}",
            f"--output_file={directory}/out",
            f"--num_workers={workers}",
        ],
        min(os.sched_getaffinity(0)) if workers < 2 else None,
    )
    rate = instances / seconds
    columns = (num_lines, instances, seconds, rate, rate / ORIGINAL, peak)
    print(ROW.format(mode, *columns), flush=True)


def main(corpus: str, vocab_file: str, num_copies: str = "1") -> None:
    print(HEADER.format(*COLUMNS))
    with tempfile.TemporaryDirectory() as directory:
        head = os.path.join(directory, "head.txt")
        with open(corpus, "rb") as source, open(head, "wb") as target:
            target.writelines(itertools.islice(source, NUM_LINES))
            num_lines = NUM_LINES + sum(1 for _ in source)
        for mode in ("default", "--num_workers=1", "--num_workers=2"):
            show(mode, head, NUM_LINES, vocab_file, directory)
        for copies in sorted({1, int(num_copies)}):
            inputs = ",".join([corpus] * copies)
            lines = num_lines * copies
            show("--num_workers=2", inputs, lines, vocab_file, directory)


if __name__ == "__main__":
    main(*sys.argv[1:])
