"""Runs the notebooks of the documentation without a network.

  python docs/run_notebooks.py

runs them and stores their outputs.
"""

import contextlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))


@contextlib.contextmanager
def workspace(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yields a directory to run notebooks in, without a network.

    It is the directory `docs` in a copy of the repository made of links.
    """
    copy = folder / "repository"
    (copy / "docs").mkdir(parents=True)
    for path in [*ROOT.glob("*.py"), ROOT / "official_bert", ROOT / "data"]:
        (copy / path.name).symlink_to(path)
    bin_directory = pathlib.Path(sys.executable).parent
    changes = {
        "HF_HUB_OFFLINE": "1",
        "IPYTHONDIR": str(folder / "ipython"),
        "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    with mock.patch.dict(os.environ, changes):
        yield copy / "docs"


def run(path: pathlib.Path, folder: pathlib.Path) -> Any:
    """Returns a notebook with the outputs of a run in `folder`.

    Without stderr, which has paths of this machine and progress bars.
    """
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # Times.
        if cell.cell_type == "code":
            cell.outputs = [
                output
                for output in cell.outputs
                if output.get("name") != "stderr"
            ]
    notebook.metadata.language_info = {"name": "python"}
    return notebook


def _store_outputs() -> None:
    import nbformat

    with (
        tempfile.TemporaryDirectory() as folder,
        workspace(pathlib.Path(folder)) as directory,
    ):
        for path in NOTEBOOKS:
            nbformat.write(run(path, directory), path)


if __name__ == "__main__":
    _store_outputs()
