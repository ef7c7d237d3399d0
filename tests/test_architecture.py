"""Imports point downwards, never sideways or upwards, and never in a circle.

    level 4   the commands
    level 3   training        inference        export
    level 2   tasks           checkpoints      pretraining_data
    level 1   modeling        inputs           optimization      hub
    level 0   all others; importable without TensorFlow and NumPy

A package is a module or a directory of `official_bert`. Packages of level 0 may
import each other. No module imports a command.
"""

import ast
import collections
import dataclasses
import graphlib
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

LEVELS = [
    "config options cli files json_files task_file errors progress threads "
    "signals tokenization metrics pages plots",
    "modeling inputs optimization hub",
    "tasks checkpoints pretraining_data",
    "training inference export",
]
LEVEL_OF = {name: n for n, names in enumerate(LEVELS) for name in names.split()}

# What level 0 may import at start-up, and modeling/ anywhere.
LIGHT = {"absl", "tqdm", *sys.stdlib_module_names}
MODELING = {"keras", *sys.stdlib_module_names}

# Modules of level 0 that import NumPy, matplotlib or the like, and are imported
# when they are first used. `test_startup.py` shows that --help does without.
IMPORTED_ON_FIRST_USE = {
    f"official_bert/{name}.py"
    for name in (
        "metrics/classification",
        "metrics/multilabel",
        "metrics/regression",
        "plots/figures",
        "plots/training_curves",
    )
}

# {file name that several files have: the reason}.
SHARED_NAMES: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Import:
    """One imported module or name, and whether it is imported at start-up."""

    name: str
    line: int
    at_start: bool


def find_imports(path: pathlib.Path, package: str) -> Iterator[Import]:
    """Yields all imports of a file, also those inside functions."""

    def walk(node: ast.AST, at_start: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_start)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None]
            origin = ".".join(above) if node.level else ""
            module = ".".join(filter(None, [origin, node.module]))
            for alias in node.names:
                yield Import(f"{module}.{alias.name}", node.lineno, at_start)
        deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing_only = (
            isinstance(node, ast.If)
            and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING"
        )
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_start and not (deferred or typing_only))

    source = path.read_text(encoding="utf-8")
    yield from walk(ast.parse(source, filename=str(path)), True)


def package_of(module: str) -> str | None:
    """Returns PACKAGE of official_bert.PACKAGE.etc, and None for others."""
    top, _, rest = module.partition(".")
    return rest.partition(".")[0] if top == "official_bert" else None


def command_errors(found: Import, commands: set[str]) -> Iterator[str]:
    if found.name.partition(".")[0] in commands:
        yield f"imports the command {found.name}"
    package = package_of(found.name)
    if package is not None and package not in LEVEL_OF:
        yield f"imports {found.name}, which is in no known package"


def import_errors(
    path: str, package: str, found: Import, commands: set[str]
) -> Iterator[str]:
    yield from command_errors(found, commands)
    level, other = LEVEL_OF[package], package_of(found.name)
    if other is None:
        outside = found.name.partition(".")[0]
        at_start = found.at_start and path not in IMPORTED_ON_FIRST_USE
        if level == 0 and at_start and outside not in LIGHT:
            yield f"imports {outside} at start-up"
        if package == "modeling" and outside not in MODELING:
            yield f"imports {outside}, and modeling/ may only import keras"
    elif other in LEVEL_OF and other != package:
        if LEVEL_OF[other] > level:
            yield f"imports {found.name}, up on level {LEVEL_OF[other]}"
        if LEVEL_OF[other] == level > 0:
            yield f"imports {found.name}, sideways on level {level}"


def circles(graph: dict[str, set[str]]) -> Iterator[str]:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield f"a circle: {' -> '.join(reversed(error.args[1]))}"


def imported_file(name: str, files: set[str]) -> str | None:
    """Returns the file of official_bert.a.b, or of a when b is a name in a."""
    path = name.replace(".", "/")
    for place in (path, path.rpartition("/")[0]):
        for file in (f"{place}.py", f"{place}/__init__.py"):
            if file in files:
                return file
    return None


