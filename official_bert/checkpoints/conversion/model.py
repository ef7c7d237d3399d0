"""A model that is converted from one format to another.

A format defines the name, shape and orientation of each weight of a TF1
checkpoint: its `Place`. Everything else is common to all formats.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from absl import logging

from official_bert.checkpoints import weights
from official_bert.checkpoints.weights import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError, bullet_list


class Place(NamedTuple):
    """Where a format stores a weight.

    Attributes:
        name: Its name in the format.
        shape: Its shape in the format, with the same values in the same order.
        is_transposed: Whether the two axes are swapped.
    """

    name: str
    shape: Shape
    is_transposed: bool = False


class Arrays(Protocol):
    """The arrays of a model in some format, read on demand.

    Attributes:
        where: Their file or directory, for messages.
        shapes: {name: shape}.
    """

    where: str
    shapes: dict[str, Shape]

    def read(self, name: str) -> np.ndarray:
        """Returns one array."""


# (TF1 name, TF1 shape, config) -> the place in a format.
GetPlace = Callable[[str, Shape, BertConfig], Place]


def rename(name: str, rules: Sequence[tuple[str, str]]) -> str:
    """Applies (regular expression, replacement) pairs one after the other."""
    for pattern, replacement in rules:
        name = re.sub(pattern, replacement, name)
    return name


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    """Everything about a model but its weights.

    Attributes:
        config: The model's config.
        vocab: The text of its vocab.txt, if any.
        do_lower_case: Whether it is uncased; None if unknown.
        task: The content of `task.json` of a fine-tuned model.
        labels: The classifier's labels in their order; empty if unknown.
        problem_type: The transformers value of the same name.
        head: The `--head` of the classifier, if known.
    """

    config: BertConfig
    vocab: str | None = None
    do_lower_case: bool | None = None
    task: dict[str, Any] | None = None
    labels: tuple[str, ...] = ()
    problem_type: str | None = None
    head: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Model:
    """A model whose weights are read on demand.

    Attributes:
        description: Everything but the weights.
        head: The head.
        shapes: {TF1 name: TF1 shape} of all its weights.
        places: {TF1 name: place in `arrays`}; without weights that `arrays`
            does not have, which are newly initialized.
        arrays: The stored weights.
        skipped: The names that `--skip` left out.
    """

    description: Description
    head: weights.Head
    shapes: Mapping[str, Shape]
    places: Mapping[str, Place]
    arrays: Arrays
    skipped: tuple[str, ...] = ()

    @property
    def initialized(self) -> list[str]:
        """The newly initialized weights: the pooler, or nothing."""
        return [name for name in self.shapes if name not in self.places]

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the classifier; LABEL_0, ... if they are unknown.

        Raises:
            InputError: The number of labels is not the number of classes.
        """
        if "output_bias" not in self.shapes:
            return ()
        [num_classes] = self.shapes["output_bias"]
        given = self.description.labels
        if len(given) == num_classes:
            return given
        # For regression and multiple choice, transformers stores two labels.
        if given and num_classes > 1:
            raise InputError(
                f"{self.arrays.where}: {len(given)} labels and {num_classes} "
                "classes. Correct task.json, or `id2label` in config.json."
            )
        return tuple(f"LABEL_{index}" for index in range(num_classes))

    def read(self, name: str) -> np.ndarray:
        """Returns a weight as float32, as a TF1 checkpoint stores it."""
        shape = self.shapes[name]
        if name not in self.places:
            stddev = self.description.config.initializer_range
            return _initial(shape, stddev)
        place = self.places[name]
        array = self.arrays.read(place.name).astype(np.float32, copy=False)
        array = array.T if place.is_transposed else array
        return np.ascontiguousarray(array.reshape(shape))


def to_place(array: np.ndarray, place: Place) -> np.ndarray:
    """Returns a weight of a TF1 checkpoint as a format stores it."""
    array = array.T if place.is_transposed else array
    return np.ascontiguousarray(array.reshape(place.shape))


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
    get_place: GetPlace,
    *,
    head: str | None = None,
    skip: str | None = None,
    ignored: str = "",
) -> Model:
    """Finds the TF1 weight that corresponds to each array.

    Args:
        arrays: All arrays of the model.
        description: The description of the same model.
        get_place: The places in their format.
        head: The type of a classifier, from `--head`.
        skip: Regular expression of arrays to leave out, from `--skip`.
        ignored: Regular expression of arrays that are not weights.

    Raises:
        InputError: An array has no counterpart or another shape, or a weight is
            missing; the message lists all of them.
    """
    config = description.config
    shapes = weights.shapes(config, _num_classes(arrays, get_place, config))
    places = {n: get_place(n, shape, config) for n, shape in shapes.items()}
    tf1_names = {place.name: name for name, place in places.items()}
    stored = [
        n for n in arrays.shapes if not ignored or not re.search(ignored, n)
    ]
    skipped = [name for name in stored if skip and re.search(skip, name)]
    if skip and not skipped:
        logging.warning(
            "%s: --skip=%s leaves nothing out. The names are %s, ...",
            arrays.where,
            skip,
            ", ".join(sorted(stored)[:3]),
        )
    stored = [name for name in stored if name not in skipped]
    found = {tf1_names[name] for name in stored if name in tf1_names}
    its_head = weights.find_head(found, head or description.head, arrays.where)
    wanted = weights.names_of_model(shapes, its_head)
    missing = [name for name in wanted if name not in found]
    if not its_head.needs_pooler and all(
        name.startswith(weights.POOLER) for name in missing
    ):
        missing = []  # It is newly initialized.
    problems = [
        *(
            f"no counterpart: {name}"
            for name in stored
            if name not in tf1_names
        ),
        *(f"missing: {places[name].name}" for name in missing),
        *(
            f"wrong shape: {places[name].name} is "
            f"{list(arrays.shapes[places[name].name])}; by the model's config "
            f"it must be {list(places[name].shape)}"
            for name in sorted(found)
            if tuple(arrays.shapes[places[name].name]) != places[name].shape
        ),
    ]
    if problems:
        raise InputError(
            f"{arrays.where}: the arrays must be those of a BERT model with "
            f"this config. Problems:{bullet_list(problems)}\n"
            "Use the config of the same model. --skip=REGULAR_EXPRESSION leaves"
            " out arrays without a counterpart: for a model with a pooling "
            "head (frozen BERT, BiLSTM), '^(cls/squad/)?output_|"
            "^(bilstm|features)/' leaves out everything above BERT."
        )
    return Model(
        description=description,
        head=its_head,
        shapes={name: shapes[name] for name in wanted},
        places={name: places[name] for name in wanted if name in found},
        arrays=arrays,
        skipped=tuple(skipped),
    )


def _num_classes(
    arrays: Arrays, get_place: GetPlace, config: BertConfig
) -> int:
    bias = get_place("output_bias", (1,), config).name
    shape = arrays.shapes.get(bias, ())
    return shape[0] if len(shape) == 1 else 1
