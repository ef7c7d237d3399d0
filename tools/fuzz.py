"""Damages the files and flags that the commands read, and calls the commands.

  python -m tools.fuzz --minutes=10 --seed=1

Prints a row for each reader. An input is rejected if the command raises
`InputError` or exits with an error; other exceptions are tracebacks. Inputs
with a fault are kept in build/fuzz/faults, each in a directory with the command
and the traceback. The first run writes the valid inputs to build/fuzz/inputs.

Commands run in this process. Most are stopped where the first step of training
or evaluation would be compiled, which takes seconds; one in 50 runs to its end.
"""

import argparse
import contextlib
import faulthandler
import gc
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["HF_HUB_OFFLINE"] = "1"

import hypothesis
import tensorflow as tf
from absl import flags, logging
from hypothesis import strategies as st

from official_bert.errors import InputError
from official_bert.inference.forward import Forward
from official_bert.training import evaluate, loop, pretraining_run
from tools import fuzz_cases, fuzz_mutations
from tools.fuzz_cases import CASES, Case

READERS = tuple(dict.fromkeys(case.reader for case in CASES))
FAULTS = ("tracebacks", "hangs", "over 1 GB", "changed")
COLUMNS = ("tried", "accepted", "rejected", *FAULTS)

# Limits for each input, in seconds: CPU time, which other processes do not
# lengthen, and wall-clock time.
_TIME_LIMIT, _CLOCK_LIMIT = 20, 200
_MEMORY_LIMIT = 2**30
_ADDRESS_LIMIT = 8 * 2**30  # In addition to the address space at the start.
_ROUND = 20  # Inputs of a reader before the next one's turn.

# Flags that start processes or connections, which this process must not.
_NO_FLAGS = [
    *("num_workers", "runner", "beam_options", "use_tpu", "tpu_name"),
    *("tpu_zone", "gcp_project", "master", "num_tpu_cores"),
    *("distribution_strategy", "jit_compile", "do_export"),
]


class _Hang(BaseException):
    """Raised in a command that takes too long."""


class _Reached(BaseException):
    """Raised where a command has read all input and would compute."""


@st.composite
def _inputs(draw: Any, cases: Sequence[Case]) -> Any:
    """Draws the arguments of `Fuzzer._try`."""
    case = draw(st.sampled_from(cases))
    runs_to_end = draw(st.integers(0, 49)) == 7
    if case.file_format:
        damage = fuzz_mutations.damaged(case.file_format, case.file)
        return case, draw(damage), (), runs_to_end
    _, options_class = fuzz_cases.main_of(case.command)
    fields = typing.get_type_hints(options_class)
    names = sorted(
        n for n, t in fields.items() if t in _VALUES and n not in _NO_FLAGS
    )
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
    odd_flags = tuple(f"--{n}={draw(_VALUES[fields[n]])}" for n in chosen)
    return case, {}, odd_flags, runs_to_end


_numbers = st.sampled_from([-1, 0, 1, 2, 3, 5, 8, 2**31, 10**30])
_rates = st.floats() | st.floats(0, 1) | _numbers
_WORDS = [
    *("lines.txt", "vocab.txt", "tuned", "pretrained", "hf", "preset", "ner"),
    *("a.tfrecord", "squad.json", "old.jsonl", "old.tfrecord", "train.tsv"),
    *("missing", "missing/a", "/dev/null", "pretrained/model.ckpt-1"),
    *("bert_config.json", "data.csv", "*.txt", ",", "text", "label", "1"),
    *("classification", "cola", "swag", "ner", "csv", "max", "mean"),
    *("embeddings,0", "-1,0"),
]
_strings = st.sampled_from(_WORDS) | fuzz_mutations.texts
_VALUES: dict[Any, Any] = {
    bool: st.booleans(),
    bool | None: st.booleans(),
    int: _numbers,
    int | None: _numbers,
    float: _rates,
    str: _strings,
    str | None: _strings,
}


