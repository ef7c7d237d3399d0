"""The names and shapes that KerasHub's models give BERT's weights.

Attention kernels are divided by heads there: [H, A, D] and [A, D, H], in the
same order in memory.
"""

import re

from official_bert.checkpoints.conversion.model import Place
from official_bert.checkpoints.names import Shape
from official_bert.config import BertConfig

# Applied to a name of 2018, one after the other.
_RULES = [
    (r"^bert/embeddings/LayerNorm/", "embeddings_layer_norm/"),
    (r"^bert/embeddings/token_type_", "segment_embedding/"),
    (r"^bert/embeddings/word_", "token_embedding/"),
    (r"^bert/embeddings/position_", "position_embedding/"),
    (r"^bert/pooler/dense/", "pooled_dense/"),
    (r"^bert/encoder/layer_(\d+)/", r"transformer_layer_\1/"),
    (r"/attention/self/", "/self_attention_layer/"),
    (r"/attention/output/dense/", "/self_attention_layer/attention_output/"),
    (r"/attention/output/LayerNorm/", "/self_attention_layer_norm/"),
    (r"/intermediate/dense/", "/feedforward_intermediate_dense/"),
    (r"/output/dense/", "/feedforward_output_dense/"),
    (r"/output/LayerNorm/", "/feedforward_layer_norm/"),
    (r"^cls/predictions/transform/dense/", "mlm_head/intermediate_dense/"),
    (
        r"^cls/predictions/transform/LayerNorm/",
        "mlm_head/intermediate_layer_norm/",
    ),
    (r"^cls/predictions/", "mlm_head/"),
]


def place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns where a KerasHub model has a weight of 2018."""
    shape = by_heads(name, shape, config)
    for pattern, replacement in _RULES:
        name = re.sub(pattern, replacement, name)
    return Place(name, shape)


def by_heads(name: str, shape: Shape, config: BertConfig) -> Shape:
    """Returns a weight's shape where attention's axes are divided by heads."""
    heads = config.num_attention_heads
    size = config.hidden_size // heads
    if "/attention/self/" in name:
        return (*shape[:-1], heads, size)
    if name.endswith("/attention/output/dense/kernel"):
        return (heads, size, shape[-1])
    return shape
