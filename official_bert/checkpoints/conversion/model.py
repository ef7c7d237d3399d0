"""A model on its way from one format to another.

Each format says under which name, in which shape it has a weight of 2018, and
whether transposed: a `Place`. All else is the same for all of them.
"""

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from absl import logging

from official_bert.checkpoints import names
from official_bert.checkpoints.names import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError, bullet_list


class Place(NamedTuple):
    """Where a format has a weight.

    Attributes:
        name: There.
        shape: There. It has as many numbers, in the same order.
        is_transposed: Whether the two axes are swapped.
    """

    name: str
    shape: Shape
    is_transposed: bool = False


class Arrays(Protocol):
    """The arrays of a model in some format.

    Attributes:
        where: Their file or folder, for messages.
        shapes: {name: shape}.
    """

    where: str
    shapes: dict[str, Shape]

    def read(self, name: str) -> np.ndarray:
        """Returns one of them."""


# (name of 2018, shape, the model's sizes) -> where a format has it.
Placing = Callable[[str, Shape, BertConfig], Place]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Described:
    """All of a model but its weights.

    Attributes:
        config: Its sizes.
        vocab: The text of its vocab.txt; None if it came without.
        do_lower_case: Whether it is uncased; None if it is not known.
        task: What a `task.json` says of a fine-tuned one.
        labels: Of its classifier, in their order; empty if not known.
        problem_type: transformers' word for what the labels are.
        head: What its files say the classifier is for.
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
    """A model whose weights are read when they are wanted.

    Attributes:
        described: All else.
        head: What it has on top.
        shapes: {name of 2018: shape there} of all its weights.
        places: Where `arrays` has them; those made anew are not in it.
        arrays: The weights themselves.
        skipped: The names that were left out as the user wished.
    """

    described: Described
    head: names.Head
    shapes: Mapping[str, Shape]
    places: Mapping[str, Place]
    arrays: Arrays
    skipped: tuple[str, ...] = ()

    @property
    def made_anew(self) -> list[str]:
        """The pooler's names, if its head did without and it came without."""
        return [name for name in self.shapes if name not in self.places]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its classes, LABEL_0 and so on where not known.

        Raises:
            InputError: There are more or fewer names than classes.
        """
        if "output_bias" not in self.shapes:
            return ()
        [num_classes] = self.shapes["output_bias"]
        given = self.described.labels
        if len(given) == num_classes:
            return given
        # Of a number or a choice, transformers names two classes all the same.
        if given and num_classes > 1:
            raise InputError(
                f"{self.arrays.where}: there must be as many labels as classes."
                f" Received: {len(given)} labels and {num_classes} classes. "
                "Correct task.json, or `id2label` in config.json."
            )
        return tuple(f"LABEL_{number}" for number in range(num_classes))

    def read(self, name: str) -> np.ndarray:
        """Returns a weight as a checkpoint of 2018 has it, float32."""
        shape = self.shapes[name]
        if name not in self.places:
            deviation = self.described.config.initializer_range
            return _initial(shape, deviation)
        place = self.places[name]
        array = self.arrays.read(place.name).astype(np.float32, copy=False)
        array = array.T if place.is_transposed else array
        return np.ascontiguousarray(array.reshape(shape))


def at_place(array: np.ndarray, place: Place) -> np.ndarray:
    """Returns a weight of 2018 as a format has it."""
    array = array.T if place.is_transposed else array
    return np.ascontiguousarray(array.reshape(place.shape))


def _initial(shape: Shape, deviation: float) -> np.ndarray:
    """Returns what a new model has: the same at every call."""
    if len(shape) == 1:
        return np.zeros(shape, np.float32)
    random = np.random.default_rng(0)
    noise = random.standard_normal(shape)
    while (outside := np.abs(noise) > 2).any():
        noise[outside] = random.standard_normal(outside.sum())
    return (deviation * noise).astype(np.float32)


def match(
    arrays: Arrays,
    described: Described,
    place: Placing,
    *,
    head: str | None = None,
    skip: str | None = None,
    ignored: str = "",
) -> Model:
    """Finds for every array which weight of 2018 it is.

    Args:
        arrays: What there is.
        described: Of the same model.
        place: Where their format has a weight.
        head: What the user says that a classifier is for.
        skip: Regular expression of names to leave out.
        ignored: The same, of names that nobody needs.

    Raises:
        InputError: An array has no counterpart or another shape, or a weight is
            missing; the message lists all of them.
    """
    config = described.config
    every = names.shapes(config, _num_classes(arrays, place, config))
    places = {name: place(name, shape, config) for name, shape in every.items()}
    named = {place.name: name for name, place in places.items()}
    kept = [
        n for n in arrays.shapes if not ignored or not re.search(ignored, n)
    ]
    skipped = [name for name in kept if skip and re.search(skip, name)]
    if skip and not skipped:
        logging.warning(
            "%s: --skip=%s leaves nothing out: no array has such a name, but "
            "%s and others",
            arrays.where,
            skip,
            ", ".join(sorted(kept)[:3]),
        )
    theirs = [name for name in kept if name not in skipped]
    found = {named[name] for name in theirs if name in named}
    its_head = names.find_head(found, head or described.head, arrays.where)
    wanted = names.of_head(every, its_head)
    missing = [name for name in wanted if name not in found]
    if not its_head.needs_pooler and all(
        name.startswith(names.POOLER) for name in missing
    ):
        missing = []
    _refuse(
        arrays.where,
        [f"no counterpart: {name}" for name in theirs if name not in named],
        [f"missing: {places[name].name}" for name in missing],
        [
            f"wrong shape: {places[name].name} is "
            f"{list(arrays.shapes[places[name].name])}; by the model's config "
            f"it must be {list(places[name].shape)}"
            for name in sorted(found)
            if tuple(arrays.shapes[places[name].name]) != places[name].shape
        ],
    )
    return Model(
        described=described,
        head=its_head,
        shapes={name: every[name] for name in wanted},
        places={name: places[name] for name in wanted if name in found},
        arrays=arrays,
        skipped=tuple(skipped),
    )


def _num_classes(arrays: Arrays, place: Placing, config: BertConfig) -> int:
    bias = place("output_bias", (1,), config).name
    shape = arrays.shapes.get(bias, ())
    return shape[0] if len(shape) == 1 else 1


def _refuse(where: str, *problems: list[str]) -> None:
    found = [problem for kind in problems for problem in kind]
    if not found:
        return
    raise InputError(
        f"{where}: all arrays must be a BERT's, of the sizes its config "
        f"gives. Received:{bullet_list(found)}\n"
        "Use the config of the same model. What has no counterpart can be left "
        "out with --skip=REGULAR_EXPRESSION: of a model on frozen vectors or "
        "with a BiLSTM, '^(cls/squad/)?output_|^(bilstm|features)/' leaves out "
        "what is above BERT."
    )
