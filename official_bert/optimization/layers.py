"""Which weights are trained, and how fast, by the layer they are in."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")


def trained(weights: Iterable[Any], freeze: str) -> list[Any]:
    """Returns the weights that are not frozen.

    Args:
        weights: With paths.
        freeze: Such as `embeddings,0-5,pooler`.
    """
    prefixes = tuple(_frozen_prefixes(freeze))
    return [w for w in weights if not w.path.startswith(prefixes)]


def _frozen_prefixes(freeze: str) -> Iterable[str]:
    for part in filter(None, freeze.split(",")):
        if not part[0].isdigit():
            yield f"bert/{part}/"
            continue
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield f"bert/encoder/layer_{number}/"


def rate_scales(
    paths: Sequence[str], decay: float, num_hidden_layers: int
) -> dict[str, float]:
    """Returns by what each weight's learning rate is multiplied.

    The task's layer and the pooler have 1, the top layer `decay`, the one below
    its square, and so on down to the embeddings (Clark et al., 2020, ELECTRA,
    appendix A; after Howard and Ruder, 2018).

    Args:
        paths: Of the weights.
        decay: 1 treats all the same.
        num_hidden_layers: L.
    """
    return {path: decay ** _below(path, num_hidden_layers) for path in paths}


def _below(path: str, num_hidden_layers: int) -> int:
    """Returns how many layers a weight is below the task's."""
    if path.startswith("bert/embeddings/"):
        return num_hidden_layers + 1
    match = _LAYER.match(path)
    return num_hidden_layers - int(match.group(1)) if match else 0
