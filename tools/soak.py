"""Memory, speed and open files of commands that run for hours.

  python -m tools.soak TEXT_FILE DIRECTORY [MINUTES]

Runs one after the other: `create` makes instances of TEXT_FILE with two
processes; `pretrain` trains a tiny model on them for MINUTES (120), with an
evaluation every 200 steps and a checkpoint every 100; `predict` classifies a
million lines; `extract` writes the vectors of all tokens of 200,000 lines.
DIRECTORY keeps the records and the classifier for the next time.

Each row compares the second and the last quarter of the time in which a
command's main progress bar moved. It has the median resident memory and the
largest number of open files of all processes of the command, and the progress
per second of processor time. Other programs on the machine disturb this speed
less than the progress per second.
"""

import contextlib
import errno
import fcntl
import itertools
import os
import pty
import re
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import psutil

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# "Training:  12%|#  | 171/1500 [01:55<", "Predicting: ... 1.2M/33.5M [".
_BAR = re.compile(rb"(\w[\w ]*): +\d+%\|[^|]*\| ([\d.]+)([kMG]?)/")
_UNITS = {b"": 1.0, b"k": 1e3, b"M": 1e6, b"G": 1e9}


class Soak(NamedTuple):
    """A command, its flags, and the progress bar that counts its work."""

    name: str
    command: str
    flags: Sequence[str]
    bar: str
    minutes: float = float("inf")  # After this time, SIGTERM ends it.


class Sample(NamedTuple):
    """The processes of a command at one time."""

    seconds: float
    megabytes: float
    open_files: int


class Progress(NamedTuple):
    """What a progress bar showed, and the processor time until then."""

    seconds: float
    cpu_seconds: float
    done: float


def main(text_file: str, directory: str, minutes: str = "120") -> None:
    text_file, directory = map(os.path.abspath, (text_file, directory))
    os.makedirs(directory, exist_ok=True)
    texts = prepare(text_file, directory)
    print(f"{'':10}minutes  MB {'2nd':>7} {'4th':>7}", end="")
    print("  open files  units per CPU second     ratio")
    for soak in commands(text_file, directory, texts, float(minutes)):
        samples, progress = watch(soak, directory)
        print(row(soak, samples, progress), flush=True)


def prepare(text_file: str, directory: str) -> str:
    """Writes texts to predict, and trains a classifier; returns the texts."""
    texts = os.path.join(directory, "texts.txt")
    with open(text_file, encoding="utf-8") as lines, open(texts, "w") as out:
        words = filter(None, map(str.strip, lines))
        quarter = [f"{line}\n" for line in itertools.islice(words, 250_000)]
        out.writelines(quarter * 4)  # The same work in each quarter.
    table = os.path.join(directory, "table.csv")
    with open(table, "w") as out:
        out.write("text,label\n")
        out.writelines(f"text {n},{'ab'[n % 2]}\n" for n in range(64))
    command = [
        *("run_classifier.py", "--do_train", f"--train_file={table}"),
        *("--model=bert_tiny_demo", f"--output_dir={directory}/classifier"),
        *("--num_train_epochs=1", "--overwrite_output_dir"),
    ]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True)
    return texts


def commands(
    text_file: str, directory: str, texts: str, minutes: float
) -> list[Soak]:
    records = os.path.join(directory, "records-{}.tfrecord")
    outputs = [records.format(number) for number in range(10)]
    few_texts = os.path.join(directory, "few.txt")
    with open(texts) as lines, open(few_texts, "w") as out:
        quarter = list(itertools.islice(lines, 50_000))
        out.writelines(quarter * 4)
    return [
        Soak(
            "create",
            "create_pretraining_data.py",
            [
                *("--num_workers=2", "--masking=dynamic"),
                *(f"--input_file={text_file}", "--model=bert_tiny_demo"),
                f"--output_file={','.join(outputs)}",
            ],
            "Writing records",
        ),
        Soak(
            "pretrain",
            "run_pretraining.py",
            [
                *("--do_train", "--overwrite_output_dir"),
                f"--input_file={','.join(outputs[1:])}",
                *(f"--eval_file={outputs[0]}", "--eval_every=200"),
                *("--save_checkpoints_steps=100", "--max_eval_steps=10"),
                f"--output_dir={directory}/pretraining",
                *("--num_train_steps=1000000", "--model=bert_tiny_demo"),
            ],
            "Training",
            minutes,
        ),
        Soak(
            "predict",
            "predict.py",
            [
                *(f"--model={directory}/classifier", f"--input_file={texts}"),
                *("--input_format=lines", f"--output_file={directory}/x.jsonl"),
            ],
            "Predicting",
        ),
        Soak(
            "extract",
            "extract_features.py",
            [
                *("--model=bert_tiny_demo", f"--input_file={few_texts}"),
                *("--layers=-1", f"--output_file={directory}/x.jsonl"),
            ],
            "Extracting",
        ),
    ]


