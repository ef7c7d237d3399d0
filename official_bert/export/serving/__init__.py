"""Fine-tuned models as SavedModels for TensorFlow Serving.

EXPORT_DIR/1/saved_model.pb             the signatures
             variables/                 the weights
             assets/vocab.txt           and tokenizer_config.json, the settings
             assets/labels.txt          if the task has labels
             assets.extra/task.json     the task of the model
             model.tflite               with `export_tflite`
EXPORT_DIR/2/                           the next version
"""

import os

import tensorflow as tf
from absl import logging

from official_bert.export import engine_models, saved_model
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.export.quantization import Quantization
from official_bert.export.serving import (
    signatures,
    squad_signatures,
    tagging_signatures,
    tflite,
)
from official_bert.export.serving.signatures import TaskSignatures
from official_bert.io import files, json_files
from official_bert.options import FinetuningOptions
from official_bert.runs import file_names
from official_bert.tasks.task import FinetunedModel, Task

# {`serving` of a task: its signatures}.
SIGNATURES: dict[str, type[TaskSignatures]] = {
    "logits": TaskSignatures,
    "classification": signatures.ClassificationSignatures,
    "multilabel": signatures.MultilabelSignatures,
    "regression": signatures.RegressionSignatures,
    "choice": signatures.ChoiceSignatures,
    "embedding": signatures.EmbeddingSignatures,
    "tagging": tagging_signatures.TaggingSignatures,
    "squad": squad_signatures.SquadSignatures,
}


def export(
    finetuned: FinetunedModel,
    options: FinetuningOptions,
    task: Task | None = None,
) -> str:
    """Writes a new version as the flags request, and returns its directory.

    The signatures are `serving_default` for text, `ids` and `examples`; see
    `TaskSignatures` and its subclasses for their inputs and outputs. Answers
    equal those of `predict.py` within rounding; for the texts of answers to
    questions see `squad_signatures`.

    Signatures for text need `tensorflow_text` wherever the model is loaded.
    Without --export_text, `serving_default` is `ids`. --export_tflite also
    writes `model.tflite`. With --export_openvino, the version only has the
    files of `export.engine_models`. `task` has the data, which only --quantize
    needs. An interrupted export leaves no version behind. Raises `InputError`
    if the directory cannot be written, or the model cannot be exported.
    """
    engine_models.require_exportable(finetuned)
    quantization = None
    if options.quantize != "none":
        assert task is not None
        examples = task.data.read("dev")
        quantization = Quantization(
            finetuned, examples, options.quantize, options.training_records
        )
    if options.export_openvino:
        path = _new_version(options.serving_dir)
        gap = engine_models.write_finetuned(finetuned, path, quantization)
        logging.info(
            f"Exported {path}. In float32, logits differ by at most {gap:.2g}"
        )
        return path
    served = make_signatures(finetuned, options.export_text)
    logging.info("Exporting a model for serving; this takes a while")
    module = tf.Module()
    module.weights = [weight.value for weight in finetuned.model.variables]
    module.vocab_file = tf.saved_model.Asset(finetuned.tokenizer.vocab_file)
    description = finetuned.to_json()
    # TensorFlow does not write to assets.extra itself.
    task_path = os.path.join("assets.extra", file_names.TASK)
    extra_files = {
        task_path: json_files.to_text(description).encode(),
        **saved_model.tokenizer_config(finetuned.tokenizer),
    }
    if labels := description.get("labels"):
        text = "".join(f"{label}\n" for label in labels)
        extra_files["assets/labels.txt"] = text.encode()
    if options.export_tflite:
        extra_files["model.tflite"] = tflite.convert(
            served, module, quantization
        )
    path, functions = _new_version(options.serving_dir), served.all()
    saved_model.write(module, path, functions, extra_files)
    logging.info(f"Exported {path}: {', '.join(sorted(functions))}")
    return path


def make_signatures(
    finetuned: FinetunedModel, export_text: bool = True
) -> TaskSignatures:
    """Returns the signatures of a model's kind of task; see `export`."""
    tokenizer = None
    if export_text:
        tokenizer = GraphTokenizer(finetuned.tokenizer)
    return SIGNATURES[finetuned.task.serving](finetuned, tokenizer)


def _new_version(export_dir: str) -> str:
    """Returns the directory of the next version; makes `export_dir`."""
    files.make_directory(export_dir)
    names = files.list_directory(export_dir)
    last = max([int(name) for name in names if name.isdecimal()], default=0)
    return os.path.join(export_dir, str(last + 1))
