"""Writes `bert_config.json`: results of the original `BertConfig`.

  python tests/golden/make_bert_config.py GOLDEN_FOLDER

The cases about configurations and activations are from `misc.json`, the counts
of weights from the checkpoints.
"""

import json
import math
import pathlib
import sys
from typing import Any

ABOUT = (
    "BertConfig",
    "from_json_file",
    "get_activation('",
    "get_activation(None",
)


def extract(golden: pathlib.Path) -> dict[str, Any]:
    """Returns {case: [outcome, value]} and {checkpoint: counts}."""
    cases = json.loads((golden / "misc.json").read_text())["cases"]
    return {
        "cases": {
            case[0]: case[1:] for case in cases if case[0].startswith(ABOUT)
        },
        "parameters": {
            name: count(golden / "model" / name)
            for name in ("base", "relu", "real_size")
        },
    }


def count(checkpoint: pathlib.Path) -> dict[str, Any]:
    """Returns the config of a checkpoint and its numbers of weights."""
    record = json.loads((checkpoint / "variables.json").read_text())
    sizes = {name: math.prod(shape) for name, shape in record["variables"]}
    return {
        "config": json.loads((checkpoint / "bert_config.json").read_text()),
        "encoder": sum(
            sizes[name] for name in sizes if name.startswith("bert/")
        ),
        "with_heads": sum(sizes.values()),
    }


if __name__ == "__main__":
    text = json.dumps(extract(pathlib.Path(sys.argv[1])), indent=1)
    pathlib.Path(__file__).with_suffix(".json").write_text(text + "\n")
