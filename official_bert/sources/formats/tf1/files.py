"""Config, vocabulary and casing beside a TF1 or Model Garden checkpoint."""

import os
from collections.abc import Sequence
from typing import Any

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.io import files
from official_bert.runs import file_names
from official_bert.sources import checkpoint_paths, tokenizer_files
from official_bert.tokenization.settings import UNKNOWN, TokenizerSettings

# In TF2, the index of a checkpoint contains this name.
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"


def matches(path: str, names: Sequence[str], _: Any = None) -> bool:
    """Whether a directory has a checkpoint, or `path` is a prefix."""
    patterns = checkpoint_paths.CHECKPOINT_PATTERNS
    is_prefix = files.exists(path + file_names.INDEX)
    return is_prefix or checkpoint_paths.has_any(names, patterns)


def has_object_graph(path: str) -> bool:
    """Whether a checkpoint is of TF2, such as those of Model Garden.

    `path` is a prefix or a directory.
    """
    prefix = checkpoint_paths.find(path)
    paths = [os.path.join(prefix, n) for n in files.list_directory(prefix)]
    for index in [prefix + file_names.INDEX, *paths]:
        if index.endswith(file_names.INDEX) and files.is_file(index):
            with files.open_binary(index) as file:
                # An index stores a name without the prefix that it shares
                # with the previous name.
                return b"TABLE_OBJECT_GRAPH" in file.read()
    return False


def read_config(path: str, _: Any = None) -> BertConfig:
    """Reads `bert_config.json` beside a checkpoint.

    `path` is a prefix or a directory. Raises `InputError` if there is no valid
    config.
    """
    file = checkpoint_paths.beside(path, file_names.CONFIG)
    if file is None:
        raise InputError(
            f"{path}: there is no {file_names.CONFIG} beside the "
            "checkpoint. Pass --bert_config_file."
        )
    return BertConfig.from_json_file(file)


def read_tokenizer(path: str) -> tuple[str | None, TokenizerSettings]:
    """Returns the vocabulary and the settings beside a checkpoint."""
    file = checkpoint_paths.beside(path, file_names.VOCAB)
    return files.read_text(file) if file else None, read_settings(path)


def read_settings(path: str) -> TokenizerSettings:
    """Returns the settings of the tokenizer beside a checkpoint."""
    for name in tokenizer_files.NAMES:
        if file := checkpoint_paths.beside(path, name):
            return tokenizer_files.read(os.path.dirname(file))
    return UNKNOWN
