"""Checkpoints of TensorFlow's Model Garden: TF2, with an object graph.

Only arrays are read, by name; no objects are created. There are two kinds of
names, with prefixes that depend on the saved object::

    encoder/_transformer_layers/0/_attention_layer/_query_dense/kernel
    model/layer_with_weights-4/_attention_layer/_query_dense/kernel

`BertEncoderV2`, alone or in a `BertPretrainerV2`, has the first kind; the older
`BertEncoder`, as in published TF2 checkpoints, has the second.
"""

import re

from official_bert.config import BertConfig
from official_bert.sources.formats.tf1 import files as tf1_files
from official_bert.sources.formats.tf1 import weights as tf1_weights
from official_bert.sources.stored_model import Arrays, Names

describe = tf1_weights.describe

# The names in `BertEncoderV2`.
NAMES = Names(
    rules=[
        (r"^bert/embeddings/LayerNorm/", "_embedding_norm_layer/"),
        (r"^bert/embeddings/token_type_", "_type_embedding_layer/"),
        (r"^bert/embeddings/word_", "_embedding_layer/"),
        (r"^bert/embeddings/position_", "_position_embedding_layer/"),
        (r"^bert/pooler/dense/", "_pooler_layer/"),
        (r"^bert/encoder/layer_(\d+)/", r"_transformer_layers/\1/"),
        (r"/attention/self/(\w+)/", r"/_attention_layer/_\1_dense/"),
        (r"/attention/output/dense/", "/_attention_layer/_output_dense/"),
        (r"/attention/output/LayerNorm/", "/_attention_layer_norm/"),
        (r"/intermediate/dense/", "/_intermediate_dense/"),
        (r"/output/dense/", "/_output_dense/"),
        (r"/output/LayerNorm/", "/_output_layer_norm/"),
        (r"^cls/predictions/transform/dense/", "masked_lm/dense/"),
        (r"^cls/predictions/transform/LayerNorm/", "masked_lm/layer_norm/"),
        (r"^cls/predictions/output_bias", "masked_lm/output_bias.Sbias"),
        (r"^cls/seq_relationship/output_", "next_sentence/out_proj/"),
        (r"/out_proj/weights$", "/out_proj/kernel"),
    ],
    transposed="^cls/seq_relationship/output_weights$",
    splits_heads=True,
)

_VARIABLE = "/.ATTRIBUTES/VARIABLE_VALUE"

# Arrays in the checkpoint of a training run that are not weights.
_IGNORED = (
    rf"^{tf1_files.OBJECT_GRAPH}$|^save_counter$|^global_step$|^(model/)?optimizer/"
    r"|/\.OPTIMIZER_SLOT/"
)

# Prefixes that depend on the saved object.
_PREFIXES = re.compile(r"^(model/)?(encoder_network/|encoder/)?")

# Other names of the same weights -> their names in `BertEncoderV2`.
_ALIASES = Names(
    [
        # Layers of a pre-trained model, after the encoder.
        (
            r"^layer_with_weights-1/layer_with_weights-0/",
            "next_sentence/out_proj/",
        ),
        (r"^layer_with_weights-2/", "masked_lm/"),
        (r"^masked_lm/embedding_table$", "_embedding_layer/embeddings"),
        (r"^classification_heads/0/", "next_sentence/"),
        # A head's own pooler is the trained one.
        (r"^next_sentence(/|\.\.pooler_)dense/", "_pooler_layer/"),
    ]
)

_NUMBERED = re.compile(r"^layer_with_weights-(\d+)/")
# In a pre-trained model, the first layer is the encoder.
_NESTED = re.compile(r"^layer_with_weights-0/(?=layer_with_weights-)")


def open_arrays(path: str, config: BertConfig) -> Arrays:
    """Opens a checkpoint, by prefix or directory.

    The numbers in its names depend on the number of layers in `config`.
    """
    stored = tf1_weights.open_arrays(path)
    names = {name.removesuffix(_VARIABLE): name for name in stored.shapes}
    shapes = {
        short: stored.shapes[name]
        for short, name in names.items()
        if not re.search(_IGNORED, short)
    }
    plain = {name: _PREFIXES.sub("", name, count=1) for name in shapes}
    is_nested = any(map(_NESTED.match, plain.values()))
    layers = [  # The order of layer_with_weights-N.
        "_embedding_layer",
        "_position_embedding_layer",
        "_type_embedding_layer",
        "_embedding_norm_layer",
        *(f"_transformer_layers/{n}" for n in range(config.num_hidden_layers)),
        "_pooler_layer",
    ]

    def canonical(name: str) -> str:
        if not is_nested or _NESTED.match(name):
            name = _NESTED.sub("", name)
            match = _NUMBERED.match(name)
            if match and int(match[1]) < len(layers):
                name = f"{layers[int(match[1])]}/{name[match.end() :]}"
        return _ALIASES.rename(name)

    return Arrays(
        stored.where,
        shapes,
        lambda name: stored.read(names[name]),
        NAMES,
        {name: canonical(short) for name, short in plain.items()},
    )