def watch(soak: Soak, directory: str) -> tuple[list[Sample], list[Progress]]:
    """Runs a command; returns measurements that were made while it ran."""
    start = time.monotonic()
    # Progress bars are updated more often in a terminal than in a pipe.
    terminal, stderr = pty.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, os.path.join(ROOT, soak.command), *soak.flags],
        cwd=directory,
        stderr=stderr,
    )
    os.close(stderr)
    root = psutil.Process(process.pid)
    samples: list[Sample] = []
    progress: list[Progress] = []

    def sample() -> None:
        while process.poll() is None:
            seconds = time.monotonic() - start
            megabytes = _total(root, lambda part: part.memory_info().rss / 1e6)
            open_files = _total(root, psutil.Process.num_fds)
            samples.append(Sample(seconds, megabytes, int(open_files)))
            if seconds > 60 * soak.minutes:
                process.terminate()
            time.sleep(1)

    thread = threading.Thread(target=sample)
    thread.start()
    with open(os.path.join(directory, f"{soak.name}.log"), "wb") as log:
        for text in _read(terminal):
            log.write(text)
            for name, number, unit in _BAR.findall(text):
                if name.decode().strip() == soak.bar:
                    seconds = time.monotonic() - start
                    done = float(number) * _UNITS[unit]
                    # Includes child processes that have ended.
                    cpu = _total(root, lambda part: sum(part.cpu_times()[:4]))
                    progress.append(Progress(seconds, cpu, done))
    thread.join()
    process.wait()
    if not progress or (process.returncode and soak.minutes == float("inf")):
        raise SystemExit(f"{soak.name} failed: see {log.name}.")
    return samples, progress


def _read(terminal: int) -> Iterator[bytes]:
    """Yields what processes write to a pseudo-terminal until they end."""
    try:
        while text := os.read(terminal, 1 << 16):
            yield text
    except OSError as error:
        if error.errno != errno.EIO:  # How Linux reports the end.
            raise
    finally:
        os.close(terminal)


def _total(
    root: psutil.Process, measure: Callable[[psutil.Process], float]
) -> float:
    """Returns the sum over a process and its descendants that still run."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += measure(process)
    return total


def row(soak: Soak, samples: list[Sample], progress: list[Progress]) -> str:
    """Compares the second and the last quarter."""
    start, end = progress[0].seconds, progress[-1].seconds
    memory, open_files, speeds = [], [], []
    for quarter in (1, 3):
        first = start + (end - start) * quarter / 4
        last = first + (end - start) / 4
        in_quarter = [s for s in samples if first <= s.seconds <= last]
        memory.append(statistics.median(s.megabytes for s in in_quarter))
        open_files.append(max(s.open_files for s in in_quarter))
        # Interpolated between updates of the bar.
        seconds, cpu_seconds, done = zip(*progress, strict=True)
        [cpu_time] = np.diff(np.interp([first, last], seconds, cpu_seconds))
        [work] = np.diff(np.interp([first, last], seconds, done))
        speeds.append(work / cpu_time)
    return (
        f"{soak.name:10}{(end - start) / 60:7.1f}     {memory[0]:7.0f} "
        f"{memory[1]:7.0f}  {open_files[0]:4} {open_files[1]:4}   "
        f"{speeds[0]:9.4g} {speeds[1]:9.4g}     "
        f"{memory[1] / memory[0]:.3f} {speeds[1] / speeds[0]:.3f}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
