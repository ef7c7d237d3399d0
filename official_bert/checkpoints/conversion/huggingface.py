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

from official_bert import files, json_files, progress
from official_bert.checkpoints.conversion import huggingface_config
from official_bert.checkpoints.conversion.model import (
    Model,
    Place,
    match,
    rename,
    to_place,
)
from official_bert.checkpoints.weights import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError

_WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"

# Applied to a TF1 name, one after the other.
_RULES = [
    (r"layer_(\d+)", r"layer/\1"),
    (r"_embeddings$", r"_embeddings/weight"),
    (r"(kernel|gamma|output_weights)$", "weight"),
    (r"(beta|output_bias)$", "bias"),
    (r"^cls/squad/", "qa_outputs/"),
    (r"^(?=weight$|bias$)", "classifier/"),
    ("/", "."),
]

# To the names of a current model with a head: a `BertModel` has no `bert.`, and
# early conversions kept the names gamma and beta.
_ALIASES = [
    (r"^(?=embeddings\.|encoder\.|pooler\.)", "bert."),
    (r"\bLayerNorm\.gamma$", "LayerNorm.weight"),
    (r"\bLayerNorm\.beta$", "LayerNorm.bias"),
]

# Buffers of older versions, not weights.
_IGNORED = r"^bert\.embeddings\.(position_ids|token_type_ids)$"

_WORDS = "bert.embeddings.word_embeddings.weight"
_TIED = {
    "cls.predictions.decoder.weight": _WORDS,
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def get_place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns the place of a TF1 weight in a Hugging Face directory."""
    del config
    is_kernel = name.endswith("/kernel")
    shape = shape[::-1] if is_kernel else shape
    return Place(rename(name, _RULES), shape, is_kernel)


class _SafeTensors:
    """The arrays of a directory with `model.safetensors` or its shards.

    Raises:
        InputError: A file is missing, incomplete or damaged, or two arrays that
            must be equal differ.
    """

    def __init__(self, directory: str) -> None:
        self.where = directory
        self.shapes: dict[str, Shape] = {}
        self._opened: dict[str, tuple[Any, str]] = {}
        for file_name in _weight_files(directory):
            self._add(os.path.join(directory, file_name))
        for copy, original in _TIED.items():
            self._remove_copy(copy, original)

    def _add(self, path: str) -> None:
        try:
            opened = safe_open(path, framework="numpy")
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"{path}: must be a complete safetensors file: {error}. Copy "
                "or save it again."
            ) from error
        for stored in opened.keys():  # noqa: SIM118 - Not a dict.
            name = rename(stored, _ALIASES)
            if name in self._opened:
                raise InputError(
                    f"{path}: {stored} and {self._opened[name][1]} are the "
                    "same weight, which must be stored once."
                )
            self._opened[name] = (opened, stored)
            self.shapes[name] = tuple(opened.get_slice(stored).get_shape())

    def _remove_copy(self, copy: str, original: str) -> None:
        """Keeps one of two tied weights; files have either name, or both."""
        if copy not in self._opened:
            return
        if original not in self._opened:
            self._opened[original] = self._opened[copy]
            self.shapes[original] = self.shapes[copy]
        elif not np.array_equal(self.read(copy), self.read(original)):
            raise InputError(
                f"{self.where}: {copy} must equal {original}, as in the "
                "original BERT. A TF1 checkpoint cannot hold a model with "
                "untied output weights."
            )
        del self._opened[copy], self.shapes[copy]

    def read(self, name: str) -> np.ndarray:
        """Returns one array; half precision as float32, which is exact."""
        opened, stored = self._opened[name]
        dtype = opened.get_slice(stored).get_dtype()
        if dtype not in ("F64", "F32", "F16", "BF16"):
            raise InputError(
                f"{self.where}: weights must be floating-point numbers. "
                f"Received: {stored}, of type {dtype}."
            )
        if dtype == "BF16":
            import ml_dtypes  # noqa: F401 - Registers bfloat16 with NumPy.
        array = np.asarray(opened.get_tensor(stored))
        return array.astype(np.float32, copy=False)


def _weight_files(directory: str) -> Iterable[str]:
    if os.path.exists(os.path.join(directory, _WEIGHTS)):
        return [_WEIGHTS]
    index = os.path.join(directory, _INDEX)
    if not os.path.exists(index):
        raise InputError(
            f"{directory} must contain {_WEIGHTS}. Received: "
            f"{', '.join(sorted(os.listdir(directory))[:8])}. Save the model "
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
    for name in set(shards.values()):
        files.require(os.path.join(directory, name), "A shard of the weights")
    return sorted(set(shards.values()))


def open_model(
    directory: str, head: str | None = None, skip: str | None = None
) -> Model:
    """Opens a directory as `save_pretrained` writes it.

    Args:
        directory: The directory.
        head: The type of a classifier, if its config does not have it.
        skip: Regular expression of arrays to leave out.

    Raises:
        InputError: A file is missing or damaged, or it is not a BERT model.
    """
    return match(
        _SafeTensors(directory),
        huggingface_config.read(directory),
        get_place,
        head=head,
        skip=skip,
        ignored=_IGNORED,
    )


def write(model: Model, directory: str) -> None:
    """Writes weights, config, tokenizer and `task.json`.

    Newly initialized weights are left out.

    Raises:
        InputError: transformers has no such model.
    """
    huggingface_config.write(model, directory)
    config = model.description.config
    arrays: dict[str, np.ndarray] = {}
    for name in progress.bar(
        list(model.places), description="Converting", unit=" arrays"
    ):
        place = get_place(name, model.shapes[name], config)
        arrays[place.name] = to_place(model.read(name), place)
    path = os.path.join(directory, _WEIGHTS)
    # transformers requires the format.
    save_file(arrays, path, metadata={"format": "pt"})
    # save_file lets only the owner read it.
    shutil.copymode(os.path.join(directory, "config.json"), path)
