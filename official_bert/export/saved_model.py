"""SavedModels with text files beside their own files."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from official_bert import files


def save(
    module: Any, directory: str, signatures: Any, texts: Mapping[str, str] = {}
) -> None:
    """Does `tf.saved_model.save`, and writes `texts` by path in `directory`.

    Raises:
        OSError: The files cannot be written.
    """
    try:
        tf.saved_model.save(module, directory, signatures)
    except tf.errors.OpError as error:
        raise OSError(error.message) from error
    for name, text in texts.items():
        path = os.path.join(directory, name)
        files.make_directory(os.path.dirname(path))
        files.write_text(path, text)
