"""Texts per second of `Embedder` and of sentence-transformers.

  python -m benchmarks.embedding MODEL CORPUS PYTHON

MODEL is a directory of sentence-transformers, and PYTHON has that package.
CORPUS has one text per line; the first 4,000 that are not blank are used, in
batches of 32. Each row is a process of its own, and the best of three rounds.
`difference` is the largest from the vectors of sentence-transformers.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

NUM_TEXTS = 4000
PEER = "sentence-transformers"
ROWS = {
    "ours, TensorFlow float32": ("tensorflow", "float32"),
    "ours, OpenVINO float32": ("openvino", "float32"),
    "ours, OpenVINO bfloat16": ("openvino", "bfloat16"),
}


def load(name: str, model: str) -> Callable[[Sequence[str]], Any]:
    """Returns the function of a row that turns texts into vectors."""
    if name == PEER:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(model, device="cpu").encode
    from official_bert import Embedder

    engine, precision = ROWS[name]
    return Embedder.from_pretrained(model, engine=engine, precision=precision)


def measure(name: str, model: str, corpus: str, output: str) -> None:
    """Prints the seconds of the best round, and writes the vectors."""
    with open(corpus, encoding="utf-8") as file:
        lines = filter(None, map(str.strip, file))
        texts = [line for line, _ in zip(lines, range(NUM_TEXTS), strict=False)]
    embed = load(name, model)
    embed(texts[:64])
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        vectors = embed(texts)
        seconds.append(time.perf_counter() - start)
    np.save(output, vectors)
    print(len(texts) / min(seconds))


def main(model: str, corpus: str, python: str) -> None:
    from benchmarks.step import machine

    print(machine())
    print(f"{'':26}{'texts / s':>10}{'ratio':>7}{'difference':>12}")
    rates, expected = {}, None
    with tempfile.TemporaryDirectory() as directory:
        output = os.path.join(directory, "vectors.npy")
        for name in (PEER, *ROWS):
            command = [python if name == PEER else sys.executable, __file__]
            found = subprocess.run(
                [*command, name, model, corpus, output],
                check=True,
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": os.getcwd()},
            )
            rates[name] = float(found.stdout.split()[-1])
            vectors = np.load(output)
            expected = vectors if expected is None else expected
            difference = np.abs(vectors - expected).max()
            ratio = rates[name] / rates[PEER]
            print(
                f"{name:26}{rates[name]:10.1f}{ratio:7.2f}{difference:12.1e}",
                flush=True,
            )


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) == 4:
        measure(*arguments)
    else:
        main(*arguments)
