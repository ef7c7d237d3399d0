"""Loads and saves weights of models.

Loading is strict: a missing, unused or wrongly shaped weight is an error.
"""

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
from absl import logging

from official_bert.config import BertConfig
from official_bert.errors import InputError, bullet_list, listed
from official_bert.io import files
from official_bert.runs import checkpoints, file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import formats, heads, pretrained
from official_bert.sources.embedding_settings import Dense, EmbeddingSettings
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.formats.tf1 import files as tf1_files
from official_bert.sources.formats.tf1 import weights as tf1_weights
from official_bert.sources.pretrained import ModelFiles
from official_bert.sources.stored_model import Arrays, Description
from official_bert.tasks.sentence_vectors import load_dense
from official_bert.tokenization import FullTokenizer, load_vocab

_OUTSIDE = "^cls/|^bert/pooler/"

# {regular expression: hint if a checkpoint lacks only weights that match}
_IF_ONLY_MISSING = {
    heads.TASK_HEAD: "The model is pre-trained, but not fine-tuned. Add "
    "--do_train, or use a fine-tuned model.",
    _OUTSIDE: "The checkpoint lacks only weights outside the layers of BERT. "
    f"In training, --may_initialize='{_OUTSIDE}' initializes them randomly.",
}


class Loaded(NamedTuple):
    """A checkpoint that was loaded."""

    source: str  # Its prefix, or the directory of a model in another format.
    # Names that the checkpoint lacks, or stores with another shape. Their
    # variables keep their initial values.
    initialized: list[str]


def open_arrays(
    path: str,
    model_files: ModelFiles | None = None,
    has_masked_lm: bool = False,
) -> Arrays:
    """Opens a model's weights, with the names and shapes of a TF1 checkpoint.

    `path` is a checkpoint prefix, or a directory in any format. `model_files`
    is the model if it was read before; its config may be in another directory.
    Raises `InputError` if it is damaged, not a BERT model or, with
    `has_masked_lm`, if the output weights are not the word embeddings.
    """
    if not files.list_directory(path):
        arrays = tf1_weights.open_prefix(path)
        if tf1_files.OBJECT_GRAPH not in arrays.shapes:
            return arrays  # A TF1 checkpoint is read without its config.
    source = model_files.source if model_files else formats.find(path, path)
    config = model_files.config if model_files else source.read_config()
    arrays = source.format.weights.open_arrays(path, config)
    return arrays.to_tf1(config, has_masked_lm)


def read(
    source: formats.Source, config_file: str | None = None
) -> tuple[Arrays, Description]:
    """Opens the weights of a model, and describes the model.

    `config_file` replaces its config. Raises `InputError` if files are damaged
    or missing, or the model is not the original BERT.
    """
    path, model_format = source.path, source.format
    if config_file:
        config = BertConfig.from_json_file(config_file)
    else:
        config = source.read_config()
    description = model_format.weights.describe(source, config)
    vocab, settings = model_format.files.read_tokenizer(path)
    settings = settings.with_flags(description.settings.do_lower_case)
    arrays = model_format.weights.open_arrays(path, config)
    description = dataclasses.replace(
        description,
        vocab=vocab,
        settings=settings,
        embedding=read_embedding(path, arrays.read),
    )
    return arrays, description


def read_embedding(
    path: str, read: Callable[[str], np.ndarray]
) -> EmbeddingSettings | None:
    """Reads how a model turns a text into a vector, to be written elsewhere.

    `read` returns the weights of a training run, among them the dense layer.
    """
    settings = sentence_transformers.read(path)
    if settings is None or not settings.in_model:
        return settings
    dense = settings.dense
    if dense:
        kernel = read(f"{heads.EMBEDDING_LAYER}/kernel")
        bias = read(f"{heads.EMBEDDING_LAYER}/bias")
        arrays = {"linear.weight": kernel.T.copy(), "linear.bias": bias}
        stored = safetensors.numpy.save(arrays)
        dense = (Dense(len(kernel), len(bias), "Tanh", stored),)
    return dataclasses.replace(settings, dense=dense, in_model=False)


