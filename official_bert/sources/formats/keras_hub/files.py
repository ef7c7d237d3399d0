"""Config, vocabulary and casing in a KerasHub preset."""

import os
from collections.abc import Sequence
from typing import Any

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.io import files, json_files
from official_bert.io.json_files import JsonObject
from official_bert.sources import tokenizer_files
from official_bert.tokenization.settings import UNKNOWN, TokenizerSettings

# BertConfig field -> argument and attribute of KerasHub's BertBackbone.
SIZES = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}

# Arguments of its BertTokenizer that have to have these values.
_FIXED: dict[str, list[Any]] = {
    "split": [True, None],
    "suffix_indicator": ["##", None],
    "oov_token": ["[UNK]", None],
    "special_tokens_in_strings": [False, None],
}


def matches(
    directory: str, names: Sequence[str], config_json: JsonObject
) -> bool:
    """Whether the config is that of a Keras object."""
    return "registered_name" in config_json.content


def require_class(described: JsonObject, expected: str) -> None:
    """Raises `InputError` if a file describes another class."""
    registered = str(described.content.get("registered_name"))
    class_name = registered.rpartition(">")[2]
    if class_name != expected:
        raise InputError(
            f"{described.path}: must be a {expected}. Received: {class_name}. "
            "For other models with a BertBackbone, save the backbone alone: "
            "`model.backbone.save_to_preset(directory)`."
        )


def read_config(directory: str, config_json: JsonObject) -> BertConfig:
    """Returns the config; raises `InputError` if it is not of BERT."""
    require_class(config_json, "BertBackbone")
    sizes = config_json.nested("config").content
    config = BertConfig.from_dict(
        {name: sizes.get(key) for name, key in SIZES.items()}
    )
    config.attention_probs_dropout_prob = config.hidden_dropout_prob
    config.validate(f"{config_json.path}: must be a BERT preset. ")
    return config


def read_tokenizer(directory: str) -> tuple[str | None, TokenizerSettings]:
    """Returns the vocabulary and the settings of the preset's tokenizer.

    The vocabulary is None if the preset has no tokenizer.
    """
    tokenizer = json_files.load(directory, "tokenizer.json")
    if not files.exists(tokenizer.path):
        return None, UNKNOWN
    require_class(tokenizer, "BertTokenizer")
    vocab = os.path.join(directory, "assets/tokenizer/vocabulary.txt")
    arguments = tokenizer.nested("config")
    tokenizer_files.require_values(arguments, _FIXED)
    lower, strips = (
        bool(arguments.get(key, bool | None))
        for key in ("lowercase", "strip_accents")
    )
    return files.read_text(vocab), TokenizerSettings(lower, strips)