class Fuzzer:
    """Tries inputs in the current directory, which it restores after each.

    Attributes:
        counts: {reader: numbers of `COLUMNS`}.
    """

    def __init__(self, pristine: str, faults: str) -> None:
        self.counts: dict[str, Counter[str]] = {r: Counter() for r in READERS}
        self._pristine, self._faults = pristine, faults
        self._files = _stats()

    def try_inputs(self, reader: str, number: int, seed: int) -> None:
        """Tries a number of inputs of a reader."""
        cases = [case for case in CASES if case.reader == reader]

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=number,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(_inputs(cases))
        def try_all(drawn: Any) -> None:
            self._try(*drawn)

        try_all()
        gc.collect()

    def _try(
        self,
        case: Case,
        damaged: dict[str, bytes],
        odd_flags: tuple[str, ...],
        runs_to_end: bool,
    ) -> None:
        for path, content in damaged.items():
            with open(path, "wb") as file:
                file.write(content)
        before = _stats()
        memory = _reset_peak_memory()
        start = time.process_time()
        stops = [] if runs_to_end else _SLOW
        if any(len(content) > 2**20 for content in damaged.values()):
            stops = _SLOW_WITH_LONG_LINES
        outcome, error = _outcome(
            lambda: fuzz_cases.run(case.command, odd_flags), _stopping_at(stops)
        )
        elapsed = time.process_time() - start
        outcomes = ["tried", outcome]
        if elapsed > _TIME_LIMIT and outcome != "hangs":
            outcomes.append("hangs")
        if _memory("VmHWM") - memory > _MEMORY_LIMIT:
            outcomes.append("over 1 GB")
        after = _stats()
        # Records are a cache that every run may replace.
        changed = [
            path
            for path, stat in before.items()
            if after.get(path) != stat and "train.tf_record" not in path
        ]
        # With this flag, a run checks only the first record before it starts.
        replaces = runs_to_end and "--overwrite_output_dir" in case.command
        if case.reader == "TFRecords" and replaces:
            changed = []
        if changed and outcome != "accepted":
            outcomes.append("changed")
            error += f"\nChanged: {changed}"
        self.counts[case.reader].update(outcomes)
        if {*outcomes} & {*FAULTS}:
            self._keep(case, damaged, odd_flags, f"{outcomes}\n{error}")
        self._restore(after)

    def _keep(
        self,
        case: Case,
        damaged: dict[str, bytes],
        odd_flags: tuple[str, ...],
        report: str,
    ) -> None:
        """Writes an input with a fault to its own directory."""
        os.makedirs(self._faults, exist_ok=True)
        folder = tempfile.mkdtemp(prefix=f"{case.reader}-", dir=self._faults)
        for path, content in damaged.items():
            name = os.path.join(folder, path.replace("/", "-"))
            with open(name, "wb") as file:
                file.write(content)
        with open(os.path.join(folder, "report.txt"), "w") as text:
            text.write(
                f"{case.command}\n{odd_flags!r}\n{[*damaged]}\n{report}\n"
            )

    def _restore(self, stats: dict[str, tuple[int, int]]) -> None:
        for path in stats.keys() - self._files.keys():
            os.remove(path)
        for path, stat in self._files.items():
            if stats.get(path) != stat:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                shutil.copy2(os.path.join(self._pristine, path), path)

    def table(self) -> str:
        """Returns a row for each reader, and their sums."""
        total: Counter[str] = Counter()
        for counts in self.counts.values():
            total.update(counts)
        lines = [_row("reader", COLUMNS)]
        for name, counts in {**self.counts, "all": total}.items():
            lines.append(_row(name, [f"{counts[c]:,}" for c in COLUMNS]))
        return "\n".join(lines)

    @property
    def num_faults(self) -> int:
        """The number of faults of all readers."""
        return sum(c[name] for c in self.counts.values() for name in FAULTS)


def _row(name: str, cells: Sequence[str]) -> str:
    return name.ljust(20) + "".join(cell.rjust(11) for cell in cells)


