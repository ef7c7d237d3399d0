"""Order of examples before they are read."""

import random
from collections.abc import Sequence
from typing import TypeVar

_Example = TypeVar("_Example")

_SEED = 12345


def shuffled(examples: Sequence[_Example]) -> list[_Example]:
    """Returns training examples in random order, always the same.

    Training shuffles no more than a hundred of them at a time, as the 2018
    release does. That is too few for a file in which labels or topics follow
    one another; so the 2018 release does this to SQuAD's questions, with this
    seed.
    """
    order = list(examples)
    random.Random(_SEED).shuffle(order)
    return order
