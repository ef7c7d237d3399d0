"""Metrics of tagging. Entities are counted as CoNLL's `conlleval` does.

A tag consists of the position of the word in its entity, and a type:

    words:     Ada    Lovelace  lived  in  London
    IOB2:      B-PER  I-PER     O      O   B-LOC
    IOBES:     B-PER  E-PER     O      O   S-LOC
    suffixes:  PER_B  PER_I     O      O   LOC_B
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from official_bert.metrics.classification import precision_recall_f1

# B: first word; E or L: last word; I or M: inside; S or U: only word. With a
# single type, tags may be "B", "I" and "O".
_PATTERNS = (
    re.compile(r"(?P<position>[BIMELSU])([-_](?P<type>.+))?", re.DOTALL),
    re.compile(r"(?P<type>.+)[-_](?P<position>[BIMELSU])", re.DOTALL),
)


class Entity(NamedTuple):
    """An entity of a sentence: the words `start` to `end`, exclusive."""

    start: int
    end: int
    type: str


class Scheme(NamedTuple):
    """How tags mark entities.

    Attributes:
        pattern: Matches the tags of words in entities.
        strays: The known tags that neither match nor are `O`. Their words are
            in no entity.
    """

    pattern: re.Pattern[str]
    strays: Sequence[str]

    def entities(self, tags: Iterable[str]) -> list[Entity]:
        """Returns the entities of a sentence, in order.

        All positions are read in the same way, in IOB1, IOB2, IOE1, IOE2, IO,
        IOBES, BILOU and BMES. Invalid sequences are read as in `conlleval`: a
        word continues the preceding entity if it has the same type and neither
        position forbids it. For example, `O I-PER` starts an entity. Unlike in
        `conlleval`, `B-X` after `E-X` starts an entity, too.
        """
        in_order: list[Entity] = []
        is_open = False  # Whether the last entity may continue.
        for index, tag in enumerate(tags):
            match = self.pattern.fullmatch(tag)
            position, name = "O", ""
            if match:
                position, name = match["position"], match["type"] or ""
            if is_open and position in "IMEL" and in_order[-1].type == name:
                in_order[-1] = in_order[-1]._replace(end=index + 1)
            elif match:
                in_order.append(Entity(index, index + 1, name))
            is_open = position in "BIM"
        return in_order


def scheme_of(tags: Iterable[str]) -> Scheme | None:
    """Returns the scheme of a tag set; None if its tags do not mark entities.

    All tags must be `O` or have a position, such as `B-PER`, `PER_B` or `B`. If
    there is an `O`, fewer than half of the others may be strays.
    """
    tags = {*tags}
    found: Scheme | None = None
    for pattern in _PATTERNS:
        matches = [*filter(None, map(pattern.fullmatch, tags))]
        strays = sorted(tags - {"O"} - {match[0] for match in matches})
        positions = {match["position"] for match in matches}
        num_types = sum(match["type"] is not None for match in matches)
        is_scheme = "O" in tags or bool(positions & {"B", "I"})
        if strays:
            is_scheme = "O" in tags and num_types > len(strays)
        if is_scheme and (found is None or len(strays) < len(found.strays)):
            found = Scheme(pattern, strays)
    return found


def evaluate(
    targets: Sequence[Sequence[str]],
    predictions: Sequence[Sequence[str]],
    scheme: Scheme | None,
) -> dict[str, Any]:
    """Returns the metrics of sentences, given the tags of their words.

    An entity is correct if its first word, its last word and its type are.
    `scheme` is that of all tags of the task.

    Returns:
        `accuracy`: the fraction of correct tags.
        `precision`, `recall`, `f1`, `support`: metrics over all entities;
        absent without a scheme, as for parts of speech.
        `per_type`: {type: {precision, recall, f1, support}}, sorted. Without a
        scheme, each word is an entity whose type is its tag.
    """
    find = scheme.entities if scheme else _words
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
        **(overall if scheme else {}),
        "per_type": {
            name: precision_recall_f1(
                correct[name], predicted[name], expected[name]
            )
            for name in sorted(expected | predicted)
        },
    }


def _words(tags: Iterable[str]) -> list[Entity]:
    return [Entity(i, i + 1, tag) for i, tag in enumerate(tags)]
