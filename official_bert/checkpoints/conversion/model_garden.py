"""Checkpoints of TensorFlow's Model Garden: TF2, with an object graph.

Only arrays are read, by name; none of the objects is created. There are two
kinds of names, with prefixes that depend on the saved object::

    encoder/_transformer_layers/0/_attention_layer/_query_dense/kernel
    model/layer_with_weights-4/_attention_layer/_query_dense/kernel

The first are those of `BertEncoderV2`, alone or in a `BertPretrainerV2`; the
second those of the older `BertEncoder`, as in published TF2 checkpoints.
"""

import re
from typing import Any

import numpy as np

from official_bert.checkpoints import tf1
from official_bert.checkpoints.conversion.keras_hub import shape_by_heads
from official_bert.checkpoints.conversion.model import Place, rename
from official_bert.checkpoints.weights import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError

GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_VARIABLE = "/.ATTRIBUTES/VARIABLE_VALUE"

# What the checkpoint of a training run holds beside weights.
_IGNORED = (
    r"^save_counter$|^global_step$|^(model/)?optimizer/|/\.OPTIMIZER_SLOT/"
)

# Applied to a TF1 name, one after the other.
_RULES = [
    (r"^bert/embeddings/LayerNorm/", "_embedding_norm_layer/"),
    (r"^bert/embeddings/token_type_", "_type_embedding_layer/"),
    (r"^bert/embeddings/word_", "_embedding_layer/"),
    (r"^bert/embeddings/position_", "_position_embedding_layer/"),
    (r"^bert/pooler/dense/", "_pooler_layer/"),
    (r"^bert/encoder/layer_(\d+)/", r"_transformer_layers/\1/"),
    (r"/attention/self/(query|key|value)/", r"/_attention_layer/_\1_dense/"),
    (r"/attention/output/dense/", "/_attention_layer/_output_dense/"),
    (r"/attention/output/LayerNorm/", "/_attention_layer_norm/"),
    (r"/intermediate/dense/", "/_intermediate_dense/"),
    (r"/output/dense/", "/_output_dense/"),
    (r"/output/LayerNorm/", "/_output_layer_norm/"),
    (r"^cls/predictions/transform/dense/", "masked_lm/dense/"),
    (r"^cls/predictions/transform/LayerNorm/", "masked_lm/layer_norm/"),
    (r"^cls/predictions/output_bias", "masked_lm/output_bias.Sbias"),
    (r"^cls/seq_relationship/output_weights", "next_sentence/out_proj/kernel"),
    (r"^cls/seq_relationship/output_bias", "next_sentence/out_proj/bias"),
]

# Prefixes that depend on the saved object.
_PREFIXES = re.compile(r"^(model/)?(encoder_network/|encoder/)?")

_WORDS = "_embedding_layer/embeddings"

# Other names of the same weights -> the name that `_RULES` gives.
_ALIASES = {
    "masked_lm/embedding_table": _WORDS,
    # A head with a pooler of its own, which is the trained one.
    **{
        f"{dense}/{name}": f"_pooler_layer/{name}"
        for dense in (
            "classification_heads/0/dense",
            "next_sentence..pooler_dense",
            "next_sentence/dense",
        )
        for name in ("kernel", "bias")
    },
    **{
        f"classification_heads/0/out_proj/{name}": (
            f"next_sentence/out_proj/{name}"
        )
        for name in ("kernel", "bias")
    },
}

# layer_with_weights-N before those of the Transformer layers.
_FIRST_LAYERS = {
    0: "_embedding_layer",
    1: "_position_embedding_layer",
    2: "_type_embedding_layer",
    3: "_embedding_norm_layer",
}
_NUMBERED = re.compile(r"^layer_with_weights-(\d+)/")
_NESTED = re.compile(r"^layer_with_weights-0/(?=layer_with_weights-)")


def get_place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns the place of a TF1 weight, under its name in `BertEncoderV2`."""
    is_transposed = name == "cls/seq_relationship/output_weights"
    shape = (
        shape[::-1] if is_transposed else shape_by_heads(name, shape, config)
    )
    return Place(rename(name, _RULES), shape, is_transposed)


class Variables:
    """The arrays of a checkpoint, by their names in `BertEncoderV2`.

    Args:
        prefix: The checkpoint prefix.
        config: The config of the model.
        skip: Regular expression of stored names to leave out.

    Raises:
        InputError: It is damaged, or has different arrays for one weight.
    """

    def __init__(
        self, prefix: str, config: BertConfig, skip: str | None = None
    ) -> None:
        self.where = prefix
        self.shapes: dict[str, Shape] = {}
        self.skipped: list[str] = []
        self._stored: dict[str, str] = {}
        self._reader: Any = tf1.open_reader(prefix)
        stored = self._reader.get_variable_to_shape_map()
        is_nested = any(_NESTED.match(_plain(name)) for name in stored)
        for name in sorted(stored):
            short = name.removesuffix(_VARIABLE)
            if name == GRAPH or re.search(_IGNORED, short):
                continue
            if skip and re.search(skip, short):
                self.skipped.append(short)
                continue
            known = _canonical(
                _plain(name), config.num_hidden_layers, is_nested
            )
            if known in self._stored:
                self._require_equal(known, name)
                continue
            self._stored[known] = name
            self.shapes[known] = tuple(stored[name])

    def read(self, name: str) -> np.ndarray:
        """Returns one array."""
        return tf1.read_array(self._reader, self.where, self._stored[name])

    def _require_equal(self, known: str, other: str) -> None:
        array = tf1.read_array(self._reader, self.where, other)
        if np.array_equal(self.read(known), array):
            return
        both = [self._stored[known], other]
        shown = " and ".join(n.removesuffix(_VARIABLE) for n in both)
        raise InputError(
            f"{self.where}: {shown} are one weight, {known}, but differ. Leave "
            "one out with --skip; of two poolers, the one not trained."
        )


def _plain(name: str) -> str:
    return _PREFIXES.sub("", name.removesuffix(_VARIABLE), count=1)


def _canonical(name: str, num_layers: int, is_nested: bool) -> str:
    """Returns the name of a weight in `BertEncoderV2`."""
    if is_nested:
        inner = _NESTED.sub("", name)
        if inner != name:
            return _numbered(inner, num_layers)
        name = re.sub(r"^layer_with_weights-2/", "masked_lm/", name)
        name = re.sub(
            r"^layer_with_weights-1/layer_with_weights-0/",
            "next_sentence/out_proj/",
            name,
        )
        return _ALIASES.get(name, name)
    name = _numbered(name, num_layers)
    return _ALIASES.get(name, name)


def _numbered(name: str, num_layers: int) -> str:
    match = _NUMBERED.match(name)
    if not match:
        return name
    number = int(match[1])
    rest = name[match.end() :]
    if number in _FIRST_LAYERS:
        return f"{_FIRST_LAYERS[number]}/{rest}"
    number -= len(_FIRST_LAYERS)
    if number < num_layers:
        return f"_transformer_layers/{number}/{rest}"
    return f"_pooler_layer/{rest}" if number == num_layers else name
