"""The signature for ids as a TensorFlow Lite (LiteRT) model."""

import warnings
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import files
from official_bert.errors import InputError
from official_bert.export.serving.signatures import RowSignatures, Tensors


def write(rows: RowSignatures, module: Any, path: str) -> float:
    """Converts a model, and asks it and the original the same.

    Its inputs are those of `ids`, batch and length free; its output is
    `logits`, as `task.build_model` says.

    Args:
        rows: The model.
        module: What holds its weights.
        path: The file to write.

    Returns:
        The largest difference between logits of both.

    Raises:
        InputError: The model cannot be converted.
    """
    calls = _Lite(rows)
    function = tf.function(calls.logits).get_concrete_function(
        **rows.ids_inputs()
    )
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function], module
    )
    try:
        content = converter.convert()
    except Exception as error:  # Its own class is in no public module.
        raise InputError(
            "--export_tflite: the model must be one that TensorFlow Lite can "
            "compute, which is any but those with a BiLSTM. Received: one that "
            f"it cannot ({str(error).splitlines()[0]}). Leave out the flag."
        ) from error
    with files.writing(path) as file:
        file.write(content)
    return _difference(rows, content)


class _Lite:
    """The one function that LiteRT gets."""

    def __init__(self, rows: RowSignatures) -> None:
        self.rows = rows

    def logits(
        self, input_ids: Any, input_mask: Any, segment_ids: Any
    ) -> Tensors:
        """Strings and probabilities are left to the caller."""
        return {"logits": self.rows.logits(input_ids, input_mask, segment_ids)}


def _difference(rows: RowSignatures, content: bytes) -> float:
    served = rows.served
    choices = [rows.kind.num_choices] if rows.kind.num_choices > 1 else []
    shape = (2, *choices, min(served.max_seq_length, 64))
    random = np.random.RandomState(0)
    is_short = np.arange(shape[-1]) < shape[-1] // 2
    mask = np.ones(shape, np.int32)
    mask[0] = is_short
    batch = {
        "input_ids": random.randint(0, len(served.pieces), shape, np.int32),
        "input_mask": mask,
        "segment_ids": mask * ~is_short,
    }
    expected = rows.logits(**{n: tf.constant(v) for n, v in batch.items()})
    with warnings.catch_warnings():
        # That it will move to a package of its own.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content)
    asked = interpreter.get_signature_runner()
    return float(np.abs(asked(**batch)["logits"] - expected.numpy()).max())
