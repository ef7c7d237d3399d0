"""Imports point downwards, never sideways or upwards, and never in a circle.

A part is a module or a directory of `official_bert` that `LEVELS` names. Parts
of level 0 may import each other, and do not need NumPy at start-up. TensorFlow
and Keras begin at `KERAS_LEVEL`. The scripts at the top level import commands
only.
"""

import ast
import collections
import graphlib
import sys

import pytest
from support import ROOT

import official_bert

WEIGHTS_OF_FORMATS = "=".join(
    f"sources.formats.{path.parent.name}.weights"
    for path in ROOT.glob("official_bert/sources/formats/*/weights.py")
)

# The longest name that a module's name starts with decides its part. Names that
# "=" joins are one part.
LEVELS = [
    "config errors io options sources sources.checkpoint_paths "
    "sources.released_models runs "
    "tokenization metrics pages plots",
    # NumPy
    "inputs inference.openvino_engine",
    "tasks pretraining_data",
    # Keras and TensorFlow
    "modeling optimization inference.engines=inference.keras_engine "
    "export.saved_model "
    "inputs.datasets=inputs.records",
    "hub inference.forward export.quantization "
    "sources.loading=sources.stored_model=sources.converter="
    "sources.weight_names=sources.model_card=sources.model_changes="
    f"sources.formats.tf1.checkpoint={WEIGHTS_OF_FORMATS}="
    "runs.checkpoints",
    "export.engine_models",
    "training inference export",
    "commands=__main__",
]
KERAS_LEVEL = 3
LEVEL_OF = {name: n for n, names in enumerate(LEVELS) for name in names.split()}
PART_OF = {name: part for part in LEVEL_OF for name in part.split("=")}

# What level 0 may import at start-up, and modeling/ anywhere.
LIGHT = {"absl", "tqdm", *sys.stdlib_module_names}
MODELING = {"keras", *sys.stdlib_module_names}
KERAS = {"keras", "tensorflow", "tensorflow_hub", "tensorflow_text"}
# Reads remote files with TensorFlow.
MAY_IMPORT_TENSORFLOW = "official_bert/io/files.py"

# Modules of level 0 that import NumPy, matplotlib or the like, and are imported
# when they are first used. `test_startup.py` shows that --help does without.
IMPORTED_ON_FIRST_USE = {
    "official_bert/metrics/classification.py",
    "official_bert/metrics/regression.py",
    "official_bert/metrics/ranking.py",
    "official_bert/plots/figures.py",
    "official_bert/plots/training_curves.py",
}


def find_imports(node, at_start=True):
    """Yields (line, name, at_start) of all imports, also inside functions.

    Methods such as `from_pretrained` are left out, because they need higher
    levels.
    """
    if getattr(node, "name", None) in ("from_pretrained", "save_pretrained"):
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        module = ""
        if isinstance(node, ast.ImportFrom):
            module = f"{node.module}."  # Relative imports are linting errors.
        for alias in node.names:
            yield node.lineno, module + alias.name, at_start
    is_deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    if isinstance(node, ast.If):
        is_deferred = "TYPE_CHECKING" in ast.unparse(node.test)
    for child in ast.iter_child_nodes(node):
        yield from find_imports(child, at_start and not is_deferred)


def part_of(name):
    """Returns the part that a module of official_bert is in, None for others.

    The part is "" for the package itself, and "?" for unknown modules.
    """
    top, _, rest = name.partition(".")
    if top != "official_bert":
        return None
    while rest and rest not in PART_OF:
        rest = rest.rpartition(".")[0]
    return PART_OF.get(rest, "" if name == "official_bert" else "?")


def import_error(file, part, name, at_start):
    """Returns the rule that an import breaks, if any."""
    top, other = name.partition(".")[0], part_of(name)
    level, other_level = LEVEL_OF.get(part), LEVEL_OF.get(other)
    if other is None:
        at_start = at_start and file not in IMPORTED_ON_FIRST_USE
        is_below = level is not None and level < KERAS_LEVEL
        if is_below and top in KERAS and file != MAY_IMPORT_TENSORFLOW:
            return f"imports {top} below level {KERAS_LEVEL}"
        if level == 0 and at_start and top not in LIGHT:
            return f"imports {top} at start-up"
        if part == "modeling" and top not in MODELING:
            return f"imports {top}, and modeling/ may only import keras"
    elif other == "?":
        return f"imports {name}, which is in no known part"
    elif part == "":  # All others import the package.
        return f"imports {name} at start-up" if at_start else None
    elif part is None:
        return (
            None
            if other.startswith("commands")
            else f"imports {name}, no command"
        )
    elif other != part and other_level > level:
        return f"imports {name}, up on level {other_level}"
    elif other != part and other_level == level > 0:
        return f"imports {name}, sideways on level {level}"
    return None


