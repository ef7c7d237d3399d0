"""Writes networks in the formats of OpenVINO and ONNX."""

import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.export import saved_model
from official_bert.inference import openvino_engine
from official_bert.inference.engines import Engine
from official_bert.io import files
from official_bert.runs import file_names

_OPSET = 18  # The newest that tf2onnx 1.17 writes.


def write_openvino(function: Any, directory: str) -> None:
    """Writes a function with named inputs and a dict of outputs."""
    openvino = openvino_engine.import_openvino()
    module = tf.Module()
    module.weights = function.get_concrete_function().variables
    path = os.path.join(directory, file_names.OPENVINO)
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        saved_model.save(module, folder, function)
        network = openvino.Core().read_model(folder)
        openvino.save_model(network, path, compress_to_fp16=False)


def write_onnx(function: Any, directory: str) -> None:
    """Writes a function as `write_openvino` does, with tf2onnx."""
    from tf2onnx import tf_loader, tfonnx

    concrete = function.get_concrete_function()
    # The outputs are in the order of their names.
    inputs = {f"{spec.name}:0": spec.name for spec in function.input_signature}
    outputs = dict(
        zip(
            (tensor.name for tensor in concrete.outputs),
            sorted(concrete.structured_outputs),
            strict=True,
        )
    )
    graph_def = tf_loader.from_function(concrete, [*inputs], [*outputs])
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        # Without tf2onnx's optimizer: it fuses two reshapes even if the shape
        # between them is used. ONNX Runtime optimizes the network itself.
        network = tfonnx.process_tf_graph(
            graph,
            opset=_OPSET,
            input_names=[*inputs],
            output_names=[*outputs],
            tensors_to_rename=inputs | outputs,
        ).make_model("BERT")
    with files.writing(os.path.join(directory, file_names.ONNX)) as file:
        file.write(network.SerializeToString())


def make_onnx_engine(directory: str, outputs: Sequence[str]) -> Engine:
    """Returns an engine that computes these outputs with ONNX Runtime."""
    import onnxruntime

    path = os.path.join(directory, file_names.ONNX)
    session = onnxruntime.InferenceSession(path)
    names = [port.name for port in session.get_inputs()]

    def compute(batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        return session.run(list(outputs), {name: batch[name] for name in names})

    return compute
