"""Creates `captum.json`: integrated gradients of small models.

  CAPTUM_PYTHON=PYTHON python -m tools.golden.make_captum

PYTHON is one that has captum, transformers and PyTorch; made with captum 0.9.0.
The models are those of tests/support/conversions.py, with random weights.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))


def main() -> None:
    from tools.golden import captum_process

    conversions = importlib.import_module("support.conversions")
    found = {}
    for name, head in conversions.HEADS.items():
        if head.architecture not in captum_process.INPUTS:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / "tf1"
            conversions.released(folder, name)
            hf = conversions.to_hf(folder, name)
            command = [captum_process.__file__, head.architecture, str(hf)]
            python = os.environ["CAPTUM_PYTHON"]
            subprocess.run([python, *command], check=True)
            rows = json.loads((hf / "attributions.json").read_text())
        found[name] = [[round(x, 8) for x in row] for row in rows]
    path = ROOT / "tests" / "golden" / "captum.json"
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
