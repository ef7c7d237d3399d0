"""A module imports from the floors below: never sideways, never up.

    floor 4   the commands
    floor 3   training        inference        export
    floor 2   tasks           checkpoints      pretraining_data
    floor 1   modeling        inputs           optimization      hub
    floor 0   config options cli files json_files task_file errors progress
              threads signals tokenization metrics pages plots

A room is a module or a folder of `official_bert`. The rooms of floor 0 may
import each other, but not in a circle, and nothing there imports TensorFlow or
its like at start-up. Nobody imports a command.
"""

import ast
import dataclasses
import graphlib
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]

FLOORS = [
    "config options cli files json_files task_file errors progress "
    "threads signals tokenization metrics pages plots",
    "modeling inputs optimization hub",
    "tasks checkpoints pretraining_data",
    "training inference export",
]
FLOOR_OF = {
    room: floor for floor, rooms in enumerate(FLOORS) for room in rooms.split()
}

# What floor 0 may import at start-up, and modeling/ anywhere.
LIGHT = {"absl", "tqdm", *sys.stdlib_module_names}
MODELING = {"keras", *sys.stdlib_module_names}

# The vectorised tokenizer, the scores of arrays and the plots: imported when
# they are first used. `test_startup.py` sees to it that no --help does.
ON_FIRST_USE = {
    *(
        f"official_bert/tokenization/{name}.py"
        for name in ("alphabet", "vectorized", "word_table")
    ),
    *(
        f"official_bert/metrics/{name}.py"
        for name in ("classification", "multilabel", "regression")
    ),
    *(f"official_bert/plots/{name}.py" for name in ("drawing", "events")),
}


@dataclasses.dataclass(frozen=True)
class Import:
    """One imported module, and whether it is imported when the file is."""

    name: str
    line: int
    at_start: bool


def imports(path: pathlib.Path, package: str) -> Iterator[Import]:
    """Yields all imports of a file, those inside functions too."""

    def walk(node: ast.AST, at_start: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_start)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None]
            origin = ".".join(above) if node.level else ""
            module = ".".join(filter(None, [origin, node.module]))
            for alias in node.names:
                # `from official_bert import files` imports official_bert.files.
                is_room = module == "official_bert"
                name = f"{module}.{alias.name}" if is_room else module
                yield Import(name, node.lineno, at_start)
        deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing_only = (
            isinstance(node, ast.If)
            and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING"
        )
        for child in ast.iter_child_nodes(node):
            yield from walk(child, at_start and not (deferred or typing_only))

    source = path.read_text(encoding="utf-8")
    yield from walk(ast.parse(source, filename=str(path)), True)


def room_of(module: str) -> str | None:
    """Returns the room of official_bert.ROOM.etc, and None for other names."""
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "official_bert" else None


def faults_of_command(found: Import, commands: set[str]) -> Iterator[str]:
    if found.name.partition(".")[0] in commands:
        yield f"imports the command {found.name}"
    room = room_of(found.name)
    if room is not None and room not in FLOOR_OF:
        yield f"imports {found.name}, which is in no known room"


def faults_of_module(
    path: str, room: str, found: Import, commands: set[str]
) -> Iterator[str]:
    yield from faults_of_command(found, commands)
    floor = FLOOR_OF[room]
    other = room_of(found.name)
    outside = found.name.partition(".")[0]
    if other is None:
        at_start = found.at_start and path not in ON_FIRST_USE
        if floor == 0 and at_start and outside not in LIGHT:
            yield f"imports {outside} at start-up"
        if room == "modeling" and outside not in MODELING:
            yield f"imports {outside}, and modeling/ may only import keras"
    elif other in FLOOR_OF and other != room:
        if FLOOR_OF[other] > floor:
            yield f"imports {found.name}, up on floor {FLOOR_OF[other]}"
        if FLOOR_OF[other] == floor > 0:
            yield f"imports {found.name}, sideways on floor {floor}"


