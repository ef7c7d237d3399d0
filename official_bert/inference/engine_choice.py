"""Loads models with an engine that runs them: TensorFlow or OpenVINO.

TensorFlow is imported only if it runs or converts the model. A model for
OpenVINO was exported, see `export.engine_models`, or is converted from a
checkpoint. In a run directory, the converted model is kept beside it::

    RUN/openvino/finetuned/                or masked_lm/, or encoder/
                       model.xml, ...   the files of an export
                       SOURCE.txt       fingerprints of the checkpoint's files
"""

import atexit
import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from absl import logging

from official_bert import tasks
from official_bert.config import BertConfig
from official_bert.errors import InputError, missing_package
from official_bert.inference import openvino_engine
from official_bert.inference.masked_lm import MASK
from official_bert.inference.openvino_engine import OpenVinoEngine
from official_bert.inputs.schemas import text_schema
from official_bert.io import files
from official_bert.options import cli
from official_bert.options.engine import EngineOptions
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths, task_file
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.sources.pretrained import ModelFiles, run_files
from official_bert.tasks.engines import Engine
from official_bert.tasks.task import FinetunedModel
from official_bert.tokenization import Tokenizer


class EngineChoice(NamedTuple):
    """The values of `--engine`, `--precision` and `--explain`."""

    engine: str = "auto"  # "auto", "tensorflow" or "openvino".
    precision: str = "auto"  # "auto", "float32" or "bfloat16".
    explain: str | None = None


class PretrainedConfig(NamedTuple):
    """Takes the place of the Keras model if OpenVINO runs it."""

    config: BertConfig


def load_finetuned(
    model_files: ModelFiles,
    choice: EngineChoice,
    run_directory: str | None = None,
) -> tuple[FinetunedModel, Engine | None]:
    """Loads the model of a run or, without a directory, one of transformers.

    The engine is None for TensorFlow; for OpenVINO, the model is None.
    """

    def load() -> FinetunedModel:
        if run_directory:
            return _trained_models().load_finetuned(run_directory, model_files)
        return _trained_models().load_huggingface(model_files)

    directory = _find(model_files, "finetuned", choice, load)
    if directory is None:
        return load(), None
    engine = OpenVinoEngine(directory, ["logits"], choice.precision)
    task, length = tasks.load(task_file.read(directory), directory)
    tokenizer = _load_tokenizer(run_files(directory))
    return FinetunedModel(task, None, tokenizer, length), engine


def load_masked_lm(
    model_files: ModelFiles, choice: EngineChoice
) -> tuple[Any, Tokenizer, Engine | None]:
    """Loads a pre-trained model and a tokenizer that keeps [MASK] whole.

    The engine is None for TensorFlow. For OpenVINO, the model has only a
    config.
    """

    def load() -> tuple[Any, Tokenizer]:
        return _trained_models().load_masked_lm(model_files)

    directory = _find(model_files, "masked_lm", choice, load)
    if directory is None:
        return *load(), None
    engine = OpenVinoEngine(directory, ["masked_lm_logits"], choice.precision)
    model = PretrainedConfig(model_files.config)
    return model, _load_tokenizer(model_files, (MASK,)), engine


def load_encoder(
    model_files: ModelFiles, layers: Sequence[int], choice: EngineChoice
) -> tuple[Engine, Tokenizer]:
    """Loads BERT without heads; the engine computes layers [B, S, H].

    `layers` counts from 0.
    """

    def load() -> Any:
        return _trained_models().load_encoder(model_files)

    directory = _find(model_files, "encoder", choice, load)
    if directory is None:
        bert, tokenizer, _ = load()
        return _keras_layers(bert, layers), tokenizer
    names = list(map(openvino_engine.layer_name, layers))
    engine = OpenVinoEngine(directory, names, choice.precision)
    return engine, _load_tokenizer(model_files)


def load_embedder(
    model_files: ModelFiles,
    settings: EmbeddingSettings,
    layers: Sequence[int],
    choice: EngineChoice,
) -> tuple[Engine, Tokenizer]:
    """Loads what `SentencePooling` turns into vectors of texts.

    This is an encoder or, with `in_model`, a fine-tuned model.
    """
    if not settings.in_model:
        return load_encoder(model_files, layers, choice)
    task = checkpoint_paths.beside(model_files.init_checkpoint, file_names.TASK)
    assert task
    (_, model, tokenizer, _), engine = load_finetuned(
        model_files, choice, os.path.dirname(task)
    )
    if engine is None:
        from official_bert.inference import keras_engine

        engine = keras_engine.make(lambda x: [model(x)], text_schema(0))
    return engine, tokenizer


def _trained_models() -> Any:
    with cli.quiet_imports():
        from official_bert.inference import trained_models

    return trained_models


def _keras_layers(bert: Any, layers: Sequence[int]) -> Engine:
    from official_bert.inference import keras_engine

    def run(batch: dict[str, Any]) -> list[Any]:
        outputs = bert(**batch).encoder_outputs
        return [outputs[number] for number in layers]

    return keras_engine.make(run, text_schema(0))


def _load_tokenizer(
    model_files: ModelFiles, never_split: tuple[str, ...] = ()
) -> Tokenizer:
    tokenizer = model_files.make_tokenizer(never_split)
    model_files.config.require_vocabulary(
        tokenizer.vocab, model_files.vocab_source
    )
    return tokenizer


