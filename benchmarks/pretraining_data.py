"""Seconds of `create_pretraining_data.py`, its start included.

  python -m benchmarks.pretraining_data CORPUS VOCAB_FILE

CORPUS has one sentence per line. The command runs twice in each mode on the
first 20,000 lines, and with two workers on all lines.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import time

NUM_LINES = 20_000
COMMAND = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
    "create_pretraining_data.py",
)


def seconds(mode: str, input_file: str, vocab_file: str) -> float:
    with tempfile.TemporaryDirectory() as directory:
        command = [
            *(sys.executable, COMMAND, f"--input_file={input_file}"),
            *(f"--output_file={directory}/out", f"--vocab_file={vocab_file}"),
        ]
        if mode != "default":
            command.append(mode)
        start = time.perf_counter()
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            raise SystemExit(result.stderr)
        return time.perf_counter() - start


def main(corpus: str, vocab_file: str) -> None:
    with tempfile.NamedTemporaryFile("wb") as head:
        with open(corpus, "rb") as source:
            head.writelines(itertools.islice(source, NUM_LINES))
            num_lines = NUM_LINES + sum(1 for _ in source)
        head.flush()
        print("mode               lines  seconds")
        for mode, lines, path in (
            ("default", NUM_LINES, head.name),
            ("--num_workers=1", NUM_LINES, head.name),
            ("--num_workers=2", NUM_LINES, head.name),
            ("--num_workers=2", num_lines, corpus),
        ):
            times = (seconds(mode, path, vocab_file) for _ in range(2))
            shown = "".join(f"{time:6.2f}" for time in times)
            print(f"{mode:15} {lines:8,}{shown}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
