"""Paths with a scheme, and what goes wrong with them."""

import contextlib
from collections.abc import Iterator
from typing import Any

from official_bert.errors import InputError


def is_remote(path: str) -> bool:
    """Whether `path` has a scheme, such as ``gs://bucket/name``."""
    return "://" in path


def gfile() -> Any:
    """Returns TensorFlow's file system."""
    import tensorflow as tf  # Takes seconds, and only remote paths need it.

    return tf.io.gfile


@contextlib.contextmanager
def errors_as_os_errors(path: str) -> Iterator[None]:
    """Raises TensorFlow's errors of a remote path as Python would raise them.

    Of a local path, of which TensorFlow is not asked, nothing changes.
    """
    if not is_remote(path):
        yield
        return
    import tensorflow as tf

    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(error.message) from error


@contextlib.contextmanager
def errors_as_input_errors(path: str) -> Iterator[None]:
    """Raises errors of looking for `path` as the user's."""
    try:
        with errors_as_os_errors(path):
            yield
    except OSError as error:
        raise InputError(
            f"Cannot look for {path!r}: {error}. Check the address, the "
            "connection, and that TensorFlow knows this kind of address."
        ) from error
