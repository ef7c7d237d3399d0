"""Writes SavedModels that contain additional files."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from official_bert.errors import short_reason
from official_bert.io import files
from official_bert.sources import tokenizer_files
from official_bert.tokenization import FullTokenizer


def write(
    module: Any,
    path: str,
    signatures: Any,
    extra_files: Mapping[str, bytes] = {},
) -> None:
    """Writes a SavedModel and extra files, {path in its directory: content}.

    An interrupted export changes nothing. Raises `InputError` if the files
    cannot be written.
    """
    with files.replacing_directory(path) as directory:
        save(module, directory, signatures)
        for name, content in extra_files.items():
            extra_file = os.path.join(directory, name)
            files.make_directory(os.path.dirname(extra_file))
            with files.writing(extra_file) as file:
                file.write(content)


def save(module: Any, directory: str, signatures: Any) -> None:
    """Writes a SavedModel; raises `OSError` if it cannot be written."""
    try:
        tf.saved_model.save(module, directory, signatures)
    except tf.errors.OpError as error:
        raise OSError(short_reason(error)) from error


def tokenizer_config(tokenizer: FullTokenizer) -> dict[str, bytes]:
    """Returns {path: content} of the settings, a file beside the vocabulary."""
    vocab = files.read_text(tokenizer.vocab_file)
    text = tokenizer_files.config_text(vocab, tokenizer.settings)
    return {f"assets/{tokenizer_files.CONFIG}": text.encode()}


def signature(call: Callable[..., Any], *inputs: tf.TensorSpec) -> Any:
    """Returns a function to save, whose arguments are the named inputs."""
    return tf.function(call, input_signature=inputs, autograph=False)


def callable_object(
    call: Callable[..., Any], inputs: Sequence[tf.TensorSpec] | None = None
) -> Any:
    """Returns an object to save, which is callable and can have attributes."""
    saved = tf.train.Checkpoint()  # A tf.Module would lose its `variables`.
    saved.__call__ = tf.function(call, input_signature=inputs, autograph=False)
    return saved
