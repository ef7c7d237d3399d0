"""Imports point downwards, never sideways or upwards, and never in a circle.

A package is a module or a directory of `official_bert`. Packages of level 0 may
import each other, and do not need TensorFlow or NumPy. No module imports a
command; the commands are level 4.
"""

import ast
import collections
import graphlib
import pathlib
import sys

import pytest
from support import ROOT

import official_bert

LEVELS = [
    "__main__ config options cli detection flags files huggingface_files "
    "json_files keras_hub_files model_formats pretrained released_models "
    "task_file tables errors progress threads signals tokenization metrics "
    "pages plots",
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
    "official_bert/metrics/classification.py",
    "official_bert/metrics/regression.py",
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


def package_of(name):
    """Returns PACKAGE of official_bert.PACKAGE.etc, and None for others."""
    top, _, rest = name.partition(".")
    return rest.partition(".")[0] if top == "official_bert" else None


def import_error(file, package, name, at_start, commands):
    """Returns the rule that an import breaks, if any."""
    top, other = name.partition(".")[0], package_of(name)
    level, other_level = LEVEL_OF.get(package, 4), LEVEL_OF.get(other)
    if top in commands:
        return f"imports the command {name}"
    if other is None:
        at_start = at_start and file not in IMPORTED_ON_FIRST_USE
        if level == 0 and at_start and top not in LIGHT:
            return f"imports {top} at start-up"
        if package == "modeling" and top not in MODELING:
            return f"imports {top}, and modeling/ may only import keras"
    elif other_level is None:
        return f"imports {name}, which is in no known package"
    elif package == "__init__":  # All others import it.
        return f"imports {name} at start-up" if at_start else None
    elif other != package and other_level > level:
        return f"imports {name}, up on level {other_level}"
    elif other != package and other_level == level > 0:
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
    commands = {path.stem for path in root.glob("*.py")}
    paths = sorted([*root.glob("*.py"), *root.glob("official_bert/**/*.py")])
    files = [path.relative_to(root).as_posix() for path in paths]
    packages, graph = collections.defaultdict(set), collections.defaultdict(set)
    for path, file in zip(paths, files, strict=True):
        package = package_of(file.removesuffix(".py").replace("/", "."))
        if package not in (None, "__init__", *LEVEL_OF):
            found.append(f"{file} is in no known package")
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=file)
        for line, name, at_start in find_imports(tree):
            error = import_error(file, package, name, at_start, commands)
            if error:
                found.append(f"{file}:{line} {error}")
            other = package_of(name)
            if other not in (None, package):
                packages[package].add(other)
            other = imported_file(name, files)
            if at_start and other not in (None, file):
                graph[file].add(other)
    for circle in (packages, graph):
        try:
            graphlib.TopologicalSorter(circle).prepare()
        except graphlib.CycleError as error:
            found.append(f"a circle: {' -> '.join(reversed(error.args[1]))}")
    names = [pathlib.Path(f).name for f in files if "/" in f]
    counts = collections.Counter(n for n in names if n != "__init__.py")
    twice = [name for name in counts if counts[name] > 1]
    return found + [f"{counts[n]} files are called {n}" for n in twice]


def test_public_names_of_the_package_are_those_of_its_modules():
    for name in official_bert.__all__:
        assert getattr(official_bert, name).__name__ == name
        assert name in dir(official_bert)
    with pytest.raises(AttributeError, match="no attribute 'bert'"):
        _ = official_bert.bert


def test_no_import_points_upwards_sideways_or_in_a_circle():
    assert find_errors(ROOT) == []


CIRCLE = ["cli", "files", "errors"]
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
        ({"files": "from official_bert import modeling"}, "up on level 1"),
        ({"files": "def f():\n from official_bert.inputs import a"}, ":2 "),
        ({"tasks/glue": "from official_bert.training import loop"}, "up on"),
        ({"tasks/glue": "import official_bert.checkpoints.tf1"}, "sideways"),
        ({"config": "import numpy as np"}, "imports numpy at start-up"),
        ({"cli": "try:\n import keras\nexcept ImportError: ..."}, "start-up"),
        ({"cli": "class C:\n import tensorflow"}, "at start-up"),
        ({"modeling/heads": "def f():\n import numpy"}, "only import keras"),
        ({"training/loop": "import run_squad"}, "the command run_squad"),
        ({"../predict": "from run_squad import main"}, "predict.py:1 imports"),
        ({"../predict": "from official_bert import utils"}, "no known package"),
        ({"tools/shapes": ""}, "official_bert/tools/shapes.py is in no known"),
        ({"__init__": "from official_bert import config"}, "__init__.py:1"),
        (CIRCLE_OF_PACKAGES, "a circle: "),
        (CIRCLE_OF_FILES, "a circle: "),
        ({"tasks/a": "", "export/a": ""}, "2 files are called a.py"),
    ],
)
def test_forbidden_import_is_found(tmp_path, sources, expected):
    """The imports of this project show that it accepts all others."""
    (tmp_path / "run_squad.py").write_text("from official_bert import tasks")
    for name, source in {"__init__": "", **sources}.items():
        path = tmp_path / "official_bert" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    [error] = find_errors(tmp_path)
    assert expected in error
    if expected == "a circle: ":
        assert error.count(" -> ") == 3
