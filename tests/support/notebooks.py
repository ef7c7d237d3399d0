"""Runs the notebooks of the documentation without a network.

  PYTHONPATH=.:tests python -m support.notebooks

runs them and stores their outputs.
"""

import contextlib
import os
import pathlib
import re
import shutil
import sys
import tempfile

import numpy as np

from official_bert.checkpoints import tf1, weights
from official_bert.config import BertConfig
from support import ROOT, SPECIAL, hub_server, write_vocab

NOTEBOOKS = sorted((ROOT / "docs").glob("*.ipynb"))

_REPOSITORY = "google/bert_uncased_L-2_H-128_A-2"
_TINY = BertConfig(
    vocab_size=30522,
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=512,
)


def write_tiny(directory: pathlib.Path) -> None:
    """Writes BERT-Tiny with random weights, and the words of all notebooks."""
    directory.mkdir(parents=True)
    source = " ".join(path.read_text() for path in NOTEBOOKS)
    words = sorted(set(re.findall("[a-z]+", source.lower())))
    vocab = [*SPECIAL, *".,'?", *words]
    unused = range(_TINY.vocab_size - len(vocab))
    vocab += [f"[unused{index}]" for index in unused]
    write_vocab(directory, vocab)
    (directory / "bert_config.json").write_text(_TINY.to_json_string())
    random = np.random.default_rng(0)
    arrays = {}
    for name, shape in weights.shapes(_TINY).items():
        if not weights.is_finetuned(name):
            scale = 0.0 if name.endswith(("bias", "beta", "gamma")) else 0.02
            mean = 1.0 if name.endswith("gamma") else 0.0
            array = random.normal(mean, scale, shape).astype(np.float32)
            arrays[name] = array
    tf1.write(str(directory / "bert_model.ckpt"), arrays)


@contextlib.contextmanager
def workspace(folder: pathlib.Path):
    """Yields a directory to run notebooks in, with a Hub on this machine.

    It is the directory `docs` in a copy of the repository made of links.
    """
    write_tiny(folder / "served" / _REPOSITORY)
    copy = folder / "repository"
    (copy / "docs").mkdir(parents=True)
    for path in [*ROOT.glob("*.py"), ROOT / "official_bert"]:
        (copy / path.name).symlink_to(path)
    bin_directory = pathlib.Path(sys.executable).parent
    with hub_server.serving(folder / "served") as server:
        changes = {
            **server.environment(folder),
            "IPYTHONDIR": str(folder / "ipython"),
            "PATH": f"{bin_directory}{os.pathsep}{os.environ['PATH']}",
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        with _environment(changes):
            yield copy / "docs"


def run(path: pathlib.Path, folder: pathlib.Path):
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


@contextlib.contextmanager
def _environment(changes):
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _store_outputs() -> None:
    import nbformat

    folder = pathlib.Path(tempfile.mkdtemp())
    with workspace(folder) as directory:
        for path in NOTEBOOKS:
            nbformat.write(run(path, directory), path)
    shutil.rmtree(folder)


if __name__ == "__main__":
    _store_outputs()
