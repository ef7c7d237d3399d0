"""SavedModels, and texts that lie in their folders."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from official_bert import files


def save(
    module: Any,
    folder: str,
    signatures: Any,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Writes a SavedModel.

    Args:
        module: What is saved.
        folder: Where to, such as `files.replacing_directory` gives.
        signatures: As `tf.saved_model.save` takes them.
        texts: {path in the folder: what to write there as well}.

    Raises:
        OSError: The disk is full, or the like.
    """
    try:
        tf.saved_model.save(module, folder, signatures)
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
    for name, text in (texts or {}).items():
        path = os.path.join(folder, name)
        files.make_directory(os.path.dirname(path))
        files.write_text(path, text)
