"""The weights of a Hugging Face folder: `model.safetensors`, or its shards.

Names follow from those of 2018 by a few rules, and kernels are transposed,
because PyTorch's dense layers keep them so.
"""

import os
import re
import shutil
from collections.abc import Iterable
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from official_bert import files, json_files, progress
from official_bert.checkpoints.conversion.model import Model, Place, at_place
from official_bert.checkpoints.names import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError

WEIGHTS = "model.safetensors"
_INDEX = "model.safetensors.index.json"

# Applied to a name of 2018, one after the other.
_RULES = [
    (r"layer_(\d+)", r"layer/\1"),
    (r"_embeddings$", r"_embeddings/weight"),
    (r"(kernel|gamma|output_weights)$", "weight"),
    (r"(beta|output_bias)$", "bias"),
    (r"^cls/squad/", "qa_outputs/"),
    (r"^(?=weight$|bias$)", "classifier/"),
    ("/", "."),
]

# Buffers of older versions, not learned.
IGNORED = r"^bert\.embeddings\.(position_ids|token_type_ids)$"

_WORDS = "bert.embeddings.word_embeddings.weight"
_TIED = {
    "cls.predictions.decoder.weight": _WORDS,
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}


def place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns where the folder has a weight of 2018."""
    del config
    is_kernel = name.endswith("/kernel")
    for pattern, replacement in _RULES:
        name = re.sub(pattern, replacement, name)
    return Place(name, shape[::-1] if is_kernel else shape, is_kernel)


def _canonical(name: str) -> str:
    """Returns the name that today's transformers has in a model with a head.

    A `BertModel` by itself has no `bert.`, and conversions of 2018 kept gamma
    and beta.
    """
    if name.startswith(("embeddings.", "encoder.", "pooler.")):
        name = f"bert.{name}"
    name = re.sub(r"\bLayerNorm\.gamma$", "LayerNorm.weight", name)
    return re.sub(r"\bLayerNorm\.beta$", "LayerNorm.bias", name)


class SafeTensors:
    """The arrays of a folder, by their canonical names.

    Args:
        folder: With `model.safetensors`, or the index of its shards.

    Raises:
        InputError: A file is missing, cut short or damaged, or two arrays that
            must be one differ.
    """

    def __init__(self, folder: str) -> None:
        self.where = folder
        self.shapes: dict[str, Shape] = {}
        self._opened: dict[str, tuple[Any, str]] = {}
        for file_name in _weight_files(folder):
            self._add(os.path.join(folder, file_name))
        for copy, original in _TIED.items():
            self._untie(copy, original)

    def _add(self, path: str) -> None:
        try:
            opened = safe_open(path, framework="numpy")
        except (SafetensorError, OSError) as error:
            raise InputError(
                f"{path}: must be a whole safetensors file. Received: {error}. "
                "Copy or save it again."
            ) from error
        for stored in opened.keys():  # noqa: SIM118 - It is no dict.
            name = _canonical(stored)
            if name in self._opened:
                raise InputError(
                    f"{path}: every weight must be there once. Received: "
                    f"{stored} and {self._opened[name][1]}, which are the same."
                )
            self._opened[name] = (opened, stored)
            self.shapes[name] = tuple(opened.get_slice(stored).get_shape())

    def _untie(self, copy: str, original: str) -> None:
        """Drops a copy; files may have either name, or both."""
        if copy not in self._opened:
            return
        if original not in self._opened:
            self._opened[original] = self._opened[copy]
            self.shapes[original] = self.shapes[copy]
        elif not np.array_equal(self.read(copy), self.read(original)):
            raise InputError(
                f"{self.where}: {copy} must equal {original}, as in every BERT "
                "of 2018. Received: a model with an output layer of its own, "
                "which a checkpoint of 2018 cannot hold."
            )
        del self._opened[copy], self.shapes[copy]

    def read(self, name: str) -> np.ndarray:
        """Returns an array, of half precision as float32, which is exact."""
        opened, stored = self._opened[name]
        kind = opened.get_slice(stored).get_dtype()
        if kind not in ("F64", "F32", "F16", "BF16"):
            raise InputError(
                f"{self.where}: weights must be floating-point numbers. "
                f"Received: {stored}, of type {kind}."
            )
        if kind == "BF16":
            import ml_dtypes  # noqa: F401 - Teaches numpy the name bfloat16.
        array = np.asarray(opened.get_tensor(stored))
        return array.astype(np.float32, copy=False)


def _weight_files(folder: str) -> Iterable[str]:
    if os.path.exists(os.path.join(folder, WEIGHTS)):
        return [WEIGHTS]
    index = os.path.join(folder, _INDEX)
    if not os.path.exists(index):
        raise InputError(
            f"{folder}: must hold {WEIGHTS}. Received: "
            f"{', '.join(sorted(os.listdir(folder))[:8])}. Save the model with "
            "`model.save_pretrained(folder)`."
        )
    parts = json_files.read_object(index).get("weight_map")
    if not isinstance(parts, dict) or not all(
        isinstance(name, str) and name == os.path.basename(name)
        for name in parts.values()
    ):
        raise InputError(
            f"{index}: `weight_map` must give a file beside it for every "
            f"weight. Received: {str(parts)[:80]}. Copy it again."
        )
    for name in set(parts.values()):
        files.require(os.path.join(folder, name), "A part of the weights")
    return sorted(set(parts.values()))


def write(model: Model, folder: str) -> None:
    """Writes `model.safetensors` beside config.json.

    What was made anew stays out.
    """
    config = model.described.config
    arrays: dict[str, np.ndarray] = {}
    for name in progress.bar(
        list(model.places), description="Converting", unit=" arrays"
    ):
        there = place(name, model.shapes[name], config)
        arrays[there.name] = at_place(model.read(name), there)
    # transformers asks for the format.
    path = os.path.join(folder, WEIGHTS)
    save_file(arrays, path, metadata={"format": "pt"})
    # It is made so that nobody else may read it.
    shutil.copymode(os.path.join(folder, "config.json"), path)
