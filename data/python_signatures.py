"""Writes a labelled task: does this summary belong to this function?

    python -m data.python_signatures --output_dir=/tmp/signatures

The examples are functions of Python's standard library. Each gives two rows,
its signature with the first sentence of its docstring, and the same with that
of another function:

    signature                 summary                              label
    Queue.qsize(self)         Number of items in the queue.        yes
    Queue.qsize(self)         Parse a list of header fields.       no

Every summary is right once and wrong once, so that neither half of a pair tells
anything without the other. It writes `train.tsv`, `dev.tsv` and `test.tsv`,
which share no package, nor any summary.
"""

import ast
import dataclasses
import os
import pathlib
import random
import sysconfig
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from data import python_english
from official_bert import cli, files
from official_bert.cli import option

COLUMNS = ("signature", "summary", "label")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PythonSignatures(cli.Options):
    """Options of `data/python_signatures.py`."""

    output_dir: str = option("Folder for train.tsv, dev.tsv and test.tsv.")
    seed: int = option("Seed of which summaries go to which functions.", 12345)
    how: str = option("x", "any")
    style: str = option("x", "full")


class Function(NamedTuple):
    """A function, as its users see it.

    Attributes:
        signature: Such as `Queue.put(self, item)`.
        summary: The first sentence about it.
    """

    signature: str
    summary: str


def main(options: PythonSignatures) -> None:
    """Collects the functions and deals them out to the three files."""
    parts: dict[str, list] = {"train": [], "dev": [], "test": []}
    for package, found in collect(
        pathlib.Path(sysconfig.get_path("stdlib"))
    ).items():
        parts[part_of(package)].append(found)
    files.make_directory(options.output_dir)
    for name, groups in parts.items():
        generator = random.Random(options.seed)
        if options.how == "any":
            groups = [[f for g in groups for m in g for f in m]]
        elif options.how == "package":
            groups = [[f for m in g for f in m] for g in groups]
        else:
            groups = [m for g in groups for m in g]
        rows = [
            r
            for g in groups
            if len(g) > 1
            for r in pairs(g, generator, options.style)
        ]
        generator.shuffle(rows)
        path = os.path.join(options.output_dir, f"{name}.tsv")
        lines = ("\t".join(row) + "\n" for row in (COLUMNS, *rows))
        files.write_text(path, "".join(lines))
        print(name, len(rows))


def part_of(package: str) -> str:
    return {0: "dev", 1: "test"}.get(zlib.crc32(package.encode()) % 10, "train")


def collect(library: pathlib.Path) -> dict:
    seen: set[str] = set()
    packages: dict[str, list[list[Function]]] = {}
    for path in python_english.sources(library):
        module = python_english.parse(path)
        if module is None:
            continue
        found = []
        for function in functions(module):
            if function.summary not in seen:
                seen.add(function.summary)
                found.append(function)
        packages.setdefault(
            path.relative_to(library).parts[0].removesuffix(".py"), []
        ).append(found)
    return packages


def functions(node: ast.AST, prefix: str = "") -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(child) or ""
            summary = next(python_english.prose(text.split("\n\n")[0]), None)
            if summary:
                yield Function(
                    f"{prefix}{child.name}({ast.unparse(child.args)})", summary
                )
        else:
            yield from functions(child, prefix)


def pairs(
    functions: list[Function], generator, style
) -> Iterator[tuple[str, str, str]]:
    order = functions[:]
    generator.shuffle(order)
    for f, other in zip(order, [*order[1:], order[0]], strict=True):
        s = f.signature
        if style == "names":
            s = s.split("(")[0]
        yield s, f.summary, "yes"
        yield s, other.summary, "no"


if __name__ == "__main__":
    cli.run(main, PythonSignatures)