def find_errors(root: pathlib.Path) -> list[str]:
    """Returns a line for each import that breaks a rule, and other faults."""
    found = []
    commands = {path.stem for path in root.glob("*.py")}
    for path in sorted(root.glob("*.py")):
        for line in find_imports(path, package=""):
            for error in command_errors(line, commands):
                found.append(f"{path.name}:{line.line} {error}")
    packages: dict[str, set[str]] = {}
    graph: dict[str, set[str]] = {}
    paths = sorted((root / "official_bert").rglob("*.py"))
    files = {path.relative_to(root).as_posix() for path in paths}
    for path in paths:
        parts = path.relative_to(root).with_suffix("").parts
        name, package = path.relative_to(root).as_posix(), parts[1]
        if package != "__init__" and package not in LEVEL_OF:
            found.append(f"{name} is in no known package")
            continue
        for line in find_imports(path, ".".join(parts[:-1])):
            if package == "__init__":  # All others import it.
                found.append(f"{name}:{line.line} imports {line.name}")
                continue
            for error in import_errors(name, package, line, commands):
                found.append(f"{name}:{line.line} {error}")
            other = package_of(line.name)
            if other not in (None, package):
                packages.setdefault(package, set()).add(other)
            file = imported_file(line.name, files)
            if line.at_start and file not in (None, name):
                graph.setdefault(name, set()).add(file)
    return [*found, *circles(packages), *circles(graph), *shared_names(paths)]


def shared_names(paths: list[pathlib.Path]) -> Iterator[str]:
    counts = collections.Counter(path.name for path in paths)
    del counts["__init__.py"]
    for name, count in counts.items():
        if count > 1 and name not in SHARED_NAMES:
            yield f"{count} files are called {name}"


def test_no_import_points_upwards_sideways_or_in_a_circle():
    assert find_errors(ROOT) == []


def test_only_files_opens_remote_files():
    found = [
        path.name
        for path in (ROOT / "official_bert").rglob("*.py")
        if "gfile" in path.read_text(encoding="utf-8")
    ]
    assert set(found) <= {"files.py"}


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("files", "import gzip\nfrom absl import logging\nimport tqdm"),
        ("files", "def f():\n import tensorflow as tf"),
        ("files", "if TYPE_CHECKING:\n import numpy"),
        ("options", "from official_bert import config, files"),
        ("modeling/heads", "from keras import ops"),
        ("modeling/heads", "from .. import config\nfrom . import encoder"),
        ("tasks/squad/examples", "import official_bert.inputs.records"),
        ("training/loop", "from official_bert import tasks, modeling"),
    ],
)
def test_checker_accepts_imports_from_lower_levels(tmp_path, path, source):
    assert check(tmp_path, path, source) == []


def check(directory, path, source):
    module = directory / "official_bert" / f"{path}.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    (directory / "run_squad.py").write_text("from official_bert import tasks")
    module.write_text(source)
    return find_errors(directory)


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        (
            "files",
            "from official_bert import modeling",
            "official_bert/files.py:1 imports official_bert.modeling, "
            "up on level 1",
        ),
        ("files", "def f():\n from official_bert.inputs import records", ":2 "),
        ("inputs/records", "from ..tasks import glue", "up"),
        ("tasks/squad/examples", "from ...training import loop", "up"),
        ("tasks/glue", "import official_bert.checkpoints.tf1", "sideways"),
        ("config", "import numpy as np", "imports numpy at start-up"),
        ("cli", "try:\n import tensorflow\nexcept ImportError: ...", "start"),
        ("cli", "class C:\n import tensorflow", "start-up"),
        ("modeling/heads", "def f():\n import numpy", "may only import keras"),
        ("training/loop", "import run_squad", "imports the command run_squad"),
        (
            "../predict",
            "from run_squad import main",
            "predict.py:1 imports the",
        ),
        ("tools/shapes", "", "official_bert/tools/shapes.py is in no known"),
        ("../predict", "from official_bert import utils", "no known package"),
        ("__init__", "from official_bert import config", "__init__.py:1"),
    ],
)
def test_checker_finds_the_error_in_a_file(tmp_path, path, source, expected):
    (tmp_path / "official_bert").mkdir()
    [error] = check(tmp_path, path, source)
    assert expected in error


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (  # Of packages, even inside functions.
            {
                "cli": "def f():\n from official_bert import files",
                "files": "def f():\n from official_bert import errors",
                "errors": "def f():\n from official_bert import cli",
            },
            "a circle: ",
        ),
        (  # Of files in one package.
            {
                "tasks/a": "from official_bert.tasks import b",
                "tasks/b": "from official_bert.tasks.c import C",
                "tasks/c": "from . import a",
            },
            "a circle: ",
        ),
        ({"tasks/a": "", "export/a": ""}, "2 files are called a.py"),
    ],
)
def test_checker_finds_the_error_in_several_files(tmp_path, sources, expected):
    for name, source in sources.items():
        path = tmp_path / "official_bert" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    [error] = find_errors(tmp_path)
    assert error.startswith(expected)
    assert error.count(" -> ") == (3 if "circle" in expected else 0)
