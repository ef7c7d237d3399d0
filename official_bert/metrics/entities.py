"""Metrics of tagging. Entities are counted as CoNLL's `conlleval` does.

A tag consists of a prefix, the position of the word in its entity, and a type:

    words:  Ada    Lovelace  lived  in  London
    IOB2:   B-PER  I-PER     O      O   B-LOC
    IOBES:  B-PER  E-PER     O      O   S-LOC
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from official_bert.metrics.classification import precision_recall_f1

# B: first word; E or L: last word; I or M: inside; S or U: only word. With a
# single type, tags may be "B", "I" and "O".
_TAG = re.compile(r"([BIMELSU])(?:-(.*))?", re.DOTALL)


class Entity(NamedTuple):
    """An entity of a sentence: the words `start` to `end`, exclusive."""

    start: int
    end: int
    type: str


def evaluate(
    targets: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Returns the metrics of sentences, given the tags of their words.

    An entity is correct if its first word, its last word and its type are.

    Returns:
        `accuracy`: the fraction of correct tags.
        `precision`, `recall`, `f1`, `support`: metrics over all entities;
        absent if tags have no prefixes, such as parts of speech.
        `per_type`: {type: {precision, recall, f1, support}}, sorted. Without
        prefixes, each word is an entity whose type is its tag.
    """
    has_entities = has_prefixes(
        {tag for tags in (*targets, *predictions) for tag in tags}
    )
    find = entities if has_entities else _words
    is_correct: list[bool] = []
    correct: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for target, guess in zip(targets, predictions, strict=True):
        is_correct += [a == b for a, b in zip(target, guess, strict=True)]
        true, guessed = set(find(target)), set(find(guess))
        correct.update(entity.type for entity in true & guessed)
        predicted.update(entity.type for entity in guessed)
        expected.update(entity.type for entity in true)
    overall = precision_recall_f1(
        correct.total(), predicted.total(), expected.total()
    )
    return {
        "accuracy": sum(is_correct) / max(len(is_correct), 1),
        **(overall if has_entities else {}),
        "per_type": {
            name: precision_recall_f1(
                correct[name], predicted[name], expected[name]
            )
            for name in sorted(expected | predicted)
        },
    }


def _words(tags: Iterable[str]) -> list[Entity]:
    return [Entity(i, i + 1, tag) for i, tag in enumerate(tags)]


def has_prefixes(tags: Iterable[str]) -> bool:
    """Whether the tags mark entities: each is `O`, `B-...` or the like."""
    return all(tag == "O" or _TAG.fullmatch(tag) for tag in tags)


def entities(tags: Iterable[str]) -> list[Entity]:
    """Returns the entities of a sentence, in order.

    All schemes are read in the same way (IOB1, IOB2, IOE1, IOE2, IO, IOBES,
    BILOU, BMES). Invalid sequences are read as in `conlleval`: a word continues
    the preceding entity if it has the same type and neither prefix forbids it.
    For example, `O I-PER` starts an entity. Unlike in `conlleval`, `B-X` after
    `E-X` starts an entity, too.
    """
    in_order: list[Entity] = []
    is_open = False  # Whether the last entity may continue.
    for index, tag in enumerate(tags):
        match = _TAG.fullmatch(tag)
        prefix, name = (match[1], match[2] or "") if match else ("O", "")
        if is_open and prefix in "IMEL" and in_order[-1].type == name:
            in_order[-1] = in_order[-1]._replace(end=index + 1)
        elif match:
            in_order.append(Entity(index, index + 1, name))
        is_open = prefix in "BIM"
    return in_order
