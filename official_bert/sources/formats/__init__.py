"""The formats of models. A format is a folder and a row of `FORMATS`.

A folder has two modules: `files`, see `FormatFiles`, and `weights`, which needs
TensorFlow and has these functions::

    open_arrays(path, config)  returns the stored `Arrays`
    describe(source, config)   returns a `Description` without the tokenizer
    write(model, directory)    writes a `Model`; not if `is_output` is false
"""

import importlib
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from official_bert.config import BertConfig
from official_bert.errors import InputError, listed
from official_bert.io import files, json_files
from official_bert.io.json_files import JsonObject
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import checkpoint_paths
from official_bert.sources.formats.huggingface import files as huggingface_files
from official_bert.sources.formats.keras_hub import files as keras_hub_files
from official_bert.sources.formats.tf1 import files as tf1_files
from official_bert.tokenization.settings import TokenizerSettings


class FormatFiles(Protocol):
    """The module `files` of a format, which needs no TensorFlow.

    `config_json` is the content of `config.json`; it is empty if there is none.
    Functions raise `InputError` for damaged files, and for models other than
    BERT.
    """

    def matches(
        self, directory: str, names: Sequence[str], config_json: JsonObject
    ) -> bool:
        """Whether a directory with files of these names has the format."""

    def read_config(
        self, directory: str, config_json: JsonObject
    ) -> BertConfig:
        """Returns the config of the model."""

    def read_tokenizer(
        self, directory: str
    ) -> tuple[str | None, TokenizerSettings]:
        """Returns the text of `vocab.txt`, and the tokenizer's settings.

        None and the defaults if the model has no tokenizer.
        """


class Format(NamedTuple):
    """A format of models."""

    name: str  # Its folder, and a value of `--to` and `--input_format`.
    files: FormatFiles
    metadata_patterns: Sequence[str]  # Names of small files besides *.json.
    weights_patterns: Sequence[str]  # Names of files with weights.
    is_output: bool = True  # Whether models can be converted to it.
    package: str | None = None  # The module of an optional package it needs.

    @property
    def weights(self) -> Any:
        """The module `weights`, which is imported on first use."""
        return importlib.import_module(f"{__name__}.{self.name}.weights")


_TF1 = Format(
    "tf1",
    tf1_files,
    ("checkpoint", "*.index", "vocab.txt"),
    ("*.data-?????-of-?????",),
)
# The same files; only the names in the checkpoint differ.
_MODEL_GARDEN = _TF1._replace(name="model_garden", is_output=False)
_HUGGINGFACE = Format(
    "huggingface",
    huggingface_files,
    # Former releases of sentence-transformers have a folder 0_Transformer.
    ("vocab.txt", "0_*/vocab.txt", "*_Dense*/model.safetensors"),
    ("model*.safetensors", "0_*/model*.safetensors"),
)
_KERAS_HUB = Format(
    "keras_hub",
    keras_hub_files,
    ("assets/tokenizer/vocabulary.txt",),
    ("model.weights.h5",),
    package="keras_hub",
)
FORMATS = {
    row.name: row for row in (_TF1, _HUGGINGFACE, _KERAS_HUB, _MODEL_GARDEN)
}

# The files to download: small ones first, then weights.
METADATA_PATTERNS = tuple(
    {"*.json", *(p for f in FORMATS.values() for p in f.metadata_patterns)}
)
WEIGHTS_PATTERNS = tuple(
    {p for f in FORMATS.values() for p in f.weights_patterns}
)

_SAVED_MODEL = "saved_model.pb"

# Files that are never opened.
_PICKLE = "a pickle, which can run code when it is opened"
_UNSUPPORTED = {
    ".bin": _PICKLE,
    ".pt": _PICKLE,
    ".pth": _PICKLE,
    ".h5": "written by the former TensorFlow models of transformers",
    ".msgpack": "written by the former Flax models of transformers",
}