def _with_dense(arrays: Arrays, settings: EmbeddingSettings | None) -> Arrays:
    """Adds a dense layer with tanh in the files of sentence-transformers."""
    layers = () if not settings or settings.in_model else settings.dense
    if [layer.activation for layer in layers] != ["Tanh"]:
        return arrays
    kernel, bias, _ = load_dense(layers[0], layers[0].in_features)
    bias = np.broadcast_to(bias, kernel.shape[1:])
    dense = {
        f"{heads.EMBEDDING_LAYER}/kernel": kernel,
        f"{heads.EMBEDDING_LAYER}/bias": bias,
    }
    return dataclasses.replace(
        arrays,
        shapes={**arrays.shapes, **{n: x.shape for n, x in dense.items()}},
        read_stored=lambda n: dense[n] if n in dense else arrays.read(n),
    )


def load(
    variables: Mapping[str, Any],
    path: str,
    *,
    model_files: ModelFiles | None = None,
    may_initialize: str = "",
    may_skip: str = "",
) -> Loaded:
    """Assigns all variables from a checkpoint, or none.

    Args:
        variables: {name in the checkpoint: variable}.
        path: Checkpoint prefix; a run directory, see `load_newest`; or a model
            in another format, see `open_arrays`.
        model_files: The model, if its files were read before.
        may_initialize: Regular expression of names that may be missing in the
            checkpoint. These variables keep their initial values.
        may_skip: Regular expression of names in the checkpoint that may be
            unused. If both expressions match a name, the weight may have
            another shape; the variable then keeps its initial values.

    Raises:
        InputError: The checkpoint is damaged, or any other name is missing,
            unused or has another shape; the message lists all of them.
    """
    patterns = {"may_initialize": may_initialize, "may_skip": may_skip}
    loaded = None
    if not files.exists(path + file_names.INDEX):
        loaded = load_newest(variables, path, resumes=False, **patterns)
    if not loaded:
        return _assign(variables, path, model_files, **patterns)
    RunDirectory(path).warn_if_unfinished()
    return loaded


def _assign(
    variables: Mapping[str, Any],
    path: str,
    model_files: ModelFiles | None = None,
    may_initialize: str = "",
    may_skip: str = "",
) -> Loaded:
    """Assigns all variables from one checkpoint; arguments as in `load`."""
    has_masked_lm = any(n.startswith(heads.MASKED_LM) for n in variables)
    checkpoint = open_arrays(path, model_files, has_masked_lm)
    if model_files and f"{heads.EMBEDDING_LAYER}/kernel" in variables:
        checkpoint = _with_dense(checkpoint, model_files.embedding)
    stored = checkpoint.shapes
    shapes = {name: tuple(x.shape) for name, x in variables.items()}
    names = sorted(shapes.keys() | stored.keys())
    differing = [n for n in names if shapes.get(n) != stored.get(n)]
    problems: dict[str, str] = {}
    for name in differing:
        own, found = shapes.get(name), stored.get(name)
        # A variable needs `may_initialize`, a stored array needs `may_skip`.
        allows_variable = own is None or _matches(may_initialize, name)
        allows_array = found is None or _matches(may_skip, name)
        if allows_variable and allows_array:
            continue
        problem = f"missing: {name}"
        if own is None:
            problem = f"unused: {name}"
        elif found is not None:
            problem = (
                f"wrong shape: {name} is {[*found]} in the checkpoint and "
                f"{[*own]} in the model"
            )
        problems[name] = problem
    if problems:
        hint = (
            "Usual causes: the bert_config.json of another model; a checkpoint "
            "of another task, with another head; an output directory that was "
            "used for another model or another --optimizer. In training, "
            "--may_initialize allows missing names, --may_skip allows unused "
            "names, and both together allow other shapes."
        )
        for pattern, cause in _IF_ONLY_MISSING.items():
            if all(n not in stored and re.search(pattern, n) for n in problems):
                hint = cause
        raise InputError(
            f"{path}: the checkpoint does not fit the model:"
            f"{bullet_list(sorted(problems.values()))}\n{hint}"
        )
    # Read in the order of the file, because TensorFlow reads ahead.
    loaded = sorted(shapes.keys() - {*differing})
    arrays = {name: checkpoint.read(name) for name in loaded}
    for name, array in arrays.items():
        variables[name].assign(array)
    return Loaded(checkpoint.where, [n for n in differing if n in shapes])


