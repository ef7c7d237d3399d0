r"""Compiles training steps for a TPU, without needing a TPU.

  python -m benchmarks.tpu_compile RESULTS [--python PYTHON] [--case PATTERN]

libtpu can compile without a chip. TensorFlow lowers the steps of our commands,
and PYTHON, with requirements-tpu-compile.txt installed, compiles them for one
core of a TPU v5e, which has 16 GiB of memory (15.75 for programs). Nothing is
executed.

For each case it searches for the largest batch that the compiler accepts, among
sizes with three significant binary digits (.., 64, 80, 96, 112, 128, ..), and
prints a row with:

  * memory: arguments, outputs that are not updated in place, temporaries and
    the program
  * operations, and the traffic between memory and chip
  * the shortest possible time of a step, at 197 TFLOP/s and 819 GB/s

A + means that no larger batch was tried. RESULTS keeps the results of all
compilations, so an interrupted run resumes. A compilation takes minutes and up
to 7 GB.

PATTERN selects cases, named KIND-LENGTH-SIZE-PRECISION[-remat], such as
`pretraining-128-base-*`.
"""

import argparse
import bisect
import fnmatch
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import tpu_steps
from benchmarks.step import json_output
from benchmarks.tpu_steps import Case, Step
from official_bert.io import files, json_files, progress

COMPILER = os.path.join(os.path.dirname(__file__), "tpu_compiler.py")
OPERATIONS_PER_SECOND = 197e12  # In bfloat16: cloud.google.com/tpu/docs/v5e
BYTES_PER_SECOND = 819e9
LARGEST_BATCH = 4096

# The result of `tpu_compiler.compile_module`.
Compiled = Mapping[str, Any]
# Results for batch sizes, which are strings as in JSON.
BySize = dict[str, Compiled]


def compile_hlo(python: str, hlo: bytes) -> Compiled:
    """Runs the compiler on the result of `Step.lower`, in another Python."""
    with tempfile.NamedTemporaryFile(suffix=".hlo") as file:
        file.write(hlo)
        file.flush()
        compiled: Compiled = json_output([python, COMPILER, file.name])
    if "error" in compiled and "Ran out of memory" not in compiled["error"]:
        raise SystemExit(compiled["error"])
    return compiled


def memory(compiled: Compiled) -> int:
    """Returns the bytes of memory that a step needs."""
    return int(
        compiled["arguments"]
        + compiled["outputs"]
        - compiled["aliased"]
        + compiled["temporaries"]
        + compiled["code"]
    )


def sizes() -> Iterator[int]:
    """Yields increasing sizes with at most three significant binary digits."""
    yield from range(1, 4)
    for exponent in itertools.count():
        yield from (digits << exponent for digits in range(4, 8))


def measure(
    case: Case,
    options: argparse.Namespace,
    results: dict[str, BySize],
    bar: Any,
) -> None:
    """Searches for the largest batch that fits; adds results to the file."""
    by_size = results.setdefault(case.name, {})
    step: Step | None = None

    def is_too_large(size: int) -> bool:
        nonlocal step
        if str(size) not in by_size:
            bar.set_postfix_str(f"{case.name} x {size}")
            step = step or Step(case)
            compiled = compile_hlo(options.python, step.lower(size))
            by_size[str(size)] = compiled
            text = json.dumps(results, indent=1) + "\n"
            files.write_text(options.results, text)
            bar.write(f"{case.name} x {size}: {_one_line(compiled)}")
        return "error" in by_size[str(size)]

    candidates = list(itertools.takewhile(LARGEST_BATCH.__ge__, sizes()))
    # `by_size` keeps the results of all sizes that the search tries.
    bisect.bisect_left(candidates, True, key=is_too_large)


def _one_line(compiled: Compiled) -> str:
    if "error" in compiled:
        return "does not fit"
    return f"{memory(compiled) / 1e9:.2f} GB, {compiled['seconds']:.0f} s"


HEADER = (
    f"{'step':38} batch     GB  arguments  temporaries  TFLOP  traffic GB"
    "  ms at least  examples/s at most"
)


def row(case: Case, by_size: BySize) -> str:
    """Returns a line under `HEADER`; an empty one if no batch fits."""
    fitting = [int(size) for size in by_size if "error" not in by_size[size]]
    if not fitting:
        return ""
    batch_size = max(fitting)
    compiled = by_size[str(batch_size)]
    next_size = next(size for size in sizes() if size > batch_size)
    mark = " " if str(next_size) in by_size else "+"
    seconds = max(
        compiled["operations"] / OPERATIONS_PER_SECOND,
        compiled["traffic"] / BYTES_PER_SECOND,
    )
    return (
        f"{case.name:38}{batch_size:5}{mark}{memory(compiled) / 1e9:7.2f}"
        f"{compiled['arguments'] / 1e9:11.2f}"
        f"{compiled['temporaries'] / 1e9:13.2f}"
        f"{compiled['operations'] / 1e12:7.2f}"
        f"{compiled['traffic'] / 1e9:12.1f}"
        f"{seconds * 1e3:13.1f}{batch_size / seconds:20.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results", help="a JSON file, created if it is missing")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--case", nargs="*", default=["*"], metavar="PATTERN")
    options = parser.parse_args()
    cases = [
        case
        for case in tpu_steps.CASES
        if any(fnmatch.fnmatch(case.name, name) for name in options.case)
    ]
    results: dict[str, BySize] = {}
    if os.path.exists(options.results):
        results = json_files.read_object(options.results)
    with progress.bar(cases, description="Cases", unit="case") as bar:
        for case in bar:
            measure(case, options, results, bar)
    print(HEADER)
    print("\n".join(filter(None, (row(c, results[c.name]) for c in cases))))


if __name__ == "__main__":
    main()
