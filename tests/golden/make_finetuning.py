"""Extracts finetuning.npz from recorded arrays of the 2018 release.

  python tests/golden/make_finetuning.py GOLDEN_FOLDER

It keeps the batches, the first weights of the heads and the curves of the two
recorded fine-tuning runs.
"""

import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent


def main(golden: pathlib.Path) -> None:
    kept = {}
    for task in ("classifier", "squad"):
        folder = golden / "training" / f"{task}_dense"
        batches = np.load(folder / "batches.npz")
        # Ids are below 1000, and so fit two bytes each; SQuAD's numbers of
        # examples do not, and are not needed.
        kept |= {
            f"{task}/batches/{name}": batches[name].astype(np.int16)
            for name in batches
            if not name.endswith("unique_ids")
        }
        curve = np.load(folder / "curve.npz")
        kept |= {
            f"{task}/{name}": curve[name]
            for name in curve
            if name.startswith(("curve/", "extra_init/"))
        }
    np.savez_compressed(HERE / "finetuning.npz", **kept)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
