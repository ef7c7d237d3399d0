"""Models for the engines OpenVINO and ONNX Runtime, without TensorFlow.

DIRECTORY/model.xml, model.bin     the network, with float32 weights
          model.onnx               the same for ONNX
          bert_config.json, vocab.txt, tokenizer_config.json
          task.json                of a fine-tuned model

The inputs are features of any batch size and length, int32 [B, S]: `input_ids`,
`input_mask` and `segment_ids`. The outputs are float32:

    fine-tuned model    `logits`; shapes depend on the task
    pre-trained model   `masked_lm_logits` [B, P, V], for one more input,
                        `masked_lm_positions` [B, P]
    encoder             `layer_0`, ... [B, S, H], and `pooled_output` [B, H]
"""

import functools
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.export import saved_model
from official_bert.export.quantization import Quantization, quantize_openvino
from official_bert.inference import openvino_engine
from official_bert.inference.engines import Engine, require_finite
from official_bert.inference.openvino_engine import OpenVinoEngine
from official_bert.inputs.schemas import TEXT_INPUTS
from official_bert.io import files
from official_bert.modeling.encoder import Bert
from official_bert.modeling.finetuning_models import build_model
from official_bert.modeling.layers import to_be_loaded
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.runs import file_names
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.stored_model import Description, Model
from official_bert.sources.weight_names import POOLER
from official_bert.tasks.task import FinetunedModel, Task
from official_bert.tokenization import FullTokenizer

Tensors = dict[str, Any]

_OPSET = 18  # The newest that tf2onnx 1.17 writes.


def require_exportable(finetuned: FinetunedModel) -> None:
    """Raises `InputError` for a model on a third-party TF Hub module."""
    if not isinstance(finetuned.model.bert, Bert):
        # The functions of a Hub module depend on the directory it came from.
        raise InputError(
            "Models on third-party TF Hub modules cannot be exported, for "
            "serving or for OpenVINO. Fine-tune from a checkpoint, or from a "
            "module that export_tfhub.py wrote."
        )


def write_finetuned(
    finetuned: FinetunedModel,
    directory: str,
    quantization: Quantization | None = None,
) -> float:
    """Writes a fine-tuned model; for the result see `_write`.

    In regression, the outputs have the units of the data, so `task.json` has no
    scale of the targets. Quantization follows the comparison with TensorFlow.
    """
    require_exportable(finetuned)
    task, model, tokenizer, _ = finetuned
    values = finetuned.to_json()
    for name in ("target_mean", "target_deviation"):
        values.pop(name, None)
    description = _describe(model, tokenizer, values)
    return _write(
        model, description, directory, task, quantization=quantization
    )


def write_pretrained(
    model: Any, tokenizer: FullTokenizer, directory: str
) -> float:
    """Writes a `PretrainingModel` or `Bert`; for the result see `_write`."""
    return _write(model, _describe(model, tokenizer), directory)


def _describe(
    model: Any, tokenizer: FullTokenizer, task: dict[str, Any] | None = None
) -> Description:
    return Description(
        config=model.config,
        vocab=files.read_text(tokenizer.vocab_file),
        settings=tokenizer.settings,
        task=task,
    )


def convert(model: Model, directory: str, to: str) -> str:
    """Writes the model of a checkpoint; returns a report.

    `to` is "openvino" or "onnx".

    Raises `InputError` if its head is not supported, or it has no vocabulary.
    """
    description, head = model.description, model.head.name
    where = model.arrays.where
    if description.vocab is None:
        raise InputError(f"{where} has no vocabulary. Pass --vocab_file.")
    task = None
    with to_be_loaded():
        if description.task is not None:
            task = tasks.from_json(description.task)
            network = build_model(task.head, description.config)
        elif head == "encoder":
            network = Bert(description.config)
            network.build()
        elif head in ("pretraining", "masked_lm"):
            network = PretrainingModel(description.config)
        else:
            raise InputError(
                f"{where}: --to={to} does not support the head {head} "
                "without task.json. To convert only the encoder, add "
                "--skip='^(cls|output|classifier|qa)'."
            )
    variables = tf1.by_name(network.trainable_variables)
    for name, variable in variables.items():
        variable.assign(model.read(name))
    has_pooler = any(name.startswith(POOLER) for name in model.stored)
    gap = _write(network, description, directory, task, has_pooler, to)
    num_values = sum(
        variable.shape.num_elements() for variable in variables.values()
    )
    return (
        f"Converted {where} to {directory}: {num_values:,} values. Head: "
        f"{head}. Outputs differ from TensorFlow's by at most {gap:.2g}."
    )