def _outcome(
    call: Callable[[], None], stops: contextlib.AbstractContextManager[None]
) -> tuple[str, str]:
    """Returns the column that counts a call, and its message or traceback."""
    signal.setitimer(signal.ITIMER_PROF, _TIME_LIMIT)
    signal.alarm(_CLOCK_LIMIT)
    try:
        with stops:
            call()
    except (InputError, flags.Error) as error:
        return "rejected", str(error)
    except SystemExit as error:
        return "accepted" if not error.code else "rejected", str(error)
    except _Reached:
        pass
    except _Hang:
        return "hangs", traceback.format_exc()
    except BaseException:
        return "tracebacks", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return "accepted", ""


# Functions that compile for seconds, or that take minutes for a long line.
_SLOW: list[tuple[Any, str]] = [
    *((loop, "train"), (pretraining_run, "mean_metrics")),
    *((evaluate, "evaluate"), (evaluate, "predict")),
]
_SLOW_WITH_LONG_LINES = [*_SLOW, (Forward, "run")]


@contextlib.contextmanager
def _stopping_at(functions: Sequence[tuple[Any, str]]) -> Iterator[None]:
    """Ends commands where they call one of the functions."""

    def stop(*_: Any, **__: Any) -> None:
        raise _Reached

    originals = [getattr(owner, name) for owner, name in functions]
    for owner, name in functions:
        setattr(owner, name, stop)
    try:
        yield
    finally:
        for (owner, name), original in zip(functions, originals, strict=True):
            setattr(owner, name, original)


def _stats() -> dict[str, tuple[int, int]]:
    """Returns {path: size and time of change} of all files here."""
    stats = {}
    for folder, _, names in os.walk("."):
        for name in names:
            path = os.path.join(folder, name)
            stat = os.stat(path, follow_symlinks=False)
            stats[path] = (stat.st_size, stat.st_mtime_ns)
    return stats


def _reset_peak_memory() -> int:
    """Resets the peak to the resident memory, and returns this memory."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _memory("VmRSS")


def _memory(name: str) -> int:
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def _on_alarm(*_: Any) -> None:
    raise _Hang


@contextlib.contextmanager
def fuzzing(inputs: str, faults: str) -> Iterator[Fuzzer]:
    """Yields a fuzzer; a temporary directory becomes the current one.

    The valid inputs are in the directory `inputs`, or are written to it.
    """
    origin, faults = os.getcwd(), os.path.abspath(faults)
    inputs = os.path.abspath(inputs)
    logging.set_verbosity(logging.FATAL)
    tf.get_logger().setLevel("ERROR")
    faulthandler.enable()
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, _on_alarm)
    with (
        tempfile.TemporaryDirectory() as folder,
        open(os.devnull, "w") as null,
        contextlib.redirect_stdout(null),
        contextlib.redirect_stderr(null),
    ):
        try:
            if not os.path.isdir(inputs):
                os.makedirs(f"{inputs}.new")
                os.chdir(f"{inputs}.new")
                fuzz_cases.write_inputs()
                os.rename(f"{inputs}.new", inputs)
            work = os.path.join(folder, "work")
            shutil.copytree(inputs, work)
            os.chdir(work)
            yield Fuzzer(inputs, faults)
        finally:
            os.chdir(origin)
            for number in (signal.SIGPROF, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)


def main() -> None:
    """Tries inputs for the given time; exits with 1 if there was a fault."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    stdout = sys.stdout
    with fuzzing("build/fuzz/inputs", "build/fuzz/faults") as fuzzer:
        end = time.monotonic() + 60 * arguments.minutes
        limit = _memory("VmSize") + _ADDRESS_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        while time.monotonic() < end:
            for reader in READERS:
                if time.monotonic() < end:
                    fuzzer.try_inputs(reader, _ROUND, rng.getrandbits(64))
                print(reader, end=" ", file=stdout, flush=True)
        print(f"\n{fuzzer.table()}", file=stdout, flush=True)
    sys.exit(1 if fuzzer.num_faults else 0)


if __name__ == "__main__":
    main()
