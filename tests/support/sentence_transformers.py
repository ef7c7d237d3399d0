"""Directories of sentence-transformers, and the vectors that it computes."""

import json

import numpy as np

from support.processes import python_with, run_offline


def keep_modules(model, number):
    """Removes all modules but the first ones from a directory."""
    path = model / "modules.json"
    path.write_text(json.dumps(json.loads(path.read_text())[:number]))


def encode_with_sentence_transformers(model, texts, folder, **arguments):
    """Returns the vectors of sentence-transformers; skips a test without it."""
    python = python_with(
        "sentence_transformers", "SENTENCE_TRANSFORMERS_PYTHON"
    )
    code = (
        "import sys, json, numpy, sentence_transformers as st; "
        "model = st.SentenceTransformer(sys.argv[1], device='cpu'); "
        "texts, arguments = map(json.loads, sys.argv[3:]); "
        "numpy.save(sys.argv[2], model.encode(texts, **arguments))"
    )
    path = folder / "vectors.npy"
    inputs = [json.dumps(texts), json.dumps(arguments)]
    run_offline(python, "-c", code, model, path, *inputs)
    return np.load(path)
