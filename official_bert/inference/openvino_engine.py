"""Runs models that were converted for OpenVINO, without TensorFlow."""

import collections
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert.errors import InputError, first_line, listed
from official_bert.runs import file_names

# {value of --precision: OpenVINO's name}.
_PRECISIONS = {"auto": "f32", "float32": "f32", "bfloat16": "bf16"}

# `import openvino` imports this converter, which sends usage statistics over
# the network. OpenVINO's core can convert models without it.
_CONVERTER = "openvino.tools.ovc"


def layer_name(layer: int) -> str:
    """Returns the name of the output of a layer, counted from 0."""
    return f"layer_{layer}"


def import_openvino() -> Any:
    """Returns the package `openvino`, without the function `convert_model`.

    If the process has already imported `openvino`, nothing changes.
    """
    is_hidden = not {"openvino", _CONVERTER} & sys.modules.keys()
    if is_hidden:
        sys.modules[_CONVERTER] = None  # type: ignore[assignment]
    try:
        import openvino
    finally:
        if is_hidden:
            del sys.modules[_CONVERTER]
    return openvino


def _has_bfloat16(core: Any) -> bool:
    return "BF16" in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")


class OpenVinoEngine:
    """Computes outputs of a converted model; an `engines.Engine`.

    Several threads may call it at the same time.

    Args:
        directory: A directory that `export.engine_models` wrote.
        outputs: The names of the outputs to compute, in order.
        precision: "auto", "float32" or "bfloat16": the precision of
            computation. Outputs are float32. "auto" is float32, and so is
            "bfloat16", with a warning, on processors without bfloat16.
        is_batch_job: Whether the process answers many texts and then ends. If
            so, two calls run at the same time, each on half of the cores, which
            is faster than one after the other on all cores. The weights are not
            copied to memory, which saves 0.2 seconds for BERT-Base; but if
            their file is overwritten, the answers change.

    Raises:
        InputError: The model is damaged, or lacks an output.
    """

    def __init__(
        self,
        directory: str,
        outputs: Sequence[str],
        precision: str = "auto",
        is_batch_job: bool = False,
    ) -> None:
        self.directory = directory
        openvino = import_openvino()
        path = os.path.join(directory, file_names.OPENVINO)
        core = openvino.Core()
        core.set_property({"ENABLE_MMAP": is_batch_job})
        try:
            model = core.read_model(path)
            by_name = {output.any_name: output for output in model.outputs}
            missing = [name for name in outputs if name not in by_name]
            if missing:
                raise InputError(
                    f"{path}: this model computes {listed(by_name)}, not "
                    f"{missing[0]}. For feature vectors, convert a checkpoint "
                    "with convert_checkpoint.py --to=openvino --skip=^cls; for "
                    "masked words, without --skip."
                )
            if precision == "bfloat16" and not _has_bfloat16(core):
                logging.warning(
                    "--precision=bfloat16: this processor has no bfloat16 "
                    "instructions. The model computes in float32."
                )
                precision = "float32"
            # Only what these outputs need is computed.
            order = list(dict.fromkeys(outputs))
            results = [by_name[name] for name in order]
            self._compiled = core.compile_model(
                openvino.Model(results, model.get_parameters()),
                "CPU",
                {
                    "INFERENCE_PRECISION_HINT": _PRECISIONS[precision],
                    "PERFORMANCE_HINT": "LATENCY",
                    **({"NUM_STREAMS": 2} if is_batch_job else {}),
                },
            )
        except RuntimeError as error:
            raise InputError(
                f"{path} or its .bin file is damaged, or OpenVINO cannot run "
                f"it: {first_line(error)} Export the model again."
            ) from error
        self._order = [order.index(name) for name in outputs]
        self._inputs = [port.any_name for port in self._compiled.inputs]
        self._idle = collections.deque[Any]()  # Requests that are not running.
        self._first_call, self._has_run = threading.Lock(), False

    def require_shapes(self, ids: Sequence[int], logits: Sequence[int]) -> None:
        """Raises `InputError` if inputs or the first output have other shapes.

        A size of -1 is any size.
        """
        openvino = import_openvino()
        output = self._compiled.outputs[self._order[0]]
        for port, shape in ((self._compiled.inputs[0], ids), (output, logits)):
            own = port.partial_shape
            if not own.compatible(openvino.PartialShape(shape)):
                raise InputError(
                    f"{self.directory}: `{port.any_name}` of "
                    f"{file_names.OPENVINO} must have the shape {[*shape]}, "
                    f"where -1 is any size, to fit {file_names.TASK}. "
                    f"Received: {own}. The files are of different models. "
                    "Export the model again."
                )

    def __call__(self, batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Returns the outputs of a batch; other entries of it are ignored."""
        if self._has_run:
            return self._run(batch)
        # OpenVINO initializes static variables in the first call. Two threads
        # would wait for each other, for Python's lock and for a variable.
        with self._first_call:
            outputs = self._run(batch)
        self._has_run = True
        return outputs

    def _run(self, batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._compiled.create_infer_request()
        inputs = {name: batch[name] for name in self._inputs}
        results = list(request.infer(inputs).values())
        self._idle.append(request)
        return [results[index] for index in self._order]