class Source(NamedTuple):
    """A model in one of the formats. `config.json` has been read, if any."""

    path: str
    format: Format
    config_json: JsonObject

    def read_config(self) -> BertConfig:
        """Returns the config; raises `InputError` if it is invalid."""
        return self.format.files.read_config(self.path, self.config_json)


def find(path: str, where: str) -> Source:
    """Detects the format of a model.

    `path` is a directory or the prefix of a checkpoint. In a directory with
    several formats, a TF1 checkpoint with its config is preferred. Raises
    `InputError` for weights in unsupported formats, and for paths without a
    model, with a message that starts with `where`.
    """
    names = files.list_directory(path)
    has_others = has_other_weights(names)
    has_config = file_names.CONFIG in names
    config_json = json_files.load(path, huggingface_files.CONFIG)
    if tf1_files.matches(path, names) and (has_config or not has_others):
        is_tf2 = tf1_files.has_object_graph(path)
        return Source(path, _MODEL_GARDEN if is_tf2 else _TF1, config_json)
    # `huggingface` comes last, because it accepts every config.json.
    others = (f for f in reversed(FORMATS.values()) if f.files is not tf1_files)
    found = next(
        (f for f in others if f.files.matches(path, names, config_json)), None
    )
    if found is None and has_config:
        return Source(path, _TF1, config_json)  # Without weights.
    if not has_others:
        for name in names or [""]:  # No names: `path` may itself be a file.
            require_readable(os.path.join(path, name).rstrip("/"))
    if found:
        return Source(path, found, config_json)
    require_one_version(path)
    received = listed(names) or "no files. Check the path"
    if files.is_file(path):
        received = "a file. Pass its directory"
    raise InputError(
        f"{where} must have config.json, or bert_config.json and a TF1 "
        f"checkpoint, such as bert_model.ckpt.index. Received: {received}."
    )


def has_other_weights(names: Sequence[str]) -> bool:
    """Whether files have weights, by their names, that are not TF1's."""
    patterns = set(WEIGHTS_PATTERNS).difference(_TF1.weights_patterns)
    return checkpoint_paths.has_any(names, patterns)


def require_one_version(directory: str) -> None:
    """Raises `InputError` for a directory of versions of an exported model."""
    for name in filter(str.isdecimal, files.list_directory(directory)):
        path = os.path.join(directory, name)
        require_readable(path)
        if RunDirectory(path).has(file_names.OPENVINO):
            raise InputError(
                f"{directory} has versions of an exported model. Pass the "
                f"directory of one of them, such as {path}."
            )


def require_readable(path: str) -> None:
    """Raises `InputError` for weights in a format that is never opened."""
    saved_model = os.path.join(path, _SAVED_MODEL)
    if os.path.basename(path) == _SAVED_MODEL or files.exists(saved_model):
        raise InputError(
            f"{path.removesuffix(_SAVED_MODEL).rstrip('/')} is a SavedModel, "
            "for TensorFlow Serving or TF Hub. Pass the run directory or the "
            "checkpoint that it was exported from. Exports written with "
            "--export_openvino can be loaded."
        )
    if path.endswith((".keras", ".weights.h5")):
        raise InputError(
            f"{path} is a Keras file. Pass a directory: a KerasHub preset, a "
            "transformers model or a TF1 checkpoint. In Python, Keras loads "
            "the file, after `from official_bert import Bert`."
        )
    if os.path.basename(path).startswith("openvino_model."):
        raise InputError(
            f"{path} was written by Optimum, and is not supported. Pass the "
            "model that it was exported from; convert_checkpoint.py "
            "--to=openvino writes it for OpenVINO."
        )
    if reason := _UNSUPPORTED.get(os.path.splitext(path)[1]):
        raise InputError(
            f"{path} is {reason}, and is not supported. If you trust it, load "
            "it with a version of transformers that reads it, call "
            "`model.save_pretrained(directory, safe_serialization=True)`, and "
            "use that directory."
        )
