"""Hugging Face directories: `model.safetensors`, or its shards, and configs.

Names follow from TF1 names by a few rules. Kernels are transposed, as PyTorch's
dense layers store them.
"""

import fnmatch
import os
import shutil
from collections.abc import Iterable
from typing import Any

import numpy as np
from absl import logging
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from official_bert.config import BertConfig
from official_bert.errors import InputError, listed
from official_bert.io import files, json_files, utf8
from official_bert.io.json_files import JsonObject
from official_bert.runs import file_names
from official_bert.sources import heads, task_file
from official_bert.sources.formats import Source
from official_bert.sources.formats.huggingface import files as huggingface_files
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.stored_model import (
    Arrays,
    Description,
    Model,
    Names,
    pooling_head_error,
)
from official_bert.tasks.multilabel import MultilabelTask

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"

# The heads of the original implementation always use this value.
_CLASSIFIER_DROPOUT = heads.KINDS["sequence_classification"].dropout

NAMES = Names(
    rules=[
        (r"layer_(\d+)", r"layer/\1"),
        (r"_embeddings$", r"_embeddings/weight"),
        (r"(kernel|gamma|output_weights)$", "weight"),
        (r"(beta|output_bias)$", "bias"),
        (r"^cls/squad/", "qa_outputs/"),
        (r"^(?=weight$|bias$)", "classifier/"),
        ("/", "."),
    ],
    transposed="/kernel$",
    # Buffers of older versions, not weights.
    ignored=r"^bert\.embeddings\.(position_ids|token_type_ids)$",
)

# Removes the prefixes of PyTorch's DataParallel, of `torch.compile` and of a
# model in an attribute `model`; adds `bert.`, which names of a `BertModel`
# lack; and replaces gamma and beta, which early conversions kept.
_CURRENT = Names(
    [
        (r"^((module|_orig_mod|model)\.)+", ""),
        (r"^(?=embeddings\.|encoder\.|pooler\.)", "bert."),
        (r"\bLayerNorm\.gamma$", "LayerNorm.weight"),
        (r"\bLayerNorm\.beta$", "LayerNorm.bias"),
    ]
)
_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def open_arrays(directory: str, config: BertConfig | None = None) -> Arrays:
    """Opens the weights in a directory; `config` is not used.

    Raises `InputError` if a file is missing or damaged.
    """
    opened: dict[str, tuple[Any, str]] = {}
    if adapters := fnmatch.filter(files.list_directory(directory), "adapter_*"):
        logging.warning(
            f"{directory}: {', '.join(adapters)} are not used. In transformers,"
            " they change the model. Merge them there: merge_and_unload()"
        )
    for file_name in _weight_files(directory):
        path = os.path.join(directory, file_name)
        try:
            file = safe_open(path, framework="numpy")
        except (SafetensorError, OSError) as error:
            advice = "Copy or save it again."
            with files.open_binary(path) as stored_file:
                if stored_file.read(len(utf8.LFS_POINTER)) == utf8.LFS_POINTER:
                    advice = "It is a pointer of Git LFS: run `git lfs pull`."
            raise InputError(
                f"{path}: must be a complete safetensors file: {error}. "
                f"{advice}"
            ) from error
        for stored in file.keys():  # noqa: SIM118 - Not a dict.
            name = _CURRENT.rename(stored)
            if name in opened:
                raise InputError(
                    f"{path}: {stored} and {opened[name][1]} are the same "
                    "weight, which must be stored only once."
                )
            opened[name] = (file, stored)

    def read_array(name: str) -> np.ndarray:
        """Returns one array as float32; exact except for float64."""
        file, stored = opened[name]
        dtype = file.get_slice(stored).get_dtype()
        if dtype not in ("F64", "F32", "F16", "BF16"):
            raise InputError(
                f"{directory}: weights must be floating-point numbers. "
                f"Received: {stored}, of type {dtype}."
            )
        if dtype == "BF16":
            import ml_dtypes  # noqa: F401 - Registers bfloat16 with NumPy.
        array = np.asarray(file.get_tensor(stored))
        return array.astype(np.float32, copy=False)

    shapes = {
        name: tuple(file.get_slice(stored).get_shape())
        for name, (file, stored) in opened.items()
    }
    return Arrays(directory, shapes, read_array, NAMES, _TIED)