def imported_file(name, files):
    """Returns the file of official_bert.a.b, or of a when b is a name in a."""
    path = name.replace(".", "/")
    for place in (path, path.rpartition("/")[0]):
        for file in (f"{place}.py", f"{place}/__init__.py"):
            if file in files:
                return file
    return None


def find_errors(root):
    """Returns a line for each import that breaks a rule, and other faults."""
    found = []
    paths = sorted([*root.glob("*.py"), *root.glob("official_bert/**/*.py")])
    files = [path.relative_to(root).as_posix() for path in paths]
    parts, graph = collections.defaultdict(set), collections.defaultdict(set)
    for path, file in zip(paths, files, strict=True):
        module = file.removesuffix(".py").removesuffix("/__init__")
        part = part_of(module.replace("/", "."))
        if part == "?":
            found.append(f"{file} is in no known part")
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=file)
        for line, name, at_start in find_imports(tree):
            error = import_error(file, part, name, at_start)
            if error:
                found.append(f"{file}:{line} {error}")
            other = part_of(name)
            if part not in (None, "") and other not in (None, part):
                parts[part].add(other)
            other = imported_file(name, files)
            if at_start and other not in (None, file):
                graph[file].add(other)
    for circle in (parts, graph):
        try:
            graphlib.TopologicalSorter(circle).prepare()
        except graphlib.CycleError as error:
            found.append(f"a circle: {' -> '.join(reversed(error.args[1]))}")
    return found


def test_public_names_of_the_package_are_those_of_its_modules():
    for name in official_bert.__all__:
        assert getattr(official_bert, name).__name__ == name
        assert name in dir(official_bert)
    with pytest.raises(AttributeError, match="no attribute 'bert'"):
        _ = official_bert.bert


def test_no_import_points_upwards_sideways_or_in_a_circle():
    assert find_errors(ROOT) == []


CIRCLE = ["config", "io", "errors"]
CIRCLE_OF_PACKAGES = {
    name: f"def f():\n from official_bert import {other}"
    for name, other in zip(CIRCLE, CIRCLE[1:] + CIRCLE[:1], strict=True)
}
CIRCLE_OF_FILES = {
    "tasks/a": "from official_bert.tasks import b",
    "tasks/b": "from official_bert.tasks.c import C",
    "tasks/c": "from official_bert.tasks import a",
}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ({"io/a": "from official_bert import modeling"}, "up on level 3"),
        ({"io/a": "def f():\n from official_bert.inputs import b"}, ":2 "),
        ({"tasks/glue": "from official_bert.training import loop"}, "up on"),
        ({"tasks/glue": "import official_bert.sources.loading"}, "up on"),
        ({"tasks/glue": "import official_bert.pretraining_data"}, "sideways"),
        ({"tasks/glue": "def f():\n import keras"}, "below level 3"),
        ({"config": "import numpy as np"}, "imports numpy at start-up"),
        ({"io/a": "try:\n import jax\nexcept ImportError: ..."}, "start-up"),
        ({"io/a": "class C:\n import numpy"}, "at start-up"),
        ({"modeling/heads": "def f():\n import numpy"}, "only import keras"),
        ({"training/loop": "from official_bert import commands"}, "up on"),
        ({"../predict": "from official_bert import tasks"}, "no command"),
        ({"../predict": "from official_bert import utils"}, "no known part"),
        ({"tools/shapes": ""}, "official_bert/tools/shapes.py is in no known"),
        ({"__init__": "from official_bert import config"}, "__init__.py:1"),
        (CIRCLE_OF_PACKAGES, "a circle: "),
        (CIRCLE_OF_FILES, "a circle: "),
    ],
)
def test_forbidden_import_is_found(tmp_path, sources, expected):
    """The imports of this project show that it accepts all others."""
    (tmp_path / "run_squad.py").write_text("from official_bert import commands")
    for name, source in {"__init__": "", **sources}.items():
        path = tmp_path / "official_bert" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    [error] = find_errors(tmp_path)
    assert expected in error
    if expected == "a circle: ":
        assert error.count(" -> ") == 3
