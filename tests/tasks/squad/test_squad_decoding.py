"""Answers out of logits, against all spans counted one by one."""

import json

import numpy as np
import pytest

from official_bert.tasks.squad import answer_text, squad_decoding
from official_bert.tasks.squad.squad_decoding import DecodingOptions
from official_bert.tasks.squad.squad_features import find_owners, make_features

CONTEXT = "Ab  (cd)-ef\ngh, Ij kl. mn"  # 19 pieces in 5 words.


@pytest.fixture
def tokenizer(make_tokenizer):
    return make_tokenizer("abcdefghijklmn(),.-?")


@pytest.fixture
def make(read, tokenizer):
    def make_some(*contexts):
        examples = read(
            *(
                (text, (f"q{i}", "a?", None, 0))
                for i, text in enumerate(contexts)
            ),
            is_training=False,
        )
        return make_features(
            examples,
            tokenizer,
            max_seq_length=14,
            doc_stride=3,
            max_query_length=3,
        )

    return make_some


def predict(features, start_logits, end_logits, **options):
    return squad_decoding.predict(
        features,
        np.asarray(start_logits, np.float32),
        np.asarray(end_logits, np.float32),
        DecodingOptions(**options),
    )


def logits(features, seed=0, decimals=4):
    shape = (2, len(features.lengths), features.max_seq_length)
    random = np.random.default_rng(seed)
    return random.normal(size=shape).round(decimals).astype(np.float32)


def ranks(row, number):
    order = sorted(range(len(row)), key=lambda i: -float(row[i]))
    return order[:number]


def spans_by_hand(features, start_logits, end_logits, number, longest):
    """Yields the score, window and places of every span of one question."""
    windows = features.windows
    owner = find_owners(windows.start, windows.length)
    for row in range(len(features.lengths)):
        offset = int(features.offsets[row])
        limit = offset + int(windows.length[row])
        shift = int(windows.start[row]) - offset
        for start in ranks(start_logits[row], number):
            for end in ranks(end_logits[row], number):
                if not offset <= start <= end < limit:
                    continue
                if end - start + 1 > longest or owner[start + shift] != row:
                    continue
                pair = (
                    float(start_logits[row][start]),
                    float(end_logits[row][end]),
                )
                yield sum(pair), start + shift, end + shift, pair


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize(("number", "longest"), [(3, 2), (20, 4), (20, 30)])
@pytest.mark.parametrize("decimals", [0, 4])  # With ties, and without.
def test_the_best_are_found_among_all(
    make, version_2, number, longest, decimals
):
    features = make(CONTEXT)
    for seed in range(10):
        start_logits, end_logits = logits(features, seed, decimals)
        found = predict(
            features,
            start_logits,
            end_logits,
            n_best_size=number,
            max_answer_length=longest,
            version_2_with_negative=version_2,
        ).n_best["q0"]
        spans = sorted(
            spans_by_hand(features, start_logits, end_logits, number, longest),
            key=lambda span: -span[0],
        )
        pairs = [span[3] for span in spans]
        firsts = np.stack([start_logits[:, 0], end_logits[:, 0]], axis=1)
        null = min(map(tuple, firsts.tolist()), key=sum)
        given = [(c["start_logit"], c["end_logit"]) for c in found]
        texts = [c["text"] for c in found]
        assert len(set(texts)) == len(texts)
        if version_2:
            assert given.pop(texts.index("")) == null
            assert len(found) <= number + 1
        elif not spans:
            assert texts == ["empty"]
            continue
        # Each span here has a text of its own.
        assert given == pairs[: len(given)]
        assert len(given) >= min(len(spans), number - version_2)
        scores = np.array([c["start_logit"] + c["end_logit"] for c in found])
        powers = np.exp(scores - scores.max())
        np.testing.assert_allclose(
            [c["probability"] for c in found], powers / powers.sum(), rtol=1e-12
        )


def peak(features, row, start, end):
    """Logits that point at one span, counted in the row."""
    found = np.zeros((2, len(features.lengths), features.max_seq_length))
    found[0, row, start] = found[1, row, end] = 9.0
    return found


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 1, "Ab"),
        (3, 4, "cd"),
        (2, 5, "(cd)"),
        (0, 5, "Ab (cd)"),  # Words are one space apart, whatever they were.
        (4, 4, "d"),
    ],
)
def test_answers_keep_their_casing(make, first, last, expected):
    features = make(CONTEXT)
    offset = features.offsets[0]
    found = predict(features, *peak(features, 0, first + offset, last + offset))
    assert found.answers == {"q0": expected}
    assert found.null_odds == {}


def test_only_the_window_with_most_context_counts(make):
    features = make(CONTEXT)
    windows, offset = features.windows, features.offsets[1]
    first = offset  # Has no context to its left in window 1, but in window 0.
    found = predict(features, *peak(features, 1, first, first))
    assert found.answers["q0"] != "c"
    place = windows.start[1]
    found = predict(
        features, *peak(features, 0, place + offset, place + offset)
    )
    assert found.answers["q0"] == "c"


