"""Which of the user's own examples are held out for evaluation."""

import collections
import math
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from official_bert.errors import InputError
from official_bert.options import RunClassifier, task_data
from official_bert.sources import task_file
from official_bert.tasks.data_set import shuffle_examples


def choose_held_out(
    options: RunClassifier,
    texts: Sequence[Any],
    labels: Sequence[Any],
    label_column: str,
) -> set[int]:
    """Returns the indices of the examples to hold out, if any are needed.

    For the choice, see `hold_out` and, with --fold, `assign_folds`. Raises
    `InputError`, which names `label_column`, if there are none.
    """
    if not options.holds_out:
        return set()
    if options.fold:
        number, num_folds = task_data.parse_fold(options.fold)
        folds = assign_folds(texts, labels, num_folds)
        indices = {i for i, fold in enumerate(folds) if fold == number}
    else:
        indices = hold_out(texts, labels, options.dev_share)
    unit = "query" if options.group_column else "text"
    if len(indices) in (0, len(texts)):
        reason = f"each label in {label_column} has only one {unit}"
        if len({*texts}) == 1:
            reason = f"all rows have the same {unit}"
        raise InputError(
            f"No examples can be held out for evaluation: {reason}. Check the "
            "columns, or set --dev_file or --dev_share=0."
        )
    if num_repeated := len(texts) - len({*texts}):
        logging.info(
            f"{num_repeated} of {len(texts)} rows repeat an earlier {unit}. "
            f"Rows with the same {unit} are all trained on, or all held out"
        )
    checkpoint = options.init_checkpoint
    if checkpoint and task_file.read_beside(checkpoint):
        logging.warning(
            f"{checkpoint} was fine-tuned. If it was trained on texts that "
            "are held out now, the metrics overestimate the model. Give other "
            "texts as --dev_file"
        )
    return indices


def hold_out(
    texts: Sequence[Any], labels: Sequence[Any], share: float
) -> set[int]:
    """Returns the indices of the examples to hold out.

    The share is nearly the same for every class, or for every range of numbers.
    Equal texts stay together, so that no text is in both parts. A text that is
    too frequent is not held out, nor is the only text of a class. The result
    does not depend on the seed of the run, so that runs can be compared.
    """
    first_index = _first_indices(texts)
    num_copies = collections.Counter(texts)
    indices = [*first_index.values()]
    if isinstance(labels[0], str):
        counts = collections.Counter(labels[index] for index in indices)
        indices = [index for index in indices if counts[labels[index]] > 1]
    if labels[0] is not None:
        indices.sort(key=lambda index: labels[index])
    sizes = {index: num_copies[texts[index]] for index in indices}
    max_size = max(1, len(texts) * share)
    chosen = _evenly_spaced(
        {i: size for i, size in sizes.items() if size <= max_size}, share
    )
    if not chosen:  # A few texts are repeated many times.
        chosen = _evenly_spaced(dict.fromkeys(indices, 1), share)
    return {i for i, text in enumerate(texts) if first_index[text] in chosen}


def _first_indices(texts: Sequence[Any]) -> dict[Any, int]:
    """Returns {text: its first index}, in a random order."""
    first_index: dict[Any, int] = {}
    for index, text in enumerate(texts):
        first_index.setdefault(text, index)
    return dict(shuffle_examples([*first_index.items()]))


def assign_folds(
    texts: Sequence[Any], labels: Sequence[Any], num_folds: int
) -> list[int]:
    """Returns the fold of each example, from 1.

    Folds have nearly the same number of examples of every class, or of every
    range of numbers. Equal texts are in the same fold. The result does not
    depend on the seed of the run. Raises `InputError` if there are fewer
    different texts than folds.
    """
    first_index, num_copies = _first_indices(texts), collections.Counter(texts)
    if len(first_index) < num_folds:
        raise InputError(
            f"--folds must be at most the number of different texts, "
            f"{len(first_index)}. Received: {num_folds}."
        )
    fold_of: dict[Any, int] = {}
    sizes: collections.Counter[Any] = collections.Counter()
    for text, index in sorted(
        first_index.items(),
        key=lambda item: (labels[item[1]], -num_copies[item[0]]),
    ):
        label = labels[index]
        fold = min(
            range(1, num_folds + 1), key=lambda f: (sizes[f, label], sizes[f])
        )
        fold_of[text] = fold
        sizes[fold] += num_copies[text]
        sizes[fold, label] += num_copies[text]
    return [fold_of[text] for text in texts]


def _evenly_spaced(sizes: Mapping[int, int], share: float) -> set[int]:
    """Returns evenly spaced keys whose sizes sum to a share of all sizes."""
    chosen: set[int] = set()
    num_seen = num_chosen = 0
    for key, size in sizes.items():
        num_seen += size
        if num_chosen + size <= math.ceil(num_seen * share):
            num_chosen += size
            chosen.add(key)
    return chosen