def _write(
    model: Any,
    description: Description,
    directory: str,
    task: Task | None = None,
    has_pooler: bool = True,
    to: str = "openvino",
    quantization: Quantization | None = None,
) -> float:
    """Writes a model; returns how far its outputs differ from TensorFlow's.

    The comparison is on random tokens. An interrupted call changes nothing.
    Raises `InputError` if the directory cannot be written.
    """
    names, shape = [*TEXT_INPUTS], [None, None]
    if task:
        shape = [None for _ in task.head.ids_shape]
    elif isinstance(model, PretrainingModel):
        names.append("masked_lm_positions")
    specs = [tf.TensorSpec(shape, tf.int32, name) for name in names]
    function = saved_model.signature(
        lambda *values: _outputs(
            model, dict(zip(names, values, strict=True)), task, has_pooler
        ),
        *specs,
    )
    with files.replacing_directory(directory) as new:
        write_network, make_engine = _TARGETS[to]
        write_network(function, new)
        make_new_engine = functools.partial(make_engine, new)
        gap = largest_difference(
            function, make_new_engine, specs, description.config
        )
        if quantization:
            quantize_openvino(new, quantization)
        config = description.config.to_json_string()
        files.write_text(os.path.join(new, file_names.CONFIG), config)
        description.write_beside(new)
    return gap


def _outputs(
    model: Any, batch: Tensors, task: Task | None, has_pooler: bool
) -> Tensors:
    """Returns the outputs of a batch; fine-tuned models have a task."""
    if task:
        return {"logits": task.unscale(model(batch))}
    if isinstance(model, PretrainingModel):
        return {"masked_lm_logits": model(batch).masked_lm_logits}
    output = model(**batch)
    outputs = {
        openvino_engine.layer_name(number): vectors
        for number, vectors in enumerate(output.encoder_outputs)
    }
    if has_pooler:
        outputs["pooled_output"] = output.pooled_output
    return outputs


def _write_openvino(function: Any, directory: str) -> None:
    """Writes a function with named inputs and a dict of outputs."""
    openvino = openvino_engine.import_openvino()
    module = tf.Module()
    module.weights = function.get_concrete_function().variables
    path = os.path.join(directory, file_names.OPENVINO)
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        saved_model.save(module, folder, function)
        network = openvino.Core().read_model(folder)
        openvino.save_model(network, path, compress_to_fp16=False)


def _write_onnx(function: Any, directory: str) -> None:
    """Writes a function as `_write_openvino` does, with tf2onnx."""
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
            custom_op_handlers={"Erfc": (_convert_erfc, [])},
        ).make_model("BERT")
    with files.writing(os.path.join(directory, file_names.ONNX)) as file:
        file.write(network.SerializeToString())


def _convert_erfc(graph: Any, node: Any, name: str, _: Any) -> None:
    """Converts Erfc to 1 - Erf, because ONNX has no Erfc.

    TensorFlow's exact gelu uses it.
    """
    node.type = "Erf"
    one = graph.make_const(f"{name}/one", np.array(1, np.float32))
    [output] = node.output
    graph.insert_new_node_on_output(
        "Sub", output, f"{name}/sub", [*one.output, output]
    )


def make_onnx_engine(directory: str, outputs: Sequence[str]) -> Engine:
    """Returns an engine that computes these outputs with ONNX Runtime."""
    import onnxruntime

    path = os.path.join(directory, file_names.ONNX)
    session = onnxruntime.InferenceSession(path)
    names = [port.name for port in session.get_inputs()]

    def compute(batch: dict[str, np.ndarray]) -> list[np.ndarray]:
        return session.run(list(outputs), {name: batch[name] for name in names})

    return compute


# {value of `--to`: writes a function to a directory, and makes its engine}
_TARGETS: dict[str, tuple[Callable[[Any, str], None], Callable[..., Engine]]]
_TARGETS = {
    "openvino": (_write_openvino, OpenVinoEngine),
    "onnx": (_write_onnx, make_onnx_engine),
}


def largest_difference(
    function: Callable[..., Tensors],
    make_engine: Callable[[list[str]], Engine],
    inputs: Sequence[tf.TensorSpec],
    config: BertConfig,
) -> float:
    """Returns how far an engine's outputs differ from those of a function.

    The inputs are random tokens. `make_engine` returns the engine for the names
    of the outputs. Raises `InputError` if these are not finite.
    """
    length = min(config.max_position_embeddings, 32)
    random = np.random.RandomState(0)
    num_values = {
        "input_ids": config.vocab_size,
        "segment_ids": config.type_vocab_size,
        "masked_lm_positions": length,
    }
    batch = {}
    for spec in inputs:
        shape = [*(size or 2 for size in spec.shape[:-1]), length]
        limit = num_values.get(spec.name, 1)
        batch[spec.name] = random.randint(0, limit, shape, np.int32)
    batch["input_mask"][...] = np.arange(length) < 3 * length // 4
    expected = function(*map(tf.constant, batch.values()))
    outputs = require_finite(make_engine(list(expected))(batch))
    return max(
        float(np.abs(values - expected[name].numpy()).max())
        for name, values in zip(expected, outputs, strict=True)
    )