def test_null_wins_by_more_than_the_threshold(make):
    features = make("Ab")
    scores = np.full((2, 1, 14), -9.0)
    scores[:, 0, 0] = 2.0
    scores[:, 0, features.offsets[0]] = 1.5
    for threshold, expected in [(0.0, ""), (0.99, ""), (1.0, "A"), (2.0, "A")]:
        found = predict(
            features,
            *scores,
            version_2_with_negative=True,
            null_score_diff_threshold=threshold,
        )
        assert found.answers == {"q0": expected}
        assert found.null_odds == {"q0": 1.0}
        assert [c["text"] for c in found.n_best["q0"]][:2] == ["", "A"]


def test_the_window_that_believes_least_in_null_counts(make):
    features = make(CONTEXT)
    scores = np.zeros((2, len(features.lengths), 14))
    scores[0, :, 0] = 5.0
    scores[0, 1, 0] = -3.0
    found = predict(features, *scores, version_2_with_negative=True)
    [null] = [c for c in found.n_best["q0"] if c["text"] == ""]
    assert null["start_logit"] == -3.0


def test_a_long_word_is_tokenized_once(make, monkeypatch):
    calls = []

    def counted(function):
        def call(*arguments):
            calls.append(function.__name__)
            return function(*arguments)

        return call

    for module, name in [
        (answer_text, "normalize"),
        (squad_decoding, "get_final_text"),
    ]:
        function = getattr(module, name)
        monkeypatch.setattr(module, name, counted(function))
    features = make("a.b" * 50)
    texts = {"a", ".", "b", "a.", ".b", "ba"}
    found = predict(features, *logits(features), max_answer_length=2).n_best[
        "q0"
    ]
    assert {candidate["text"] for candidate in found} == texts
    assert calls.count("normalize") == 1
    assert calls.count("get_final_text") == len(texts)


# What the 2018 release was seen to do.
def test_no_span_at_all_is_empty_in_version_1(make):
    features = make("Ab")
    found = predict(features, *peak(features, 0, 0, 0), n_best_size=1)
    assert found.answers == {"q0": "empty"}
    assert found.n_best["q0"] == [
        {
            "text": "empty",
            "probability": 1.0,
            "start_logit": 0.0,
            "end_logit": 0.0,
        }
    ]


@pytest.mark.parametrize("version_2", [False, True])
def test_the_first_of_equals_wins(make, version_2):
    features = make("ab cd")
    found = predict(
        features, *np.zeros((2, 1, 14)), version_2_with_negative=version_2
    )
    assert found.answers == {"q0": "a"}
    texts = [candidate["text"] for candidate in found.n_best["q0"]]
    expected = ["a", "ab", "ab c", "ab cd", "b", "b c", "b cd", "c", "cd", "d"]
    assert texts == expected + [""] * version_2


def test_no_window_is_empty_in_version_1(make):
    features = make("ab", " \n", "cd")
    found = predict(features, *np.zeros((2, 2, 14)))
    assert found.answers == {"q0": "a", "q1": "empty", "q2": "c"}


# With these it crashed.
def test_only_null_means_no_answer(make):
    features = make("Ab")
    found = predict(
        features,
        *peak(features, 0, 0, 0),
        n_best_size=1,
        version_2_with_negative=True,
    )
    assert found.answers == {"q0": ""}
    assert found.null_odds == {"q0": squad_decoding.NO_CANDIDATE_ODDS}
    assert found.n_best["q0"] == [
        {
            "text": "",
            "probability": 1.0,
            "start_logit": 9.0,
            "end_logit": 9.0,
        }
    ]


def test_no_window_means_no_answer(make):
    features = make("", "ab", "\x00")
    found = predict(
        features,
        *np.zeros((2, 1, 14)),
        version_2_with_negative=True,
        null_score_diff_threshold=2e6,
    )
    assert found.answers == {"q0": "", "q1": "a", "q2": ""}
    assert found.null_odds["q0"] == squad_decoding.NO_CANDIDATE_ODDS
    assert [c["text"] for c in found.n_best["q2"]] == [""]


def test_all_paragraphs_may_be_blank(make):
    found = predict(make(" "), *np.zeros((2, 0, 14)))
    assert found.answers == {"q0": "empty"}


def test_logits_must_fit(make):
    features = make("ab", "cd")
    with pytest.raises(ValueError, match=r"\[W, S\] = \(2, 14\)"):
        predict(features, *np.zeros((2, 1, 14)))


def test_probabilities_do_not_overflow():
    # Recorded.
    assert squad_decoding.softmax([1000.0, 0.0, -1000.0]) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("version_2", [False, True])
def test_files_are_written(make, tmp_path, version_2):
    features = make(CONTEXT, "gh Ij")
    found = predict(
        features, *logits(features), version_2_with_negative=version_2
    )
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "null_odds.json").write_text("{}")  # Of an earlier run.
    squad_decoding.write_predictions(str(folder), found)
    names = ["nbest_predictions.json", "null_odds.json", "predictions.json"]
    if not version_2:
        names.remove("null_odds.json")
    assert sorted(path.name for path in folder.iterdir()) == names
    text = (folder / "predictions.json").read_text()
    assert text.startswith('{\n    "q0": "')
    assert text.endswith('"\n}\n')
    assert json.loads(text) == found.answers
    n_best = json.loads((folder / "nbest_predictions.json").read_text())
    assert n_best == found.n_best
