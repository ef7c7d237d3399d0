"""Hugging Face directories: `model.safetensors`, or its shards, and configs.

Names follow from TF1 names by a few rules. Kernels are transposed, as PyTorch's
dense layers store them.
"""

import os
import shutil
from collections.abc import Iterable
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from official_bert import files, json_files
from official_bert.checkpoints.conversion import huggingface_config
from official_bert.checkpoints.conversion.model import (
    Arrays,
    Description,
    Model,
    Names,
)
from official_bert.errors import InputError, listed

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"

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

# To the names of a current model with a head: a `BertModel` has no `bert.`, and
# early conversions kept the names gamma and beta.
_CURRENT = Names(
    [
        (r"^(?=embeddings\.|encoder\.|pooler\.)", "bert."),
        (r"\bLayerNorm\.gamma$", "LayerNorm.weight"),
        (r"\bLayerNorm\.beta$", "LayerNorm.bias"),
    ]
)
_TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def read(directory: str) -> tuple[Arrays, Description]:
    """Opens a directory as `save_pretrained` writes it.

    Raises `InputError` if it is incomplete, damaged or not a BERT model.
    """
    opened: dict[str, tuple[Any, str]] = {}
    for file_name in _weight_files(directory):
        path = os.path.join(directory, file_name)
        try:
            file = safe_open(path, framework="numpy")
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"{path}: must be a complete safetensors file: {error}. Copy "
                "or save it again."
            ) from error
        for stored in file.keys():  # noqa: SIM118 - Not a dict.
            name = _CURRENT.rename(stored)
            if name in opened:
                raise InputError(
                    f"{path}: {stored} and {opened[name][1]} are the same "
                    "weight, which must be stored once."
                )
            opened[name] = (file, stored)

    def read_array(name: str) -> np.ndarray:
        """Returns one array; half precision as float32, which is exact."""
        file, stored = opened[name]
        dtype = file.get_slice(stored).get_dtype()
        if dtype not in ("F64", "F32", "F16", "BF16"):
            raise InputError(
                f"{directory}: weights must be floating-point numbers. "
                f"Received: {stored}, of type {dtype}."
            )
        if dtype == "BF16":
            import ml_dtypes  # noqa: F401 - Registers bfloat16 with NumPy.
        return np.asarray(file.get_tensor(stored)).astype(np.float32)

    shapes = {
        name: tuple(file.get_slice(stored).get_shape())
        for name, (file, stored) in opened.items()
    }
    arrays = Arrays(directory, shapes, read_array, NAMES, _TIED)
    return arrays, huggingface_config.read(directory)


def _weight_files(directory: str) -> Iterable[str]:
    if os.path.exists(os.path.join(directory, _WEIGHTS)):
        return [_WEIGHTS]
    index = os.path.join(directory, _INDEX)
    if not os.path.exists(index):
        raise InputError(
            f"{directory} must contain {_WEIGHTS}. Received: "
            f"{listed(sorted(os.listdir(directory)))}. Save the model "
            "with `model.save_pretrained(directory)`."
        )
    shards = json_files.read_object(index).get("weight_map")
    if not isinstance(shards, dict) or not all(
        isinstance(name, str) and name == os.path.basename(name)
        for name in shards.values()
    ):
        raise InputError(
            f"{index}: `weight_map` must name a file beside it for every "
            f"weight. Received: {str(shards)[:80]}. Copy it again."
        )
    names = sorted(set(shards.values()))
    for name in names:
        files.require(os.path.join(directory, name), "A shard of the weights")
    return names


def write(model: Model, directory: str) -> None:
    """Writes weights, config, tokenizer and `task.json`.

    Newly initialized weights are left out. Raises `InputError` if transformers
    has no such model.
    """
    huggingface_config.write(model, directory)
    path = os.path.join(directory, _WEIGHTS)
    arrays = dict(model.to_format(NAMES, model.stored))
    # transformers requires the format.
    save_file(arrays, path, metadata={"format": "pt"})
    # save_file lets only the owner read it.
    shutil.copymode(os.path.join(directory, "config.json"), path)
