"""Networks in OpenVINO's format."""

import os
import tempfile
from typing import Any

import tensorflow as tf

from official_bert.errors import short_reason
from official_bert.inference import openvino_engine
from official_bert.runs import file_names


def write_network(function: Any, directory: str) -> None:
    """Writes a function with named inputs and a dict of outputs."""
    openvino = openvino_engine.import_openvino()
    module = tf.Module()
    module.weights = function.get_concrete_function().variables
    path = os.path.join(directory, file_names.OPENVINO)
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        try:
            tf.saved_model.save(module, folder, function)
        except tf.errors.OpError as error:
            raise OSError(short_reason(error)) from error
        network = openvino.Core().read_model(folder)
        openvino.save_model(network, path, compress_to_fp16=False)
