"""Scores of tagged words: whole entities, as CoNLL's `conlleval` counts them.

Tags name a type and, by their prefix, where in an entity a word is:

    words:  Ada    Lovelace  lived  in  London
    IOB2:   B-PER  I-PER     O      O   B-LOC
    IOBES:  B-PER  E-PER     O      O   S-LOC
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from official_bert.metrics.counts import precision_recall_f1

# I is inside; B and E (or L) are the first and the last word, M (as I) is
# between them; S (or U) is an entity of one word. Where there is one type only,
# tags need no name: "B", "I", "O".
_TAG = re.compile(r"([BIMELSU])(?:-(.*))?", re.DOTALL)


class Entity(NamedTuple):
    """Words `start` to `end` (exclusive) of a sentence, and what they are."""

    start: int
    end: int
    type: str


def evaluate(
    targets: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Returns the scores of tagged sentences.

    An entity is right if its first word, its last word and its type are.

    Args:
        targets: The tags of each sentence's words.
        predictions: As many tags for each sentence.

    Returns:
        `accuracy`: the share of right tags.
        `precision`, `recall`, `f1`, `support`: of all entities together; absent
        where tags have no prefixes, such as parts of speech, since all would
        equal the accuracy.
        `per_type`: {type: {precision, recall, f1, support}}, sorted; of single
        words where tags have no prefixes.
    """
    every_tag = {tag for tags in (*targets, *predictions) for tag in tags}
    is_of_entities = has_prefixes(every_tag)
    num_right = num_words = 0
    correct: Counter[str] = Counter()
    found: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for target, predicted in zip(targets, predictions, strict=True):
        num_words += len(target)
        num_right += sum(
            tag == guess for tag, guess in zip(target, predicted, strict=True)
        )
        read = entities if is_of_entities else _words
        true, guessed = set(read(target)), set(read(predicted))
        correct.update(entity.type for entity in true & guessed)
        found.update(entity.type for entity in guessed)
        expected.update(entity.type for entity in true)
    results: dict[str, Any] = {
        "accuracy": num_right / num_words if num_words else 0.0
    }
    if is_of_entities:
        results |= precision_recall_f1(
            correct.total(), found.total(), expected.total()
        )
    results["per_type"] = {
        name: precision_recall_f1(correct[name], found[name], expected[name])
        for name in sorted(expected | found)
    }
    return results


def _words(tags: Iterable[str]) -> list[Entity]:
    """Returns each word as an entity whose type is its tag."""
    return [Entity(i, i + 1, tag) for i, tag in enumerate(tags)]


def has_prefixes(tags: Iterable[str]) -> bool:
    """Whether tags say where entities are: each is `O`, `B-...` or the like."""
    return all(tag == "O" or _TAG.fullmatch(tag) for tag in tags)


def entities(tags: Iterable[str]) -> list[Entity]:
    """Returns the entities of a sentence, in order.

    Every scheme is read alike (IOB1, IOB2, IOE1, IOE2, IO, IOBES, BILOU, BMES),
    and tags that break its rules have a meaning too, as in `conlleval`: a word
    continues the entity of the word before it if both have the same type, and
    neither prefix stands against it. So `O I-PER` begins an entity. Of tags
    with the prefixes that the script knows (B, I, E), it reads one otherwise:
    `B-X` right after `E-X` begins an entity here, and continues one there.

    Args:
        tags: Such as "O" and "B-PER", for each word.
    """
    found: list[Entity] = []
    is_open = False  # Whether the last entity may go on.
    for index, tag in enumerate(tags):
        match = _TAG.fullmatch(tag)
        if not match:
            is_open = False
            continue
        prefix, name = match[1], match[2] or ""
        if is_open and prefix in "IMEL" and found[-1].type == name:
            found[-1] = found[-1]._replace(end=index + 1)
        else:
            found.append(Entity(index, index + 1, name))
        is_open = prefix in "BIM"
    return found
