"""Stored models: the same for all formats, except for the names of weights.

The `Names` of a format give the name, shape and orientation of each weight of a
TF1 checkpoint. `Arrays` are loaded; a `Model` is converted to another format.
"""

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from official_bert.config import BertConfig
from official_bert.errors import InputError, bullet_list
from official_bert.io import json_files, progress
from official_bert.sources import (
    heads,
    task_file,
    tokenizer_files,
    weight_names,
)
from official_bert.sources.embedding_settings import EmbeddingSettings
from official_bert.sources.formats.huggingface import sentence_transformers
from official_bert.sources.weight_names import Shape
from official_bert.tokenization.settings import UNKNOWN, TokenizerSettings

_NOTHING = "(?!)"  # A regular expression without matches.


@dataclasses.dataclass(frozen=True)
class Names:
    """How a format names and shapes the weights of a TF1 checkpoint."""

    # (regular expression, replacement) pairs, applied one after the other.
    rules: Sequence[tuple[str, str]] = ()
    # Regular expression of TF1 names whose axes are swapped.
    transposed: str = _NOTHING
    # Whether attention weights have separate axes for heads, [H, A, D] and
    # [A, D, H], with the values in the same order.
    splits_heads: bool = False
    # Regular expression of stored arrays that are not weights.
    ignored: str = _NOTHING

    def rename(self, name: str) -> str:
        """Returns the name of a TF1 weight in the format."""
        for pattern, replacement in self.rules:
            name = re.sub(pattern, replacement, name)
        return name

    def transpose(self, name: str, array: np.ndarray) -> np.ndarray:
        """Swaps the axes of a TF1 weight if the format does."""
        return array.T if re.search(self.transposed, name) else array

    def shape(self, name: str, shape: Shape, config: BertConfig) -> Shape:
        """Returns the shape of a TF1 weight in the format."""
        if re.search(self.transposed, name):
            return shape[::-1]
        if not self.splits_heads:
            return shape
        num_heads = config.num_attention_heads
        size = config.hidden_size // num_heads
        if "/attention/self/" in name:
            return (*shape[:-1], num_heads, size)
        if name.endswith("/attention/output/dense/kernel"):
            return (num_heads, size, shape[-1])
        return shape


