"""Writes a labeled data set: does a summary belong to a function?

    python data/python_signatures.py --output_dir=/tmp/signatures

Each function of Python's standard library gives two examples: its signature
with the first sentence of its own docstring, and with one of another function:

    signature                 summary                                label
    TarFile.getmember(name)   Return a TarInfo object for member name.   yes
    TarFile.getmember(name)   Return True if it is a hard link.        no

Each summary is right once and wrong once, so that neither half of a pair tells
the label. In a few seconds this writes `train.tsv`, `dev.tsv` and `test.tsv`;
no package has functions in two of them. With `--pairs`, they have only the
right pairs, for `--task_type=embedding`:

    query                                      positive
    Return a TarInfo object for member name.   TarFile.getmember(name)
"""

import ast
import os
import pathlib
import random
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import python_english

from official_bert.errors import InputError
from official_bert.io import files
from official_bert.options import cli
from official_bert.options.flags import Options, option, path_option, switch


class PythonSignatures(Options):
    """Options of `data/python_signatures.py`."""

    output_dir: str = path_option(
        "Directory of train.tsv, dev.tsv and test.tsv."
    )
    held_out: int = option(
        "1 / N of all packages go to dev.tsv, and as many to test.tsv.",
        10,
        at_least=3,
    )
    seed: int = option("Random seed of the wrong summaries.", 12345)
    pairs: bool = switch("Write only the right pairs, for embeddings.")


class Function(NamedTuple):
    """A documented function.

    Attributes:
        package: Its top-level module or package, for example `email`.
        signature: For example `Message.get(name, failobj)`.
        summary: The first sentence of its docstring.
    """

    package: str
    signature: str
    summary: str


class Pair(NamedTuple):
    """A labeled example."""

    signature: str
    summary: str
    label: str


def main(options: PythonSignatures) -> None:
    """Writes pairs of the functions to the three files."""
    options = options.resolve()
    parts: dict[str, list[Function]] = {"train": [], "dev": [], "test": []}
    for function in collect(python_english.LIBRARY):
        parts[part_of(function.package, options.held_out)].append(function)
    if min(map(len, parts.values())) < 2:
        counts = ", ".join(f"{len(parts[name])} for {name}" for name in parts)
        raise InputError(
            "The standard library must have source files with docstrings. "
            f"Received: {counts}. Use another distribution of Python, or "
            "another --held_out."
        )
    for name, functions in parts.items():
        rows: list[tuple[str, ...]]
        if options.pairs:
            header: tuple[str, ...] = ("query", "positive")
            rows = [(f.summary, f.signature) for f in functions]
        else:
            header = Pair._fields
            rows = [*pairs(functions, random.Random(options.seed))]
        path = os.path.join(options.output_dir, f"{name}.tsv")
        lines = ("\t".join(row) + "\n" for row in (header, *rows))
        files.write_text(path, "".join(lines))
        print(f"{len(rows):,} pairs in {path}")


def part_of(package: str, held_out: int) -> str:
    """Returns train, dev or test, the same in all versions of Python."""
    # hash() differs from run to run.
    bucket = zlib.crc32(package.encode()) % held_out
    return {0: "dev", 1: "test"}.get(bucket, "train")


def pairs(
    functions: Sequence[Function], generator: random.Random
) -> list[Pair]:
    """Returns two pairs for each function, with functions in random order.

    The wrong summary is taken from the next function, so each is used once.

    Args:
        functions: At least two, with different summaries.
        generator: Draws the order.
    """
    circle = list(functions)
    generator.shuffle(circle)
    rows = []
    for function, other in zip(circle, [*circle[1:], circle[0]], strict=True):
        rows.append(Pair(function.signature, function.summary, "yes"))
        rows.append(Pair(function.signature, other.summary, "no"))
    return rows


def collect(library: pathlib.Path) -> list[Function]:
    """Returns all functions whose summary no earlier function has.

    Args:
        library: The directory of the standard library.
    """
    by_summary: dict[str, Function] = {}
    for path in python_english.sources(library):
        module = python_english.parse(path)
        if module is not None:
            top = path.relative_to(library).parts[0].removesuffix(".py")
            for signature, summary in functions(module):
                function = Function(top, signature, summary)
                by_summary.setdefault(summary, function)
    return list(by_summary.values())


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields signatures and summaries, except of nested functions.

    Args:
        node: A module or a node in it.
        prefix: The enclosing classes, for example `Message.`.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            summary = summary_of(child)
            if summary:
                yield prefix + signature_of(child), summary
        else:
            yield from functions(child, prefix)


def summary_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Returns the first sentence of the docstring if it is English."""
    first, *_ = (ast.get_docstring(function) or "").split("\n\n")
    return next(python_english.prose(first), None)


def signature_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Returns the name and the arguments, without `self` and defaults."""
    parameters = function.args
    names = [p.arg for p in parameters.posonlyargs + parameters.args]
    if names[:1] in (["self"], ["cls"]):
        del names[0]
    names += [p.arg for p in parameters.kwonlyargs]
    names += [p.arg for p in (parameters.vararg, parameters.kwarg) if p]
    return f"{function.name}({', '.join(names)})"


if __name__ == "__main__":
    cli.run(main, PythonSignatures)
