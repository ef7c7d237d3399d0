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
from typing import Any

from absl import logging

from official_bert import tasks
from official_bert.errors import InputError, missing_package, require_package
from official_bert.inference import keras_engine, openvino_engine
from official_bert.inference.engines import Engine
from official_bert.inference.masked_lm import MASK
from official_bert.inference.openvino_engine import OpenVinoEngine
from official_bert.io import files
from official_bert.options import cli
from official_bert.options.model_source import EngineOptions
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths, formats
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.sources.formats.huggingface import files as huggingface_files
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.pretrained import ModelFiles, run_files
from official_bert.tasks.task import FinetunedModel
from official_bert.tokenization import Tokenizer

# Files on which the answers of a model depend, besides weights of other formats
# than TF1. An index has the checksums of its weights.
_FILES = (
    f"*{file_names.INDEX}",
    *(file_names.OPENVINO, "model.bin", huggingface_files.CONFIG),
)


def load_finetuned(
    model_files: ModelFiles,
    choice: EngineOptions,
    run_directory: str | None = None,
    explain: str | None = None,
) -> tuple[FinetunedModel, Engine | None]:
    """Loads the model of a run or, without a directory, one of transformers.

    The engine is None for TensorFlow; for OpenVINO, the model is None.
    """
    if explain == "integrated_gradients":
        run = RunDirectory(model_files.init_checkpoint)
        if run.has(file_names.OPENVINO) or choice.engine == "openvino":
            raise InputError(
                f"--explain={explain} needs TensorFlow, and a checkpoint. With "
                "OpenVINO, use --explain=occlusion."
            )
        choice = EngineOptions(engine="tensorflow", precision=choice.precision)

    def load() -> FinetunedModel:
        trained_models = _import_trained_models(model_files)
        return trained_models.load_finetuned(run_directory, model_files)

    engine = _openvino(model_files, "finetuned", ["logits"], choice, load)
    if engine is None:
        return load(), None
    exported = run_files(engine.directory)
    task, length = tasks.load(exported.task, engine.directory)
    engine.require_shapes(task.head.ids_shape, task.head.logits_shape)
    kept = exported.special_tokens if task.finds_special_tokens else ()
    tokenizer = exported.tokenizer_for(exported.config, kept)
    return FinetunedModel(task, None, tokenizer, length), engine


def load_masked_lm(
    model_files: ModelFiles, choice: EngineOptions
) -> tuple[Any, Tokenizer, Engine | None]:
    """Loads a pre-trained model and a tokenizer that keeps [MASK] whole.

    The engine is None for TensorFlow. For OpenVINO, `model_files` take the
    place of the model, of which only the config is used.
    """

    def load() -> tuple[Any, Tokenizer]:
        return _import_trained_models(model_files).load_masked_lm(model_files)

    outputs = ["masked_lm_logits"]
    engine = _openvino(model_files, "masked_lm", outputs, choice, load)
    if engine is None:
        return *load(), None
    tokenizer = model_files.tokenizer_for(model_files.config, (MASK,))
    return model_files, tokenizer, engine


def load_embedder(
    model_files: ModelFiles,
    settings: EmbeddingSettings,
    layers: Sequence[int],
    choice: EngineOptions,
) -> tuple[Engine, Tokenizer]:
    """Loads what `SentencePooling` turns into vectors of texts.

    This is BERT without heads, whose engine computes layers [B, S, H], counted
    from 0. With `in_model`, it is a fine-tuned model.
    """
    if settings.in_model:
        checkpoint = model_files.init_checkpoint
        task = checkpoint_paths.beside(checkpoint, file_names.TASK)
        assert task
        finetuned, engine = load_finetuned(
            model_files, choice, os.path.dirname(task)
        )
        engine = engine or keras_engine.make(lambda x: [finetuned.model(x)])
        return engine, finetuned.tokenizer

    kept = model_files.special_tokens if model_files.embedding else ()

    def load() -> Any:
        trained_models = _import_trained_models(model_files)
        return trained_models.load_encoder(model_files, kept)

    outputs = list(map(openvino_engine.layer_name, layers))
    engine = _openvino(model_files, "encoder", outputs, choice, load)
    if engine:
        return engine, model_files.tokenizer_for(model_files.config, kept)
    bert, tokenizer, _ = load()

    def run(batch: dict[str, Any]) -> list[Any]:
        vectors = bert(**batch).encoder_outputs
        return [vectors[number] for number in layers]

    return keras_engine.make(run), tokenizer