@dataclasses.dataclass(frozen=True)
class Arrays:
    """The stored arrays of a model, which are read on demand."""

    where: str  # The file or directory of the arrays, for messages.
    shapes: Mapping[str, Shape]
    read_stored: Callable[[str], np.ndarray]
    names: Names  # How their format names the weights.
    # Stored name -> name by the rules of `names`, if they differ.
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def read(self, name: str) -> np.ndarray:
        """Returns an array; raises `InputError` for NaN and infinity."""
        array = self.read_stored(name)
        if not np.isfinite(array).all():
            raise InputError(
                f"{self.where}: {name} must have finite numbers. Received: NaN "
                "or infinity. The weights are damaged, or their training "
                "diverged: copy or train the model again."
            )
        return array

    def weight_shapes(self, config: BertConfig) -> Mapping[str, Shape]:
        """Returns {TF1 name: shape} of all weights that a model can have."""
        bias_shape = self.shapes.get(self.names.rename("output_bias"), ())
        num_classes = bias_shape[0] if len(bias_shape) == 1 else 1
        return weight_names.shapes(config, num_classes)

    def tf1_names(self, candidates: Iterable[str]) -> dict[str, str | None]:
        """Returns {stored name: TF1 name} without ignored arrays.

        The TF1 name is None if an array corresponds to none of the candidates.
        """
        tf1_names = {self.names.rename(name): name for name in candidates}
        return {
            name: tf1_names.get(self.aliases.get(name, name))
            for name in self.shapes
            if not re.search(self.names.ignored, name)
        }

    def stored_names(
        self, tf1_names: Mapping[str, str | None], has_masked_lm: bool
    ) -> dict[str, str]:
        """Returns {TF1 name: stored name}, for the first array of each weight.

        `tf1_names` is {stored name: TF1 name}. Raises `InputError` if two
        arrays of the same weight differ. Output weights of the masked LM may
        differ if not `has_masked_lm`.
        """
        stored_names: dict[str, str] = {}
        for stored, name in tf1_names.items():
            first = stored_names.setdefault(name, stored) if name else stored
            is_used = has_masked_lm or weight_names.POOLER in (name or "")
            if first != stored and is_used:
                _require_equal(self, first, stored)
        return stored_names

    def read_as_tf1(self, stored: str, name: str, shape: Shape) -> np.ndarray:
        """Returns an array as a TF1 checkpoint stores it."""
        array = self.names.transpose(name, self.read(stored))
        return np.ascontiguousarray(array.reshape(shape))

    def to_tf1(self, config: BertConfig, has_masked_lm: bool) -> "Arrays":
        """Returns the arrays with the names and shapes of a TF1 checkpoint.

        Arrays without a counterpart, or with a wrong shape, are unchanged. For
        `has_masked_lm` and errors see `stored_names`.
        """
        expected = self.weight_shapes(config)
        names = {n: name or n for n, name in self.tf1_names(expected).items()}
        stored = self.stored_names(names, has_masked_lm)
        shapes = {name: self.shapes[stored[name]] for name in stored}
        for name, shape in expected.items():
            if shapes.get(name) == self.names.shape(name, shape, config):
                shapes[name] = shape
        return Arrays(
            self.where,
            shapes,
            lambda name: self.read_as_tf1(stored[name], name, shapes[name]),
            Names(),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """Everything about a model except its weights."""

    config: BertConfig
    vocab: str | None = None  # The text of its vocab.txt.
    settings: TokenizerSettings = UNKNOWN
    task: dict[str, Any] | None = None  # The content of its task.json.
    labels: tuple[str, ...] = ()  # One per class, in order.
    problem_type: str | None = None  # The key of transformers' configs.
    max_seq_length: int | None = None  # None: the positions.
    head: str | None = None  # A key of `heads.KINDS`, if known.
    embedding: EmbeddingSettings | None = None

    @property
    def tokens(self) -> list[str]:
        """The tokens of the vocabulary, in the order of their ids."""
        return tokenizer_files.tokens_of(self.vocab or "")

    def write_beside(self, directory: str) -> None:
        """Writes the files beside weights and config, if there are any.

        These are `task.json` and the files of the tokenizer and of `embedding`.
        For a pre-trained model, only the tokenizer's files store the casing.
        """
        if self.task is not None:
            json_files.write(task_file.path_in(directory), self.task)
        length, task = self.config.max_position_embeddings, self.task or {}
        length = min(length, self.max_seq_length or length)
        if task.get("kind") == "text":  # Others read long texts in windows.
            length = min(length, task.get("max_seq_length", length))
        tokenizer_files.write(directory, self.vocab, self.settings, length)
        if self.embedding:
            size = self.config.hidden_size
            sentence_transformers.write(self.embedding, directory, size)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """A model whose weights are read on demand."""

    description: Description
    head: heads.HeadKind
    shapes: Mapping[str, Shape]  # TF1 name -> shape, of all weights.
    # TF1 name -> name in `arrays`; other weights are newly initialized.
    stored: Mapping[str, str]
    arrays: Arrays
    # Returns the weight of a TF1 name, float32, as a TF1 checkpoint stores it.
    read: Callable[[str], np.ndarray]
    left_out: Sequence[str]  # The stored names that are not used.
    dtype: str = "float32"  # The type of weights in Hugging Face files.

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the classifier; LABEL_0, ... if they are unknown.

        Raises `InputError` if there are more or fewer labels than classes.
        """
        if "output_bias" not in self.shapes:
            return ()
        [num_classes] = self.shapes["output_bias"]
        labels = self.description.labels
        if len(labels) == num_classes:
            return labels
        # For regression and multiple choice, transformers stores two labels.
        if labels and num_classes > 1:
            raise InputError(
                f"{self.arrays.where}: {len(labels)} labels and {num_classes} "
                "classes. Correct task.json, or `id2label` in config.json."
            )
        return tuple(f"LABEL_{index}" for index in range(num_classes))

    def describe(self, **changes: Any) -> "Model":
        """Returns the model with other values in its `Description`."""
        description = dataclasses.replace(self.description, **changes)
        return dataclasses.replace(self, description=description)

    def with_task(self, task: dict[str, Any] | None) -> "Model":
        """Returns a model of transformers with a `task.json`, if it has a task.

        As in transformers, texts may then contain special tokens.
        """
        vocab = (self.description.vocab if task else None) or ""
        kept = tokenizer_files.special_tokens(vocab)
        settings = self.description.settings.keeping(kept)
        return self.describe(task=task, settings=settings)

    def with_changes(
        self, change: Callable[[str, np.ndarray], np.ndarray]
    ) -> "Model":
        """Returns a model with the weights `change(name, weight)`."""
        return dataclasses.replace(
            self, read=lambda name: change(name, self.read(name))
        )

    def to_format(
        self, names: Names, tf1_names: Iterable[str]
    ) -> Iterator[tuple[str, np.ndarray]]:
        """Yields the names and arrays of some weights in another format."""
        config = self.description.config
        for name in progress.bar(
            tf1_names, description="Converting", unit=" arrays"
        ):
            shape = names.shape(name, self.shapes[name], config)
            array = names.transpose(name, self.read(name)).reshape(shape)
            yield names.rename(name), np.ascontiguousarray(array)


def _initial(shape: Shape, stddev: float) -> np.ndarray:
    """Returns the initial value of a weight, the same in every call."""
    if len(shape) == 1:
        return np.zeros(shape, np.float32)
    random = np.random.default_rng(0)
    noise = random.standard_normal(shape)
    while (outside := np.abs(noise) > 2).any():
        noise[outside] = random.standard_normal(outside.sum())
    return (stddev * noise).astype(np.float32)


def match(
    arrays: Arrays,
    description: Description,
    *,
    head: str | None = None,
    skip: str | None = None,
) -> Model:
    """Finds the TF1 weight that corresponds to each array.

    `head` and `skip` are the values of the flags. Raises `InputError` if an
    array has no counterpart or the wrong shape, if a weight is missing, or if
    two arrays of the same weight differ.
    """
    config, names = description.config, arrays.names
    shapes = arrays.weight_shapes(config)
    tf1_names = arrays.tf1_names(shapes)
    skipped = _skipped(arrays.where, tf1_names, skip) if skip else []
    used = {n: name for n, name in tf1_names.items() if n not in skipped}
    unknown = [n for n, name in used.items() if not name]
    if any(n.startswith(heads.POOLING_SCOPES) for n in unknown):
        raise pooling_head_error(arrays.where)
    stored_names = arrays.stored_names(used, has_masked_lm=True)
    model_head = weight_names.find_head(
        stored_names, head or description.head, arrays.where
    )
    required = weight_names.names_of_model(shapes, model_head)
    problems = [f"no counterpart: {n}" for n in unknown]
    missing = [name for name in required if name not in stored_names]
    lacks_pooler = all(name.startswith(weight_names.POOLER) for name in missing)
    if model_head.has_pooler or not lacks_pooler:
        # Otherwise, the pooler is newly initialized.
        problems += [f"missing: {names.rename(name)}" for name in missing]
    expected = {n: names.shape(n, shapes[n], config) for n in stored_names}
    problems += _wrong_shapes(arrays.shapes, stored_names, expected)
    if problems:
        raise InputError(
            f"{arrays.where}: the arrays do not match a BERT model with this "
            f"config:{bullet_list(problems)}\n"
            "Use the config of the same model. --skip=REGULAR_EXPRESSION leaves"
            " out arrays without a counterpart."
        )

    def read(name: str) -> np.ndarray:
        if name not in stored_names:
            return _initial(shapes[name], config.initializer_range)
        array = arrays.read_as_tf1(stored_names[name], name, shapes[name])
        return array.astype(np.float32, copy=False)

    return Model(
        description=description,
        head=model_head,
        shapes={name: shapes[name] for name in required},
        stored={n: stored_names[n] for n in required if n in stored_names},
        arrays=arrays,
        read=read,
        left_out=[n for n in arrays.shapes if n not in tf1_names] + skipped,
    )


def pooling_head_error(where: str) -> InputError:
    """Returns the error for layers that no other format has."""
    return InputError(
        f"{where}: a pooling head (--feature_layers, --bilstm_size) has no "
        "counterpart. For OpenVINO, run the command of the training with "
        "--export_openvino. To convert BERT alone, pass "
        f"--skip='{heads.TASK_HEAD}'."
    )


def _skipped(where: str, names: Iterable[str], skip: str) -> list[str]:
    """Returns the names that match `skip`; warns if there are none."""
    skipped = [name for name in names if re.search(skip, name)]
    if not skipped:
        logging.warning(
            f"{where}: --skip={skip} matches no weight. Names of weights: "
            f"{', '.join(sorted(names)[:3])}, ..."
        )
    return skipped


def _wrong_shapes(
    stored_shapes: Mapping[str, Shape],
    stored_names: Mapping[str, str],
    expected: Mapping[str, Shape],
) -> Iterator[str]:
    """Yields a line for each array whose shape does not fit the config."""
    for name, stored_name in sorted(stored_names.items()):
        shape = stored_shapes[stored_name]
        if shape != expected[name]:
            yield (
                f"wrong shape: {stored_name} is {list(shape)}; by the model's "
                f"config it must be {list(expected[name])}"
            )


def _require_equal(arrays: Arrays, first: str, second: str) -> None:
    if not np.array_equal(arrays.read(first), arrays.read(second)):
        raise InputError(
            f"{arrays.where}: {first} and {second} are the same weight in the "
            "original BERT, but their values differ. Untied output weights are "
            "not supported. To leave out one of the two, such as an untrained "
            "pooler, pass its name to convert_checkpoint.py --skip."
        )
