"""Loads TF Hub modules, and reads their vocabulary and config."""

import os
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError, short_reason

# Only in TF1 modules. Of their graphs, the one without tags is loaded.
_TF1_FORMAT = "tfhub_module.pb"

# Only in modules that `export_tfhub.py` wrote.
CONFIG = os.path.join("assets.extra", "bert_config.json")


class TextInfo(NamedTuple):
    """The vocabulary of a module, and whether its text is lower-cased."""

    vocab_file: str
    do_lower_case: bool


def resolve(handle: str) -> str:
    """Returns the directory of a module, which is downloaded if necessary.

    Args:
        handle: A directory, or an address that `tensorflow_hub` supports.

    Raises:
        InputError: There is no module.
    """
    if not files.is_remote(handle):
        if os.path.isdir(handle):
            return handle
        raise _no_module(handle, "there is no such directory")
    try:
        # The import takes a second, and directories do not need it.
        import tensorflow_hub as hub

        return str(hub.resolve(handle))
    except Exception as error:  # Of many kinds: addresses, networks, archives.
        raise _no_module(handle, short_reason(error)) from error


def _no_module(handle: str, reason: str) -> InputError:
    return InputError(
        f"{handle}: must be the directory of a TF Hub module or an address "
        f"that can be reached ({reason}). Check it, or download and unpack the "
        "module and pass its directory."
    )


def load(handle: str) -> Any:
    """Loads a module in the SavedModel format or in the TF1 format.

    Raises:
        InputError: There is no such module, or it cannot be loaded.
    """
    path = resolve(handle)
    is_tf1 = files.exists(os.path.join(path, _TF1_FORMAT))
    try:
        return tf.saved_model.load(path, tags=[] if is_tf1 else None)
    except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
        raise InputError(
            f"{path}: must be a TF Hub module that encodes text, a SavedModel "
            "that TensorFlow can load without other packages "
            f"({short_reason(error)})."
        ) from error


def text_info(module: Any, handle: str) -> TextInfo:
    """Returns the vocabulary and casing of a loaded module.

    Raises:
        InputError: The module does not contain them.
    """
    if hasattr(module, "vocab_file") and hasattr(module, "do_lower_case"):
        vocab_file = module.vocab_file.asset_path
        do_lower_case = module.do_lower_case
    elif "tokenization_info" in module.signatures:
        info = module.signatures["tokenization_info"]()
        vocab_file, do_lower_case = info["vocab_file"], info["do_lower_case"]
    else:
        raise InputError(
            f"{handle}: must contain its vocabulary, as `vocab_file` and "
            "`do_lower_case` or in the signature `tokenization_info`. Use a "
            "module for BERT's WordPiece tokens."
        )
    return TextInfo(vocab_file.numpy().decode(), bool(do_lower_case.numpy()))


def read_config(handle: str) -> BertConfig | None:
    """Returns the config of a module, if `export_tfhub.py` wrote it."""
    path = os.path.join(resolve(handle), CONFIG)
    return BertConfig.from_json_file(path) if files.exists(path) else None