def _import_trained_models(model_files: ModelFiles) -> Any:
    """Raises `InputError` without TensorFlow, which reads checkpoints."""
    if problem := missing_package("tensorflow"):
        raise InputError(
            f"{model_files.init_checkpoint}: a checkpoint {problem} Without "
            "it, use a model that --export_openvino wrote."
        )
    with cli.quiet_imports():
        from official_bert.inference import trained_models

    return trained_models


def _openvino(
    model_files: ModelFiles,
    kind: str,
    outputs: Sequence[str],
    choice: EngineOptions,
    load: Callable[[], Any],
) -> OpenVinoEngine | None:
    """Returns an engine of OpenVINO; None to use TensorFlow.

    `load` returns the Keras model, to convert it, as in `trained_models`.
    Raises `InputError` if the choice does not fit the model.
    """
    directory = _find_export(model_files, kind, choice)
    if choice.engine == "openvino" and not directory:
        directory = _convert(model_files, kind, load)
    if directory:
        precision = choice.precision.replace("auto", "float32")
        logging.info(f"Engine: OpenVINO, {precision}: {directory}")
        return OpenVinoEngine(
            directory, outputs, choice.precision, choice.is_batch_job
        )
    if choice.precision == "bfloat16":
        raise InputError(
            "--precision=bfloat16 needs OpenVINO. Add --engine=openvino."
        )
    logging.info(f"Engine: TensorFlow: {model_files.init_checkpoint}")
    return None


def _find_export(
    model_files: ModelFiles, kind: str, choice: EngineOptions
) -> str | None:
    """Returns the directory of a model for OpenVINO that exists, if any.

    Returns None for TensorFlow. Raises `InputError` if the engine is missing.
    """
    engine, checkpoint = choice.engine, model_files.init_checkpoint
    if RunDirectory(checkpoint).has(file_names.OPENVINO):
        if engine == "tensorflow":
            raise InputError(
                f"--engine=tensorflow: {checkpoint} is an OpenVINO model, "
                "without a checkpoint. Omit the flag."
            )
        require_package("openvino", f"{checkpoint}: an OpenVINO model")
        return checkpoint
    is_missing = missing_package("openvino") is not None
    if engine == "tensorflow" or (engine == "auto" and is_missing):
        return None
    require_package("openvino", "--engine=openvino")
    directory = checkpoint_paths.directory(checkpoint)
    kept = os.path.join(directory, file_names.CONVERTED, kind)
    path = os.path.join(kept, file_names.SOURCE)
    if not files.exists(path):
        return None
    if files.read_text(path) != _describe_source(model_files):
        return None
    RunDirectory(directory).warn_if_unfinished()
    return kept


def _convert(
    model_files: ModelFiles, kind: str, load: Callable[[], Any]
) -> str:
    """Converts a model; returns its directory, which may be temporary."""
    source = _describe_source(model_files)
    directory = checkpoint_paths.directory(model_files.init_checkpoint)
    kept = os.path.join(directory, file_names.CONVERTED, kind)
    if _can_keep(directory):
        logging.info(f"Converting the model; it is kept in {kept}")
    else:
        kept = os.path.join(tempfile.mkdtemp(), kind)
        atexit.register(files.remove_directory, os.path.dirname(kept))
        logging.info(
            "Converting the model. To convert it only once, use "
            "convert_checkpoint.py --to=openvino"
        )
    loaded = load()  # Before other imports of TensorFlow.
    from official_bert.export import engine_models

    files.make_directory(os.path.dirname(kept))
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


def _describe_source(model_files: ModelFiles) -> str:
    """Returns a text that changes with the checkpoint and the model's files."""
    checkpoint = model_files.init_checkpoint
    directory = checkpoint_paths.directory(checkpoint)
    # "." for the newest checkpoint of a run, which a file names.
    name = os.path.relpath(checkpoint, directory)
    newest = os.path.join(directory, file_names.CHECKPOINT_LIST)
    paths = filter(files.exists, (newest, *source_files(model_files)))
    lines = (name, repr(model_files.settings), *map(files.fingerprint, paths))
    return "".join(f"{line}\n" for line in lines)


def source_files(model_files: ModelFiles) -> tuple[str, ...]:
    """Returns the files on which the answers of a model depend."""
    checkpoint = model_files.init_checkpoint
    directory = checkpoint_paths.directory(checkpoint)
    weights = [
        os.path.join(directory, name)
        for name in files.list_directory(directory)
        if checkpoint_paths.has_any([name], _FILES)
        or formats.has_other_weights([name])
    ]
    return (
        *weights,
        model_files.bert_config_file,
        model_files.vocab_file,
        *sentence_transformers.input_files(checkpoint),
    )
