"""Config, vocabulary and casing in a KerasHub preset."""

import os

from official_bert.config import BertConfig
from official_bert.io import files, json_files
from official_bert.sources.formats.huggingface import files as huggingface_files

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


def read(directory: str) -> tuple[BertConfig, str | None, bool | None]:
    """Returns the config, vocabulary and casing of a preset.

    The vocabulary and the casing are None if the preset has no tokenizer.
    Raises `InputError` if it is not a BERT preset.
    """
    path = os.path.join(directory, "config.json")
    content = json_files.read_object(path)
    sizes = json_files.get(content, "config", dict | None, path) or {}
    config = BertConfig.from_dict(
        {name: sizes.get(key) for name, key in SIZES.items()}
    )
    config.attention_probs_dropout_prob = config.hidden_dropout_prob
    config.validate(f"{path}: must be a BERT preset. ")
    path = os.path.join(directory, "tokenizer.json")
    if not files.exists(path):
        return config, None, None
    content = json_files.read_object(path)
    settings = json_files.get(content, "config", dict | None, path) or {}
    lower, strips = (
        bool(json_files.get(settings, key, bool | None, path))
        for key in ("lowercase", "strip_accents")
    )
    huggingface_files.warn_of_accents(directory, strips, "lowercase", lower)
    vocab_file = os.path.join(directory, "assets/tokenizer/vocabulary.txt")
    return config, files.read_text(vocab_file), lower
