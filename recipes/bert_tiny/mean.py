"""Writes the mean of the weights of two models in the format of Hugging Face.

  python recipes/bert_tiny/mean.py FIRST SECOND OUTPUT

Position embeddings after the 128th are those of the second model, because the
last stage of the first one had 128 tokens.
"""

import os
import shutil
import sys

from safetensors.numpy import load_file, save_file

POSITIONS = "bert.embeddings.position_embeddings.weight"


def main(first: str, second: str, output: str) -> None:
    """Writes a directory; its other files are those of the second model."""
    name = "model.safetensors"
    weights = load_file(os.path.join(first, name))
    others = load_file(os.path.join(second, name))
    means = {key: (weights[key] + others[key]) / 2 for key in others}
    means[POSITIONS][128:] = others[POSITIONS][128:]
    shutil.copytree(second, output)
    save_file(means, os.path.join(output, name), metadata={"format": "pt"})


if __name__ == "__main__":
    main(*sys.argv[1:])
