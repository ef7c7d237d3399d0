import re

import pytest

from official_bert.metrics import entities
from official_bert.metrics.entities import scheme_of

SCHEME = scheme_of(["B-PER", "I-PER", "O"])


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", []),
        ("B-X I-X I-X B-X O B-Y", [(0, 3, "X"), (3, 4, "X"), (5, 6, "Y")]),
        # IOB1 has B only between two entities of a type.
        ("I-X I-X B-X I-Y", [(0, 2, "X"), (2, 3, "X"), (3, 4, "Y")]),
        # IOE1 and IOE2: E ends an entity.
        ("I-X E-X I-X O", [(0, 2, "X"), (2, 3, "X")]),
        ("I-X E-X E-X", [(0, 2, "X"), (2, 3, "X")]),
        ("I-X E-X I-X I-X E-X E-Y", [(0, 2, "X"), (2, 5, "X"), (5, 6, "Y")]),
        ("S-X B-X E-X S-X", [(0, 1, "X"), (1, 3, "X"), (3, 4, "X")]),
        ("U-X B-X I-X L-X I-X", [(0, 1, "X"), (1, 4, "X"), (4, 5, "X")]),
        ("B-X M-X E-X S-X B-X E-X", [(0, 3, "X"), (3, 4, "X"), (4, 6, "X")]),
        # Invalid: no B at the start, another type inside, S inside.
        ("O I-X I-X", [(1, 3, "X")]),
        ("B-X I-Y I-X", [(0, 1, "X"), (1, 2, "Y"), (2, 3, "X")]),
        ("B-X S-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B-X U-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("B-X O I-X", [(0, 1, "X"), (2, 3, "X")]),
        # Types with hyphens, and no type.
        ("B-a-b I-a-b I-a-c", [(0, 2, "a-b"), (2, 3, "a-c")]),
        ("B I O B B", [(0, 2, ""), (3, 4, ""), (4, 5, "")]),
    ],
)
@pytest.mark.parametrize("style", ["B-X", "B_X", "X-B", "X_B"])
def test_entities_are_read_in_all_schemes(tags, expected, style):
    prefixes = re.compile(r"\b([BIMELSU])-(\S+)")
    style = style.replace("B", r"\1").replace("X", r"\2")
    tags = prefixes.sub(style, tags).split()
    assert scheme_of([*tags, "O"]).entities(tags) == expected


def test_metrics_equal_the_published_example_of_conlleval():
    """From clips.uantwerpen.be/conll2000/chunking.

    The numbers of correct and of expected phrases follow from the others.
    """
    # Correct, predicted, expected; precision, recall and FB1 in percent.
    published = {
        "ADJP": (0, 1, 6, 0.00, 0.00, 0.00),
        "ADVP": (5, 11, 8, 45.45, 62.50, 52.63),
        "NP": (206, 317, 262, 64.98, 78.63, 71.16),
        "PP": (89, 107, 90, 83.18, 98.89, 90.36),
        "SBAR": (2, 3, 6, 66.67, 33.33, 44.44),
        "VP": (69, 100, 87, 69.00, 79.31, 73.80),
    }
    targets, predictions = [], []
    for name, (correct, predicted, expected, *_) in published.items():
        phrase, outside = [f"B-{name}", f"I-{name}"], ["O", "O"]
        targets += [phrase] * expected + [outside] * (predicted - correct)
        predictions += [phrase] * correct + [outside] * (expected - correct)
        predictions += [phrase] * (predicted - correct)

    scores = entities.evaluate(targets, predictions, SCHEME)

    def percentages(row):
        return [round(100 * row[x], 2) for x in ("precision", "recall", "f1")]

    assert scores["support"] == 459
    assert percentages(scores) == [68.83, 80.83, 74.35]
    for name, row in scores["per_type"].items():
        assert percentages(row) == [*published.pop(name)[3:]]
    assert not published


def score(precision, recall, f1, support):
    return {
        "precision": precision,
        "recall": recall,
        "f1": pytest.approx(f1),
        "support": support,
    }


def test_metrics_equal_those_computed_by_hand():
    # An entity ends with its sentence.
    targets = "B-PER I-PER O O B-LOC", "I-LOC I-LOC O"
    predictions = "B-PER I-PER O B-ORG B-LOC", "I-LOC O O"
    texts = (map(str.split, lines) for lines in (targets, predictions))
    assert entities.evaluate(*map(list, texts), SCHEME) == {
        "accuracy": 6 / 8,
        **score(2 / 4, 2 / 3, 4 / 7, 3),
        "per_type": {
            "LOC": score(0.5, 0.5, 0.5, 2),
            "ORG": score(0.0, 0.0, 0.0, 0),
            "PER": score(1.0, 1.0, 1.0, 1),
        },
    }


def test_tags_without_prefixes_are_scored_word_by_word():
    targets = [["DET", "NOUN", "VERB"], ["O"]]
    predictions = [["DET", "VERB", "VERB"], ["O"]]
    assert entities.evaluate(targets, predictions, None) == {
        "accuracy": 0.75,
        "per_type": {
            "DET": score(1.0, 1.0, 1.0, 1),
            "NOUN": score(0.0, 0.0, 0.0, 1),
            "O": score(1.0, 1.0, 1.0, 1),
            "VERB": score(0.5, 1.0, 2 / 3, 1),
        },
    }


@pytest.mark.parametrize(
    ("tags", "strays"),
    [
        ("O B-PER I-PER", []),
        ("O B_DIS E_DIS S_DIS", []),
        ("O DIS-B DIS-I", []),
        ("O DIS_B DIS_I", []),
        ("B I O", []),
        ("B E M S", []),
        ("O S-PER", []),
        # Some tags are wrong.
        ("O B-PER I-PER 0", ["0"]),
        ("O B_PER I_PER L-PER PER tag", ["PER", "tag"]),
        # Types alone, parts of speech, and tags that look like entities by
        # accident.
        ("O PER LOC", None),
        ("NOUN VERB", None),
        ("B-PER NOUN", None),
        ("X-PER O", None),
        ("NN NN-HL O", None),
        ("NN VB DT B- I-", None),
        ("NOUN_S NOUN_M VERB_S", None),
        ("N O S V A R ! D P & T X Y U E L M", None),
        # More strays than entities.
        ("O B-PER 0 tag", None),
    ],
)
def test_scheme_of_a_tag_set_is_recognized(tags, strays):
    scheme = scheme_of(tags.split())
    assert (scheme and scheme.strays) == strays


@pytest.mark.parametrize(
    ("sentences", "accuracy"), [([], 0.0), ([[]], 0.0), ([["O", "O"]], 1.0)]
)
def test_metrics_without_entities_are_zero(sentences, accuracy):
    expected = {"accuracy": accuracy, **score(0.0, 0.0, 0.0, 0), "per_type": {}}
    assert entities.evaluate(sentences, sentences, SCHEME) == expected


@pytest.mark.parametrize("predictions", [[["O"]], [["O", "O"], ["O"]], []])
def test_predictions_of_other_lengths_are_an_error(predictions):
    with pytest.raises(ValueError, match=r"shorter|longer"):
        entities.evaluate([["O", "O"]], predictions, SCHEME)
