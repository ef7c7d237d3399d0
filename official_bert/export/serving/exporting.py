"""A fine-tuned model -> a folder that TensorFlow Serving loads.

EXPORT_DIR/1/saved_model.pb             the functions
             variables/                 the weights
             assets/vocab.txt           and labels.txt, where there are any
             assets.extra/task.json     what the model was trained for
             model.tflite               if asked for
EXPORT_DIR/2/                           the next version
"""

import os
import tempfile
from typing import Any, NamedTuple, Protocol

import tensorflow as tf
from absl import logging

from official_bert import files, json_files, task_file
from official_bert.errors import InputError
from official_bert.export import saved_model
from official_bert.export.graph_tokenizer import GraphTokenizer
from official_bert.export.serving import tflite
from official_bert.export.serving.choice_signatures import ChoiceKind
from official_bert.export.serving.signatures import (
    Kind,
    RowSignatures,
    Served,
    Signature,
    Tensors,
)
from official_bert.export.serving.squad_signatures import SquadKind
from official_bert.export.serving.tagging_signatures import TaggingKind
from official_bert.export.serving.text_signatures import TextKind
from official_bert.inputs import text_inputs
from official_bert.modeling.encoder import Bert
from official_bert.tasks.choice import ChoiceTask
from official_bert.tasks.squad.squad_task import SquadTask
from official_bert.tasks.tagging import TaggingTask
from official_bert.tasks.task import Task
from official_bert.tasks.text import TextTask
from official_bert.tokenization import BatchTokenizer

_DEFAULT = "serving_default"
# A folder of this name is not TensorFlow's own, and left alone.
_TASK = os.path.join("assets.extra", task_file.NAME)


class Exported(NamedTuple):
    """What was written.

    Attributes:
        path: The new version's folder.
        signatures: The names of its signatures.
        tflite_difference: The largest difference between logits of model.tflite
            and of the model; None if there is none.
    """

    path: str
    signatures: list[str]
    tflite_difference: float | None


class Trained(Protocol):
    """A fine-tuned model, as `trained_models.load_finetuned` returns it."""

    @property
    def task(self) -> Task:
        """What it was trained for."""

    @property
    def model(self) -> Any:
        """As `task.build_model` makes it, with its weights."""

    @property
    def tokenizer(self) -> BatchTokenizer:
        """Of the model."""

    @property
    def vocab_file(self) -> str:
        """The tokenizer's."""

    @property
    def max_seq_length(self) -> int:
        """What the model was trained with."""


def export(
    trained: Trained,
    export_dir: str,
    *,
    export_text: bool = True,
    export_tflite: bool = False,
) -> Exported:
    """Writes a new version: all of it, or nothing under its number.

    The signatures are `serving_default` for texts, `ids` and `examples`; what
    they take and return is said where each kind of task is: `text.TextKind`,
    `choice.ChoiceKind`, `tagging.TaggingKind`, `squad.SquadKind`. The answers
    are those of `predict.py` but for rounding.

    Args:
        trained: The model.
        export_dir: Folder of all versions.
        export_text: Whether there are signatures for texts, which need the
            operations of `tensorflow_text` wherever the version is loaded;
            without them `serving_default` is `ids`.
        export_tflite: Whether to write `model.tflite` as well.

    Raises:
        InputError: The folder takes no files; or the model cannot be exported.
    """
    _require_own_bert(trained.model)
    served = make_served(trained, export_text)
    kind = make_kind(served)
    rows = RowSignatures(kind, served)
    signatures = rows.all()
    signatures[_DEFAULT] = signatures["ids"]
    if export_text:
        signatures.update(kind.text_signatures())
    module = tf.Module()
    module.weights = [weight.value for weight in trained.model.variables]
    module.vocab_file = tf.saved_model.Asset(trained.vocab_file)
    logging.info("Exporting a model for serving; it takes a while")
    functions = {
        name: traced(signature) for name, signature in signatures.items()
    }
    described = task_file.describe(
        trained.task.to_json(),
        trained.max_seq_length,
        trained.tokenizer.basic_tokenizer.do_lower_case,
    )
    files.make_directory(export_dir)
    path = os.path.join(export_dir, str(next_version(export_dir)))
    difference = None
    with files.replacing_directory(path) as folder:
        _save(module, functions, described, folder)
        if export_tflite:
            name = os.path.join(folder, "model.tflite")
            difference = tflite.write(rows, module, name)
            logging.info("model.tflite differs by up to %.2g", difference)
    logging.info("Exported %s: %s", path, ", ".join(sorted(functions)))
    return Exported(path, sorted(functions), difference)


def _require_own_bert(model: Any) -> None:
    # The functions of a Hub module are tied to the folder it came from.
    if not isinstance(model.bert, Bert):
        raise InputError(
            "--do_export: the model must be a BERT of this project with a "
            "task's layer. Received: one on a Hub module. Fine-tune from a "
            "checkpoint, or from a module that export_tfhub.py made."
        )


def make_served(trained: Trained, export_text: bool = True) -> Served:
    """Returns what signatures are made of; see `export`."""
    vocab, pieces = trained.tokenizer.vocab, trained.tokenizer.inv_vocab
    do_lower_case = trained.tokenizer.basic_tokenizer.do_lower_case
    tokenizer = None
    if export_text:
        tokenizer = GraphTokenizer(trained.vocab_file, do_lower_case)
    return Served(
        trained.task,
        trained.model,
        tokenizer,
        tuple(pieces.get(number, "") for number in range(max(pieces) + 1)),
        text_inputs.special_ids(vocab),
        trained.max_seq_length,
    )


def make_kind(served: Served) -> Kind:
    """Returns the signatures of a task's kind."""
    task = served.task
    if isinstance(task, TextTask):
        return TextKind(served)
    if isinstance(task, ChoiceTask):
        return ChoiceKind(served)
    if isinstance(task, TaggingTask):
        return TaggingKind(served)
    if isinstance(task, SquadTask):
        return SquadKind(served)
    raise InputError(
        "Exported can be models for texts, choices, tags and questions. "
        f"Received: a {type(task).__name__}."
    )


def traced(signature: Signature) -> Any:
    """Returns what can be saved of a signature."""
    function = tf.function(signature.function)
    return function.get_concrete_function(**signature.inputs)


def _save(
    module: Any, functions: Tensors, described: dict[str, Any], folder: str
) -> None:
    """Writes a version into a folder."""
    with tempfile.TemporaryDirectory() as beside:
        if labels := described.get("labels"):
            name = os.path.join(beside, "labels.txt")
            files.write_text(name, "".join(f"{label}\n" for label in labels))
            module.labels_file = tf.saved_model.Asset(name)
        texts = {_TASK: json_files.to_text(described)}
        saved_model.save(module, folder, functions, texts)


def next_version(export_dir: str) -> int:
    """Returns the number after the highest one of a folder, at least 1."""
    names = files.list_directory(export_dir)
    return max([int(name) for name in names if name.isdecimal()], default=0) + 1