def _find(
    model_files: ModelFiles,
    kind: str,
    choice: EngineChoice,
    load: Callable[[], Any],
) -> str | None:
    """Returns the directory of the model for OpenVINO; None for TensorFlow.

    `load` returns the Keras model, to convert it, as in `trained_models`.
    Raises `InputError` if the choice does not fit the model.
    """
    directory = _find_export(model_files, kind, choice, load)
    if directory:
        precision = choice.precision.replace("auto", "float32")
        logging.info(f"Engine: OpenVINO, {precision}: {directory}")
        return directory
    if choice.precision == "bfloat16":
        raise InputError(
            "--precision=bfloat16 needs OpenVINO. Add --engine=openvino."
        )
    _require_tensorflow(model_files)
    logging.info("Engine: TensorFlow")
    return None


def _require_tensorflow(model_files: ModelFiles) -> None:
    if problem := missing_package("tensorflow"):
        raise InputError(
            f"{model_files.init_checkpoint}: a checkpoint {problem} Without "
            "it, use a model that --export_openvino wrote."
        )


def _find_export(
    model_files: ModelFiles,
    kind: str,
    choice: EngineChoice,
    load: Callable[[], Any],
) -> str | None:
    engine = choice.engine
    fields = EngineOptions.fields()
    for name in ("engine", "precision"):
        choices, value = fields[name].metadata["choices"], getattr(choice, name)
        if value not in choices:
            raise InputError(
                f"`{name}` must be {' or '.join(choices)}. Received: {value!r}."
            )
    checkpoint = model_files.init_checkpoint
    problem = missing_package("openvino")
    is_export = openvino_engine.is_export(checkpoint)
    if choice.explain == "integrated_gradients":
        if is_export or engine == "openvino":
            raise InputError(
                f"--explain={choice.explain} needs TensorFlow, and a "
                "checkpoint. With OpenVINO, use --explain=occlusion."
            )
        return None
    if is_export:
        if engine == "tensorflow":
            raise InputError(
                f"--engine=tensorflow: {checkpoint} is an OpenVINO model, "
                "without a checkpoint. Omit the flag."
            )
        if problem:
            raise InputError(f"{checkpoint}: an OpenVINO model {problem}")
        return checkpoint
    if engine == "tensorflow" or (engine == "auto" and problem):
        return None
    if problem:
        raise InputError(f"--engine=openvino {problem}")
    directory = checkpoint
    if not files.list_directory(checkpoint):
        directory = os.path.dirname(checkpoint)
    kept = os.path.join(directory, file_names.CONVERTED, kind)
    source = _describe_source(model_files, directory)
    path = os.path.join(kept, file_names.SOURCE)
    if files.exists(path) and files.read_text(path) == source:
        RunDirectory(directory).warn_if_unfinished()
        return kept
    if engine == "auto":
        return None
    _require_tensorflow(model_files)
    return _convert(load, kind, source, kept if _can_keep(directory) else None)


def _convert(
    load: Callable[[], Any], kind: str, source: str, kept: str | None
) -> str:
    """Converts a model; returns `kept` or, for None, a temporary directory.

    `source` describes the checkpoint.
    """
    if kept is None:
        kept = os.path.join(tempfile.mkdtemp(), kind)
        atexit.register(files.remove_directory, os.path.dirname(kept))
        logging.info(
            "Converting the model. To convert it only once, use "
            "convert_checkpoint.py --to=openvino"
        )
    else:
        logging.info(f"Converting the model; it is kept in {kept}")
    files.make_directory(os.path.dirname(kept))
    loaded = load()  # Before other imports of TensorFlow.
    from official_bert.export import engine_models

    if kind == "finetuned":
        engine_models.write_finetuned(loaded, kept)
    else:
        model, tokenizer, *_ = loaded
        engine_models.write_pretrained(model, tokenizer, kept)
    files.write_text(os.path.join(kept, file_names.SOURCE), source)
    return kept


def _can_keep(directory: str) -> bool:
    """Whether converted models are kept in a directory: a run, and writable."""
    parent = os.path.dirname(os.path.abspath(directory))
    is_run = any(RunDirectory(d).is_of_run for d in (directory, parent))
    is_local = not files.is_remote(directory)
    return is_run and is_local and os.access(directory, os.W_OK)


def _describe_source(model_files: ModelFiles, directory: str) -> str:
    """Returns a text that changes with the checkpoint and the model's files.

    The index of a checkpoint contains the checksums of all weights.
    """
    paths = [
        os.path.join(directory, name)
        for name in files.list_directory(directory)
        if name == file_names.CHECKPOINT_LIST or name.endswith(file_names.INDEX)
    ]
    paths += [model_files.bert_config_file, model_files.vocab_file]
    task = checkpoint_paths.beside(directory, file_names.TASK)
    # "." for the newest checkpoint of a run.
    name = os.path.relpath(model_files.init_checkpoint, directory)
    lines = [name, repr(model_files.settings)]
    for path in filter(None, [*paths, task]):
        if files.exists(path):
            lines.append(files.fingerprint(path))
    return "".join(f"{line}\n" for line in lines)
