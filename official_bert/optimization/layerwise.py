"""Freezing, initial values and learning rates by the layer of a weight."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from official_bert.options.finetuning import frozen_layers

_LAYER = re.compile(r"bert/encoder/layer_(\d+)/")


def unfrozen(weights: Iterable[Any], freeze: str) -> list[Any]:
    """Returns the weights not frozen by a value such as `embeddings,0-5`."""
    prefixes = [f"bert/{name}/" for name in re.findall("[a-z]+", freeze)]
    for first, last in frozen_layers(freeze):
        numbers = range(first, last + 1)
        prefixes += [f"bert/encoder/layer_{number}/" for number in numbers]
    return [w for w in weights if not w.path.startswith(tuple(prefixes))]


def top_weights(
    weights: Iterable[Any], num_layers: int, num_hidden_layers: int
) -> list[str]:
    """Returns the paths of the weights of the top layers and the pooler.

    Returns [] if `num_layers` is 0.
    """
    numbers = range(num_hidden_layers - num_layers, num_hidden_layers)
    prefixes = [f"bert/encoder/layer_{number}/" for number in numbers]
    if prefixes:
        prefixes.append("bert/pooler/")
    return [w.path for w in weights if w.path.startswith(tuple(prefixes))]


def rate_scales(
    paths: Sequence[str], decay: float, num_hidden_layers: int
) -> dict[str, float]:
    """Returns {path of a weight: factor of its learning rate}.

    The factor is 1 for the task's head and the pooler, `decay` for the top
    layer, its square for the layer below, and so on down to the embeddings
    (Clark et al., 2020, ELECTRA, appendix A; after Howard and Ruder, 2018).
    """

    def depth(path: str) -> int:
        if path.startswith("bert/embeddings/"):
            return num_hidden_layers + 1
        match = _LAYER.match(path)
        return num_hidden_layers - int(match.group(1)) if match else 0

    return {path: decay ** depth(path) for path in paths}
