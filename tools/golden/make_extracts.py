"""Writes extracts of the recorded results of the original implementation.

  python tools/golden/make_extracts.py GOLDEN_DIRECTORY

Weights are not kept: `support/recorded.py` computes them.
"""

import base64
import collections
import gzip
import json
import math
import pathlib
import sys
from typing import Any

import numpy as np

GOLDEN = pathlib.Path(__file__).parents[2] / "tests" / "golden"
VOCABULARIES = ("uncased", "multi_cased")


def bert_config(golden: pathlib.Path) -> dict[str, Any]:
    """Returns {case: [outcome, value]} and the numbers of weights."""
    about = (
        *("BertConfig", "from_json_file", "get_activation('"),
        "get_activation(None",
    )
    cases = json.loads((golden / "misc.json").read_text())["cases"]
    parameters = {}
    for name in ("base", "relu", "real_size"):
        checkpoint = golden / "model" / name
        record = json.loads((checkpoint / "variables.json").read_text())
        sizes = {name: math.prod(shape) for name, shape in record["variables"]}
        encoder = [sizes[name] for name in sizes if name.startswith("bert/")]
        parameters[name] = {
            "config": json.loads((checkpoint / "bert_config.json").read_text()),
            "encoder": sum(encoder),
            "with_heads": sum(sizes.values()),
        }
    kept = {case[0]: case[1:] for case in cases if case[0].startswith(about)}
    return {"cases": kept, "parameters": parameters}


def model(golden: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns one padded batch with its results, and the pre-training curve."""
    case = np.load(golden / "model" / "relu" / "pad.npz")
    names = [name for name in case if name.startswith("in/")]
    names += ["out/pooled_output", "out/nsp_logits"]
    names += ["out/mlm_loss", "out/nsp_loss", "out/total_loss"]
    kept = {f"case/{name}": case[name] for name in names}
    every8 = case["out/sequence_output"][:, ::8]
    kept["case/out/sequence_output_every8"] = every8
    for name in case:
        if name.startswith("grad/"):
            gradient = case[name].astype(np.float64)
            kept[f"case/norm/{name[5:]}"] = np.linalg.norm(gradient)
    training = golden / "training" / "pretraining"
    for name, value in np.load(training / "batches.npz").items():
        kept[f"batches/{name}"] = shrink(value)
    curve = np.load(training / "curve.npz")
    return kept | {n: curve[n] for n in curve if n.startswith("curve/")}


def finetuning(golden: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns batches, first weights of the heads and curves of two runs."""
    kept = {}
    for task in ("classifier", "squad"):
        directory = golden / "training" / f"{task}_dense"
        for name, value in np.load(directory / "batches.npz").items():
            if not name.endswith("unique_ids"):  # Not needed.
                kept[f"{task}/batches/{name}"] = shrink(value)
        for name, value in np.load(directory / "curve.npz").items():
            if name.startswith(("curve/", "extra_init/")):
                kept[f"{task}/{name}"] = value
    return kept


def shrink(array: np.ndarray) -> np.ndarray:
    # Ids are below 1000, and so fit two bytes each.
    return array.astype(np.int16) if array.dtype.kind == "i" else array


def tokenization(golden: pathlib.Path) -> dict[str, Any]:
    """Returns short strings of every kind and the odd vocabulary files.

    All versions of Python agree on these strings. Of each vocabulary it keeps
    the tokens in the results, which suffice to tokenize them in the same way.
    """
    path = golden / "tokenization" / "tokenized.jsonl.gz"
    fields = {"text", "b64", "basic_lower", "basic_cased", "wp_raw_uncased"}
    fields |= {f"tok_{name}" for name in VOCABULARIES}
    records = []
    num_of_kind: collections.Counter[str] = collections.Counter()
    for line in gzip.decompress(path.read_bytes()).splitlines():
        record = json.loads(line)
        length = len(record.get("text", record.get("b64")))
        if "pydiff" in record or not 0 < length <= 24:
            continue
        num_of_kind[record["kind"]] += 1
        if record["kind"] == "fixed" or num_of_kind[record["kind"]] <= 5:
            records.append({n: record[n] for n in record if n in fields})
    vocabularies = {}
    for name in VOCABULARIES:
        tokens = []
        for record in records:
            tokens += record[f"tok_{name}"]
            if name == "uncased":
                tokens += record["wp_raw_uncased"]
        vocabularies[name] = list(dict.fromkeys(tokens))  # Without repetitions.
    odd = golden / "vocab_edge"
    expected = json.loads((odd / "expected.json").read_text())
    files = {name: (odd / f"{name}.txt").read_bytes() for name in expected}
    return {
        "vocabularies": vocabularies,
        "vocab_edge": {
            name: {
                "b64": base64.b64encode(files[name]).decode(),
                # None if the file cannot be read.
                "load_vocab": expected[name].get("load_vocab"),
            }
            for name in expected
        },
        "records": records,
    }


def main(golden: pathlib.Path) -> None:
    text = json.dumps(bert_config(golden), indent=1)
    (GOLDEN / "bert_config.json").write_text(text + "\n")
    for name, extract in (("model", model), ("finetuning", finetuning)):
        arrays: Any = extract(golden)
        np.savez_compressed(GOLDEN / f"{name}.npz", **arrays)
    # One record per line, for readable differences.
    text = json.dumps(tokenization(golden), separators=(",", ":"))
    text = text.replace('},{"', '},\n{"')
    (GOLDEN / "tokenization.json").write_text(text + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