def _weight_files(directory: str) -> Iterable[str]:
    if files.is_remote(directory):
        raise InputError(
            f"{directory}: a Hugging Face model must be in a local directory. "
            "Copy it to one."
        )
    if os.path.exists(os.path.join(directory, _WEIGHTS)):
        return [_WEIGHTS]
    index = os.path.join(directory, _INDEX)
    if not os.path.exists(index):
        raise InputError(
            f"{directory} must contain {_WEIGHTS}. Received: "
            f"{listed(sorted(os.listdir(directory)))}. Save the model "
            "with `model.save_pretrained(directory)`."
        )
    shards = json_files.load(index).get("weight_map", dict[str, str])
    names = sorted(set(shards.values()))
    for name in names:
        if name != os.path.basename(name):
            raise InputError(
                f"{index}: `weight_map` must name files beside it. Received: "
                f"{name!r}. Copy it again."
            )
        files.require(os.path.join(directory, name), "A shard of the weights")
    return names


def describe(source: Source, config: BertConfig) -> Description:
    """Describes a model without its tokenizer.

    Raises `InputError` if `config.json` is damaged.
    """
    directory, _, config_json = source
    head = huggingface_files.head(config_json)
    dropout = config_json.content.get("classifier_dropout")
    if dropout not in (None, _CLASSIFIER_DROPOUT):
        logging.warning(
            f"{config_json.path}: `classifier_dropout` is {dropout}. This "
            f"project always uses {_CLASSIFIER_DROPOUT}."
        )
    return Description(
        config=config,
        task=task_file.read_beside(directory) or None,
        labels=huggingface_files.labels(config_json),
        problem_type=_problem_type(directory, config_json),
        max_seq_length=sentence_transformers.read_length(directory),
        head=head.name if head else None,
    )


def _problem_type(directory: str, config_json: JsonObject) -> str | None:
    """Returns `problem_type`, a key of `config.json`.

    Models with one label are "regression" if the label's logit is the answer,
    and None if its sigmoid is. Models with several labels are multi-label if
    the sigmoids are. Cross-encoders have another key for that.
    """
    name: str | None = config_json.get("problem_type", str | None)
    has_one_label = len(huggingface_files.labels(config_json)) == 1
    activation = sentence_transformers.read_score_activation(
        directory, config_json, has_one_label=has_one_label
    )
    if activation == "Sigmoid":
        multilabel = MultilabelTask.problem_type
        has_one_label &= name != multilabel
        return None if has_one_label else multilabel
    return "regression" if activation and has_one_label else name


def write(model: Model, directory: str) -> None:
    """Writes weights, config, tokenizer and `task.json`.

    Newly initialized weights are left out. Raises `InputError` if transformers
    has no such model.
    """
    config_file = os.path.join(directory, huggingface_files.CONFIG)
    json_files.write(config_file, _make_config(model), sort_keys=True)
    description = model.description
    description.write_beside(directory)
    if limit := description.settings.num_wordpieces:
        # In transformers, vocab.txt does not have the added tokens.
        vocab = "".join(f"{token}\n" for token in description.tokens[:limit])
        files.write_text(os.path.join(directory, file_names.VOCAB), vocab)
    path = os.path.join(directory, _WEIGHTS)
    arrays = {
        name: array.astype(model.dtype, copy=False)
        for name, array in model.to_format(NAMES, model.stored)
    }
    # transformers requires this metadata.
    save_file(arrays, path, metadata={"format": "pt"})
    # `save_file` makes a file that only its owner can read.
    shutil.copymode(config_file, path)


def _make_config(model: Model) -> dict[str, Any]:
    config, task = model.description.config, model.description.task or {}
    if heads.POOLING_KEY in task:
        raise pooling_head_error(model.arrays.where)
    if config.is_left_to_right:
        raise InputError(
            "A model with `is_left_to_right` has no counterpart in "
            "transformers. Export it with export_tfhub.py instead."
        )
    content = {
        **config.to_dict(),
        "architectures": [model.head.architecture],
        "model_type": huggingface_files.FIXED["model_type"],
        "hidden_act": huggingface_files.THEIR_ACTIVATIONS[
            str(config.hidden_act or "").lower()
        ],
        "hidden_dropout_prob": config.hidden_dropout_prob or 0.0,
        "attention_probs_dropout_prob": config.attention_probs_dropout_prob
        or 0.0,
        "layer_norm_eps": huggingface_files.FIXED["layer_norm_eps"],
        "pad_token_id": 0,
    }
    if model.dtype != "float32":
        # Without this, transformers 5 computes in the dtype of the file.
        content["dtype"] = "float32"
    if labels := model.labels:
        content |= {
            "classifier_dropout": _CLASSIFIER_DROPOUT,
            "id2label": dict(enumerate(labels)),
            "label2id": {label: number for number, label in enumerate(labels)},
        }
        if problem_type := model.description.problem_type:
            content["problem_type"] = problem_type
            activations = sentence_transformers.SCORE_ACTIVATIONS
            if activation := activations.get(problem_type):
                content["sentence_transformers"] = {"activation_fn": activation}
    return content
