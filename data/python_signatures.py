"""Writes a labelled task: does this summary belong to this function?

    python data/python_signatures.py --output_dir=/tmp/signatures

The functions are those of Python's standard library. Each makes two rows, its
signature with the first sentence of its docstring, and with that of another:

    signature                 summary                                label
    TarFile.getmember(name)   Return a TarInfo object for member name.   yes
    TarFile.getmember(name)   Return True if it is a hard link.        no

A summary is right once and wrong once, so that half a pair tells nothing. It
takes a few seconds and writes `train.tsv`, `dev.tsv` and `test.tsv`; no two of
them have functions of the same package.
"""

import ast
import dataclasses
import os
import pathlib
import random
import sysconfig
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import python_english

from official_bert import cli, files
from official_bert.cli import option
from official_bert.errors import InputError


@dataclasses.dataclass(frozen=True, kw_only=True)
class PythonSignatures(cli.Options):
    """Options of `data/python_signatures.py`."""

    output_dir: str = option("Folder for train.tsv, dev.tsv and test.tsv.")
    held_out: int = option(
        "One package in this many goes to dev.tsv, and as many to test.tsv.",
        10,
        at_least=3,
    )
    seed: int = option("Seed of who gets whose summary.", 12345)


class Function(NamedTuple):
    """A function, as those see it who call it.

    Attributes:
        package: The module or package at the top that has it, such as `email`.
        signature: Such as `Message.get(name, failobj)`.
        summary: The first sentence of its docstring.
    """

    package: str
    signature: str
    summary: str


class Pair(NamedTuple):
    """A row of the files."""

    signature: str
    summary: str
    label: str


def main(options: PythonSignatures) -> None:
    """Collects the functions, deals them out, and pairs them."""
    parts: dict[str, list[Function]] = {"train": [], "dev": [], "test": []}
    for function in collect(pathlib.Path(sysconfig.get_path("stdlib"))):
        parts[part_of(function.package, options.held_out)].append(function)
    if min(map(len, parts.values())) < 2:
        counts = ", ".join(f"{len(parts[name])} for {name}" for name in parts)
        raise InputError(
            "The standard library must be there as source files with "
            f"docstrings. Received: functions with one: {counts}. Use a Python "
            "that is not packed or stripped, or another --held_out."
        )
    files.make_directory(options.output_dir)
    for name, functions in parts.items():
        rows = pairs(functions, random.Random(options.seed))
        path = os.path.join(options.output_dir, f"{name}.tsv")
        lines = ("\t".join(row) + "\n" for row in (Pair._fields, *rows))
        files.write_text(path, "".join(lines))
        print(f"{len(rows):,} pairs in {path}")


def part_of(package: str, held_out: int) -> str:
    """Returns train, dev or test: the same with every Python."""
    # Python's own hash differs from run to run.
    bucket = zlib.crc32(package.encode()) % held_out
    return {0: "dev", 1: "test"}.get(bucket, "train")


def pairs(
    functions: Sequence[Function], generator: random.Random
) -> list[Pair]:
    """Returns two rows for each function, those in random order.

    The wrong summaries are dealt out in a circle, so that each comes once.

    Args:
        functions: With different summaries, two or more.
        generator: Draws who gets whose.
    """
    circle = list(functions)
    generator.shuffle(circle)
    rows = []
    for function, other in zip(circle, [*circle[1:], circle[0]], strict=True):
        rows.append(Pair(function.signature, function.summary, "yes"))
        rows.append(Pair(function.signature, other.summary, "no"))
    return rows


def collect(library: pathlib.Path) -> list[Function]:
    """Returns all functions with a summary that none before them has.

    Args:
        library: The folder of the standard library's source.
    """
    found: dict[str, Function] = {}
    for path in python_english.sources(library):
        module = python_english.parse(path)
        if module is not None:
            top = path.relative_to(library).parts[0].removesuffix(".py")
            for signature, summary in functions(module):
                found.setdefault(summary, Function(top, signature, summary))
    return list(found.values())


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yields signatures and summaries, those in functions left out.

    Args:
        node: A module, or what is inside.
        prefix: The classes around it, such as `Message.`.
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
    """Returns the first sentence of a docstring, if it has one of English."""
    first, *_ = (ast.get_docstring(function) or "").split("\n\n")
    return next(python_english.prose(first), None)


def signature_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """Returns the name and what a call gives: no `self`, no defaults."""
    given = function.args
    names = [parameter.arg for parameter in given.posonlyargs + given.args]
    if names[:1] in (["self"], ["cls"]):
        del names[0]
    names += [parameter.arg for parameter in given.kwonlyargs]
    names += [rest.arg for rest in (given.vararg, given.kwarg) if rest]
    return f"{function.name}({', '.join(names)})"


if __name__ == "__main__":
    cli.run(main, PythonSignatures)
