"""Finding a module of the TF Hub, and what it says about itself."""

import os
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert import files
from official_bert.config import BertConfig
from official_bert.errors import InputError, short_reason

# Modules of 2018 have it, and several graphs: for training, and without tags.
_OLD_FORMAT = "tfhub_module.pb"

# Modules of ours say what they are made of, beside a module's own files.
CONFIG = os.path.join("assets.extra", "bert_config.json")


class TextInfo(NamedTuple):
    """How text becomes what a module reads.

    Attributes:
        vocab_file: Its vocabulary.
        do_lower_case: Whether text is lower-cased.
    """

    vocab_file: str
    do_lower_case: bool


def resolve(handle: str) -> str:
    """Returns the folder of a module, after fetching it if need be.

    Args:
        handle: A folder, or an address that `tensorflow_hub` knows.

    Raises:
        InputError: There is nothing.
    """
    if not files.is_remote(handle):
        if os.path.isdir(handle):
            return handle
        raise _no_module(handle, "there is no such folder")
    try:
        # It takes a second to import, and a folder does not need it.
        import tensorflow_hub as hub

        return str(hub.resolve(handle))
    except Exception as error:  # Of many kinds: addresses, networks, archives.
        raise _no_module(handle, short_reason(error)) from error


def _no_module(handle: str, reason: str) -> InputError:
    return InputError(
        "A Hub module must be a folder or an address that can be reached. "
        f"Received: {handle!r} ({reason}). Check it; or fetch the module by "
        "hand, unpack it, and give its folder."
    )


def load(handle: str) -> Any:
    """Loads a module, of today's format or that of 2018.

    Raises:
        InputError: It is no module.
    """
    path = resolve(handle)
    is_old = files.exists(os.path.join(path, _OLD_FORMAT))
    try:
        return tf.saved_model.load(path, tags=[] if is_old else None)
    except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
        # Of operations that TensorFlow does not have it says so at length.
        raise InputError(
            f"{path}: must be a TF Hub module that encodes texts, a SavedModel "
            f"that TensorFlow alone can load. Received: {short_reason(error)}"
        ) from error


def text_info(module: Any, handle: str) -> TextInfo:
    """Returns which vocabulary and casing a loaded module wants.

    Raises:
        InputError: It does not say.
    """
    if hasattr(module, "vocab_file") and hasattr(module, "do_lower_case"):
        vocab_file = module.vocab_file.asset_path
        do_lower_case = module.do_lower_case
    elif "tokenization_info" in module.signatures:
        info = module.signatures["tokenization_info"]()
        vocab_file, do_lower_case = info["vocab_file"], info["do_lower_case"]
    else:
        raise InputError(
            f"{handle}: must have a vocabulary: `vocab_file` and "
            "`do_lower_case`, or the signature `tokenization_info`. Received: "
            "a module without. Use one for BERT's WordPieces."
        )
    return TextInfo(vocab_file.numpy().decode(), bool(do_lower_case.numpy()))


def read_config(handle: str) -> BertConfig | None:
    """Returns the config of a module that `export_tfhub.py` wrote."""
    path = os.path.join(resolve(handle), CONFIG)
    return BertConfig.from_json_file(path) if files.exists(path) else None
