"""Directories of sentence-transformers, and the vectors that it computes."""

import json

import numpy as np

from support.processes import python_with, run_offline


def keep_modules(model, number):
    """Removes all modules but the first ones from a directory."""
    path = model / "modules.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:number]))


def encode_with_sentence_transformers(model, texts, folder, **options):
    """Returns the vectors of sentence-transformers."""
    call = "st.SentenceTransformer(model, device='cpu').encode(data, **options)"
    return run_sentence_transformers(call, model, texts, folder, **options)


def run_sentence_transformers(call, model, data, folder, **options):
    """Returns the array of a call; skips a test without the package.

    The call's names are `st`, the package, and `model`, `data` and `options`.
    """
    python = python_with(
        "sentence_transformers", "SENTENCE_TRANSFORMERS_PYTHON"
    )
    code = (
        "import sys, json, numpy, sentence_transformers as st; "
        "model, path, *texts = sys.argv[1:]; "
        f"data, options = map(json.loads, texts); numpy.save(path, {call})"
    )
    path = folder / "array.npy"
    texts = [json.dumps(data), json.dumps(options)]
    run_offline(python, "-c", code, model, path, *texts)
    return np.load(path)
