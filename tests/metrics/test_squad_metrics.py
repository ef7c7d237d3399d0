import json
import random
import tarfile

import pytest

from official_bert.errors import InputError
from official_bert.metrics import squad_metrics


def question(name, *answers, **more):
    return {"id": name, "answers": [{"text": a} for a in answers], **more}


def dataset(*questions):
    return [{"paragraphs": [{"qas": list(questions)}]}]


def score(prediction, *answers, **more):
    """Returns exact match and F1 of one question, as fractions."""
    data = dataset(question("q", *answers, **more))
    results = squad_metrics.evaluate(data, {"q": prediction})
    return results["exact_match"] / 100, results["f1"] / 100


@pytest.fixture(scope="session")
def squad_files(shared_data):
    """{name: content} of the files, with predictions of Google's models."""
    with tarfile.open(shared_data / "squad.tar.xz") as archive:
        return {
            member.name.rpartition("/")[2]: json.load(
                archive.extractfile(member)
            )
            for member in archive
            if member.name.endswith(".json") and "train" not in member.name
        }


@pytest.mark.parametrize(
    ("version", "model", "expected"),
    [
        ("1.1", "ensemble", [86.206, 92.196, 10570]),
        ("2.0", "single", [78.742, 81.775, 11873, 5928, 5945]),
    ],
)
def test_scores_equal_the_published_ones(squad_files, version, model, expected):
    answers = squad_files[f"predictions-v{version}-bert-{model}.json"]
    data = squad_files[f"dev-v{version}.json"]["data"]
    results = squad_metrics.evaluate(data, answers)
    assert results["missing"] == []
    names = ["exact_match", "f1", "total", "HasAns_total", "NoAns_total"]
    found = [results[name] for name in names if name in results]
    assert [round(value, 3) for value in found] == expected


def test_text_is_normalized_as_in_the_official_script():
    for text, expected in (
        ("The  Cat,\tan\u00a0Ox", "cat ox"),
        ("a.b-c", "abc"),
        # Articles are removed after punctuation, and only as words.
        ("the-end (The) of 'a' Theatre", "theend of theatre"),
        ("An", ""),
        ("!?", ""),
        # Punctuation and articles of other languages are kept.
        ("«Der» Bär。", "«der» bär。"),
    ):
        assert squad_metrics.normalize(text) == expected


@pytest.mark.parametrize(
    ("prediction", "answers", "exact", "f1"),
    [
        ("the Cat!", ["cat"], 1, 1),
        ("black cat", ["the cat"], 0, 2 / 3),
        # Words are counted with their multiplicity.
        ("cat cat", ["cat"], 0, 2 / 3),
        ("cat cat", ["cat cat dog"], 0, 4 / 5),
        ("cat", ["dog", "a cat", "big cat"], 1, 1),
        ("dog", ["cat"], 0, 0),
        ("", ["cat"], 0, 0),
        # Without spaces, an answer is one word.
        ("北京市", ["北京"], 0, 0),
    ],
)
def test_scores_are_the_best_of_all_answers(prediction, answers, exact, f1):
    expected = (exact, pytest.approx(f1))
    assert score(prediction, *answers) == expected
    assert score(prediction, *answers, is_impossible=False) == expected


def test_no_answer_is_scored_in_version_2():
    for prediction, answers, expected in (
        ("", [], 1),
        ("cat", [], 0),
        ("The", [], 1),
        ("cat", [".", "cat"], 1),
        # "." is not an answer unless it is the only one.
        ("", ["cat", "."], 0),
        ("", ["."], 1),
    ):
        found = score(prediction, *answers, is_impossible=not answers)
        assert found == (expected, expected)
    # Equal empty texts have no words in common in version 1.
    assert score(".", "the") == (1, 0)


def test_version_2_has_scores_with_and_without_answer():
    questions = [question("a", "black cat"), question("b", "dog")]
    questions += [question("c"), question("d")]
    predictions = {"a": "cat", "b": "dog", "c": "", "d": "bird", "other": "x"}
    assert squad_metrics.evaluate(dataset(*questions), predictions) == {
        "exact_match": 50.0,
        "f1": pytest.approx(100 * (2 / 3 + 1 + 1) / 4),
        "total": 4,
        "missing": [],
        "HasAns_exact": 50.0,
        "HasAns_f1": pytest.approx(100 * (2 / 3 + 1) / 2),
        "HasAns_total": 2,
        "NoAns_exact": 50.0,
        "NoAns_f1": 50.0,
        "NoAns_total": 2,
    }


@pytest.mark.parametrize("answers", [["cat"], []])
def test_missing_predictions_count_as_wrong(answers):
    # Ids may be numbers.
    questions = dataset(question(7, *answers), question(8, "dog"))
    results = squad_metrics.evaluate(questions, {"8": "dog"}, {"8": 1.0})
    assert results["missing"] == ["7"]
    assert results["total"] == 2
    assert results["exact_match"] == results["f1"] == 50.0
    assert results["best_exact"] == 50.0


def test_scores_without_questions_are_zero():
    scores = squad_metrics.evaluate([], {}, {})
    assert scores.pop("missing") == []
    assert scores == {
        "exact_match": 0.0,
        "f1": 0.0,
        "total": 0,
        "best_exact": 0.0,
        "best_exact_thresh": 0.0,
        "best_f1": 0.0,
        "best_f1_thresh": 0.0,
    }


@pytest.mark.parametrize("seed", range(5))
def test_best_threshold_is_found(seed):
    rng = random.Random(seed)
    texts = ["cat", "black cat", "big black dog", "dog"]
    questions = [
        question(str(i), *rng.choices(texts, k=rng.choice([0, 1, 2])))
        for i in range(40)
    ]
    predictions = {str(i): rng.choice([*texts, ""]) for i in range(40)}
    predictions.pop("7")
    odds = {name: rng.uniform(-9, 9) for name in predictions}

    results = squad_metrics.evaluate(dataset(*questions), predictions, odds)

    def emptied(threshold):
        kept = {
            name: "" if odds[name] > threshold else text
            for name, text in predictions.items()
        }
        return squad_metrics.evaluate(dataset(*questions), kept)

    for name, plain in (("exact", "exact_match"), ("f1", "f1")):
        tried = {x: emptied(x)[plain] for x in (0.0, -99, *odds.values())}
        best = results[f"best_{name}"]
        threshold = results[f"best_{name}_thresh"]
        assert best == pytest.approx(max(tried.values()))
        if best > tried[-99]:
            assert tried[threshold] == pytest.approx(best)
        else:  # All predictions are emptied.
            assert threshold == 0.0
    assert len({*tried.values()}) > 5


def test_lowest_of_equally_good_thresholds_is_returned():
    questions = [question("a", "cat"), question("b"), question("c", "dog")]
    predictions = {"a": "cat", "b": "ox", "c": "dog"}
    results = squad_metrics.evaluate(
        dataset(*questions), predictions, {"a": 1.0, "b": 2.0, "c": 3.0}
    )
    # Correct are 1 with all empty, then 2, 1 and 2 again.
    assert results["best_exact"] == pytest.approx(200 / 3)
    assert results["best_exact_thresh"] == results["best_f1_thresh"] == 1.0


def test_missing_null_odds_are_an_error():
    questions = dataset(question("a"), question("b"))
    with pytest.raises(InputError, match="'b'"):
        squad_metrics.evaluate(questions, {"a": "", "b": ""}, {"a": 1.0})
