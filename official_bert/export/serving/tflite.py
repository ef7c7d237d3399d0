"""The signature `ids` as a TensorFlow Lite (LiteRT) model."""

import os
import threading
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_bert.errors import InputError, first_line
from official_bert.export import engine_models
from official_bert.export.quantization import Quantization
from official_bert.export.saved_model import signature
from official_bert.export.serving.signatures import TaskSignatures
from official_bert.inference.engines import Engine


def convert(
    signatures: TaskSignatures,
    module: Any,
    quantization: Quantization | None = None,
) -> bytes:
    """Returns the contents of `model.tflite`; logs how far its logits differ.

    The model has the inputs of the signature `ids`, of any batch size and
    length. Its output is `logits`; the caller computes probabilities and
    labels. `module` holds the weights. With `quantization`, prints a
    comparison with the model in float32. Raises `InputError` if the model
    cannot be converted.
    """
    content = _convert(signatures, module)
    difference = largest_difference(signatures, content)
    logging.info(
        f"In float32, logits of model.tflite differ by at most {difference:.2g}"
    )
    if quantization is None:
        return content
    quantized = _convert(signatures, module, quantization.kind)
    quantization.print_header()
    models = {"float32": content, quantization.kind: quantized}
    for name, model in models.items():
        quantization.print_row(name, len(model), make_engine(model))
    return quantized


def _convert(
    signatures: TaskSignatures, module: Any, kind: str = "float32"
) -> bytes:
    def run(input_ids: Any, input_mask: Any, segment_ids: Any) -> Any:
        return {"logits": signatures.logits(input_ids, input_mask, segment_ids)}

    function = signature(run, *signatures.ids_inputs())
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function()], module
    )
    if kind != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    try:
        content: bytes = converter.convert()
    except Exception as error:  # The converter's own class is not public.
        raise InputError(
            "--export_tflite: TensorFlow Lite cannot convert this model "
            f"({first_line(error)}). Models with a BiLSTM are not supported. "
            "Export without --export_tflite."
        ) from error
    return content


def make_engine(content: bytes) -> Engine:
    """Returns an engine for a model, which one thread uses at a time."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=os.cpu_count())
    run = interpreter.get_signature_runner()
    names, lock = list(run.get_input_details()), threading.Lock()

    def compute(batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        with lock:
            return [run(**{name: batch[name] for name in names})["logits"]]

    return compute


def largest_difference(signatures: TaskSignatures, content: bytes) -> float:
    """Returns the largest difference between the logits of both models."""
    return engine_models.largest_difference(
        lambda *inputs: {"logits": signatures.logits(*inputs)},
        lambda _: make_engine(content),
        signatures.ids_inputs(),
        signatures.model.config,
    )