def faults(root: pathlib.Path) -> list[str]:
    """Returns a line for every arrow that points the wrong way."""
    found = []
    commands = {path.stem for path in root.glob("*.py")}
    for path in sorted(root.glob("*.py")):
        for line in imports(path, package=""):
            for fault in faults_of_command(line, commands):
                found.append(f"{path.name}:{line.line} {fault}")
    arrows: dict[str, set[str]] = {}
    for path in sorted((root / "official_bert").rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = path.relative_to(root).as_posix()
        room = parts[1]
        if room == "__init__":
            # Everybody imports it, so it imports nothing.
            for line in imports(path, "official_bert"):
                found.append(f"{name}:{line.line} imports {line.name}")
        elif room not in FLOOR_OF:
            found.append(f"{name} is in no known room")
        else:
            for line in imports(path, ".".join(parts[:-1])):
                for fault in faults_of_module(name, room, line, commands):
                    found.append(f"{name}:{line.line} {fault}")
                other = room_of(line.name)
                if other not in (None, room):
                    arrows.setdefault(room, set()).add(other)
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        found.append(f"a circle: {' -> '.join(reversed(error.args[1]))}")
    return found


def test_every_arrow_points_down():
    assert faults(ROOT) == []


def test_files_is_the_one_door():
    found = [
        path.relative_to(ROOT / "official_bert").as_posix()
        for path in (ROOT / "official_bert").rglob("*.py")
        if "gfile" in path.read_text(encoding="utf-8")
    ]
    assert found
    assert found == ["files.py"]


def test_the_house_is_not_empty():
    rooms = {path.stem for path in (ROOT / "official_bert").iterdir()}

    assert {"config", "options", "cli", "files", "errors"} <= rooms


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        # Allowed:
        ("files", "import gzip\nfrom absl import logging\nimport tqdm", None),
        ("files", "def f():\n import tensorflow as tf", None),
        ("files", "if TYPE_CHECKING:\n import numpy", None),
        ("options", "from official_bert import config, files", None),
        ("modeling/heads", "from keras import ops", None),
        ("modeling/heads", "from official_bert.config import BertConfig", None),
        ("modeling/heads", "from official_bert.modeling import encoder", None),
        ("modeling/heads", "from . import encoder", None),
        ("modeling/heads", "from .. import config", None),
        (
            "tasks/squad/answer_text",
            "import official_bert.inputs.records",
            None,
        ),
        ("training/loop", "from official_bert import tasks, modeling", None),
        # Up:
        (
            "files",
            "from official_bert import modeling",
            "official_bert/files.py:1 imports official_bert.modeling, "
            "up on floor 1",
        ),
        ("files", "def f():\n from official_bert.inputs import records", ":2 "),
        ("inputs/records", "from official_bert.tasks import glue", "up"),
        ("inputs/records", "from ..tasks import glue", "up"),
        ("tasks/squad/answer_text", "from ...training import loop", "up"),
        ("tasks/glue", "def f():\n import official_bert.training.loop", "up"),
        # Sideways:
        ("inputs/records", "from official_bert import modeling", "sideways"),
        ("tasks/glue", "import official_bert.checkpoints.tf1", "sideways"),
        ("training/loop", "from official_bert.export import hub", "sideways"),
        # Too heavy for the ground floor:
        ("config", "import numpy as np", "imports numpy at start-up"),
        ("metrics/glue", "from keras import ops", "imports keras at start-up"),
        (
            "cli",
            "try:\n import tensorflow\nexcept ImportError: ...",
            "start-up",
        ),
        ("cli", "class C:\n import tensorflow", "start-up"),
        # Not Keras:
        ("modeling/heads", "import tensorflow as tf", "may only import keras"),
        ("modeling/heads", "def f():\n import numpy", "may only import keras"),
        # A command:
        ("training/loop", "import run_squad", "imports the command run_squad"),
        ("cli", "def f():\n from run_squad import main", "the command"),
        (
            "../predict",
            "from run_squad import main",
            "predict.py:1 imports the",
        ),
        # A room that is not in the plan:
        ("utils", "", "official_bert/utils.py is in no known room"),
        ("tools/shapes", "", "official_bert/tools/shapes.py is in no known"),
        ("training/loop", "from official_bert import utils", "no known room"),
        ("../predict", "from official_bert import utils", "no known room"),
        ("__init__", "from official_bert import config", "__init__.py:1"),
    ],
)
def test_the_checker_sees(tmp_path, path, source, expected):
    (tmp_path / "official_bert").mkdir()
    (tmp_path / "run_squad.py").write_text("from official_bert import tasks")
    module = tmp_path / "official_bert" / f"{path}.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(source)

    found = faults(tmp_path)

    if expected is None:
        assert found == []
    else:
        [fault] = found
        assert expected in fault


def test_the_checker_sees_a_circle(tmp_path):
    (tmp_path / "official_bert").mkdir()
    for name, other in [
        ("cli", "files"),
        ("files", "errors"),
        ("errors", "cli"),
    ]:
        path = tmp_path / "official_bert" / f"{name}.py"
        path.write_text(f"def f():\n    from official_bert import {other}")

    [fault] = faults(tmp_path)

    assert fault.startswith("a circle: ")
    assert fault.count(" -> ") == 3
