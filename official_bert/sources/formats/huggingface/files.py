"""Config, vocabulary and casing in a Hugging Face directory."""

import dataclasses
import json
from collections.abc import Sequence

from official_bert.config import BertConfig
from official_bert.errors import InputError, quoted
from official_bert.io.json_files import JsonObject
from official_bert.sources import heads, tokenizer_files
from official_bert.sources.heads import HeadKind

CONFIG = "config.json"

# Keys with the same name in both configs.
_SIZES = {
    field.name
    for field in dataclasses.fields(BertConfig)
    if field.name not in ("hidden_act", "is_left_to_right")
}

# Unused keys of the released Chinese and multilingual configs.
_EXTRAS = ("directionality", "pooler_")

# `hidden_act` in bert_config.json -> in config.json, and back. "gelu" is the
# tanh approximation in bert_config.json and the exact form in config.json.
THEIR_ACTIVATIONS = {
    "gelu": "gelu_pytorch_tanh",
    "gelu_erf": "gelu",
    "": "linear",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
_OUR_ACTIVATIONS = {
    **{theirs: ours for ours, theirs in THEIR_ACTIVATIONS.items()},
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_accurate"), "gelu"),
    "gelu_python": "gelu_erf",
}

# The values of these keys in the original BERT. Other values are not supported.
FIXED = {
    "model_type": "bert",
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


read_tokenizer = tokenizer_files.read_with_vocab


def matches(directory: str, names: Sequence[str], _: JsonObject) -> bool:
    """Whether there is a `config.json`, as in more specific formats too."""
    return CONFIG in names


def read_config(directory: str, config_json: JsonObject) -> BertConfig:
    """Returns the config of a model by its `config.json`.

    Raises `InputError` if it is damaged, or the model is not the original BERT.
    """
    path, content = config_json
    kind = head(config_json)
    has_masked_lm = kind is None or heads.MASKED_LM in kind.scopes
    for name, fixed in FIXED.items():
        is_used = name != "tie_word_embeddings" or has_masked_lm
        if is_used and content.get(name, fixed) != fixed:
            raise InputError(
                f"{path}: `{name}` must be {json.dumps(fixed)}, as in the "
                f"original BERT. Received: {json.dumps(content[name])}. Other "
                "models are not supported."
            )
    values = {
        name: value
        for name, value in content.items()
        if name in _SIZES or name.startswith(_EXTRAS)
    }
    # Defaults of transformers that differ from ours.
    values = {"type_vocab_size": 2, "vocab_size": 30522, **values}
    activation = content.get("hidden_act", "gelu")
    # A list: the value in a damaged file may have no hash.
    if activation not in list(_OUR_ACTIVATIONS):
        raise InputError(
            f"{path}: `hidden_act` must be one of "
            f"{', '.join(_OUR_ACTIVATIONS)}. Received: {quoted(activation)}."
        )
    values["hidden_act"] = _OUR_ACTIVATIONS[activation]
    config = BertConfig.from_dict(values)
    config.validate(f"{path}: ")
    return config


def head(config_json: JsonObject) -> HeadKind | None:
    """Returns the head of the model's class in transformers, if it is known.

    The configs of some pre-trained models name no class.
    """
    names = config_json.get("architectures", tuple[str, ...] | None) or ("",)
    kinds = {kind.architecture: kind for kind in heads.KINDS.values()}
    return kinds.get(names[0])


def labels(config_json: JsonObject) -> tuple[str, ...]:
    """Returns the labels in a `config.json`, in the order of their ids."""
    by_text = config_json.content.get("id2label") or {}
    try:
        by_id = {int(number): str(label) for number, label in by_text.items()}
        names = tuple(by_id[number] for number in range(len(by_id)))
        if len({*names}) < len(names):
            raise ValueError("repeated labels")
    except (AttributeError, KeyError, ValueError) as error:
        raise InputError(
            f"{config_json.path}: `id2label` must number different labels from "
            f'0 without gaps, like {{"0": "no", "1": "yes"}}. Received: '
            f"{quoted(by_text)}."
        ) from error
    return names
