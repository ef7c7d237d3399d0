"""The signature `ids` as a TensorFlow Lite (LiteRT) model."""

import warnings
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.errors import InputError, first_line
from official_bert.export.saved_model import signature
from official_bert.export.serving.signatures import TaskSignatures


def convert(signatures: TaskSignatures, module: Any) -> bytes:
    """Returns the contents of `model.tflite`; logs how far its logits differ.

    The model has the inputs of the signature `ids`, of any batch size and
    length. Its output is `logits`; the caller computes probabilities and
    labels. `module` holds the weights. Raises `InputError` if the model cannot
    be converted.
    """

    def run(input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        logits = signatures.logits(input_ids, input_mask, segment_ids)
        return {"logits": logits}

    function = signature(run, *signatures.ids_inputs())
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function()], module
    )
    try:
        content: bytes = converter.convert()
    except Exception as error:  # The converter's own class is not public.
        raise InputError(
            "--export_tflite: TensorFlow Lite cannot convert this model "
            f"({first_line(error)}). Models with a BiLSTM are not supported. "
            "Export without --export_tflite."
        ) from error
    difference = largest_difference(signatures, content)
    logging.info(f"Logits of model.tflite differ by at most {difference:.2g}")
    return content


def largest_difference(signatures: TaskSignatures, content: bytes) -> float:
    """Returns the largest difference between the logits of both models."""
    [_, *choices, _] = signatures.ids_inputs()[0].shape
    shape = (2, *choices, min(signatures.max_seq_length, 64))
    is_first_half = np.arange(shape[-1]) < shape[-1] // 2
    mask = np.ones(shape, np.int32)
    mask[0] = is_first_half
    vocab_size, _ = signatures.model.bert.embeddings.word_embeddings.shape
    ids = np.random.RandomState(0).randint(0, vocab_size, shape, np.int32)
    inputs = (ids, mask, mask * ~is_first_half)
    expected = signatures.logits(*map(tf.constant, inputs))
    with warnings.catch_warnings():
        # The interpreter warns that it will move to another package.
        warnings.simplefilter("ignore")
        interpreter = tf.lite.Interpreter(model_content=content)
    run = interpreter.get_signature_runner()
    outputs = run(**dict(zip(signatures.schema, inputs, strict=True)))
    return float(np.abs(outputs["logits"] - expected.numpy()).max())