def from_pretrained(
    model_class: Any, model: str | os.PathLike[str], **kwargs: Any
) -> Any:
    """Returns `model_class(config, **kwargs)` with the weights of a model.

    `model` is an argument of `pretrained.find`. Heads that the class does not
    have are ignored. Missing weights of heads and of the pooler are newly
    initialized, with a warning. Raises `InputError` if other weights are
    missing or unused.
    """
    model_files = pretrained.find(model)
    pretrained.download_weights(model, model_files.init_checkpoint)
    layer = model_class(model_files.config, **kwargs)
    if not layer.built:
        layer.build()
    loaded = load(
        _by_checkpoint_name(layer),
        model_files.init_checkpoint,
        may_initialize=_OUTSIDE,
        may_skip=tf1.NOT_BERT,
    )
    if loaded.initialized:
        names = listed(loaded.initialized)
        logging.warning(f"{model}: newly initialized: {names}")
    return layer


def save_pretrained(
    layer: Any,
    directory: str | os.PathLike[str],
    tokenizer: FullTokenizer | None,
) -> None:
    """Writes the files of a TF1 model; see `PretrainedLayer`."""
    directory = os.path.expanduser(directory)
    if RunDirectory(directory).is_of_run:
        raise InputError(
            f"{directory} is a run directory, whose checkpoints would no "
            "longer be found. Choose another directory."
        )
    if not layer.built:
        layer.build()
    if not isinstance(tokenizer, FullTokenizer | None):
        raise InputError(
            f"`tokenizer` must be a `Tokenizer`. Received: {tokenizer!r}."
        )
    description = Description(config=layer.config)
    vocab_file = os.path.join(directory, file_names.VOCAB)
    if tokenizer:
        layer.config.require_vocabulary(tokenizer.vocab, tokenizer.vocab_file)
        description = dataclasses.replace(
            description,
            vocab=files.read_text(tokenizer.vocab_file),
            settings=tokenizer.settings,
        )
    elif files.exists(vocab_file):
        layer.config.require_vocabulary(load_vocab(vocab_file), vocab_file)
    arrays = _by_checkpoint_name(layer).items()
    files.make_directory(directory)
    tf1_weights.write_files(directory, arrays, description)


def _by_checkpoint_name(layer: Any) -> dict[str, Any]:
    """Returns {name in a checkpoint: weight} of a Keras layer.

    The weights that `enable_lora` of Keras adds are merged into the kernels.
    """
    weights = tf1.by_name(layer.weights)
    for part in layer._flatten_layers():
        if getattr(part, "lora_enabled", False):
            a = weights.pop(part.lora_kernel_a.path)
            b = weights.pop(part.lora_kernel_b.path)
            kernel = a.path.removesuffix("lora_kernel_a") + "kernel"
            scale = part.lora_alpha / part.lora_rank
            weights[kernel] = weights[kernel] + scale * (a @ b)
    # Checkpoints name the encoder `bert`, whatever the layer is called.
    prefix = f"^{re.escape(layer.path or 'bert')}/"
    return {re.sub(prefix, "bert/", n): x for n, x in weights.items()}


def load_newest(
    variables: Mapping[str, Any],
    directory: str,
    *,
    resumes: bool,
    **patterns: str,
) -> Loaded | None:
    """Loads the newest undamaged checkpoint of a run directory.

    Reading verifies the data; damaged checkpoints give a warning. For `resumes`
    see `checkpoints.first_undamaged`; for `patterns` see `load`. Returns None
    if there is no checkpoint. Raises `InputError` if all are damaged, or one
    does not fit the model.
    """
    assign = functools.partial(_assign, variables, model_files=None, **patterns)
    return checkpoints.first_undamaged(directory, assign, resumes=resumes)


def _matches(pattern: str, name: str) -> bool:
    return bool(pattern and re.search(pattern, name))
