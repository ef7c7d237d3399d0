"""Extracts model.npz from recorded arrays of the original implementation.

  python tests/golden/make_model.py GOLDEN_FOLDER

It keeps one padded batch with the losses, logits and gradient norms, and the
pre-training curve with its batches. Weights are not kept: recorded.py
regenerates them.
"""

import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent


def main(golden: pathlib.Path) -> None:
    case = np.load(golden / "model" / "relu" / "pad.npz")
    kept = {
        f"case/{name}": case[name]
        for name in case
        if name.startswith("in/")
        or name in ("out/pooled_output", "out/nsp_logits")
        or name in ("out/mlm_loss", "out/nsp_loss", "out/total_loss")
    }
    every8 = case["out/sequence_output"][:, ::8]
    kept["case/out/sequence_output_every8"] = every8
    for name in case:
        if name.startswith("grad/"):
            kept[f"case/norm/{name[5:]}"] = np.linalg.norm(
                case[name].astype(np.float64)
            )
    training = golden / "training" / "pretraining"
    batches = np.load(training / "batches.npz")
    # Ids are below 1000, and so fit two bytes each.
    kept |= {
        f"batches/{name}": (
            batches[name].astype(np.int16)
            if batches[name].dtype.kind == "i"
            else batches[name]
        )
        for name in batches
    }
    curve = np.load(training / "curve.npz")
    kept |= {name: curve[name] for name in curve if name.startswith("curve/")}
    np.savez_compressed(HERE / "model.npz", **kept)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
