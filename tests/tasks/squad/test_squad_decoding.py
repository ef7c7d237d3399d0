"""Answers from logits, compared with an enumeration of all spans."""

import json
from unittest import mock

import numpy as np
import pytest

from official_bert.tasks.squad import answer_text, squad_decoding
from official_bert.tasks.squad.squad_decoding import DecodingOptions
from official_bert.tasks.squad.squad_features import find_owners, make_features

CONTEXT = "Ab  (cd)-ef\ngh, Ij kl. mn"  # 19 tokens in 5 words.


@pytest.fixture
def make(read, make_tokenizer):
    """Returns a function of contexts that makes the features of questions."""

    def make_some(*contexts):
        paragraphs = [
            (text, (f"q{i}", "a?", None, 0)) for i, text in enumerate(contexts)
        ]
        return make_features(
            read(*paragraphs, is_training=False),
            make_tokenizer("abcdefghijklmn(),.-?"),
            max_seq_length=14,
            doc_stride=3,
            max_query_length=3,
        )

    return make_some


def predict(features, start_logits, end_logits, **options):
    return squad_decoding.decode(
        features,
        np.asarray(start_logits, np.float32),
        np.asarray(end_logits, np.float32),
        DecodingOptions(**options),
    )


def random_logits(features, seed=0, decimals=4):
    rng = np.random.default_rng(seed)
    shape = (2, len(features.lengths), 14)
    return rng.normal(size=shape).round(decimals).astype(np.float32)


def peak(features, window, start, end):
    """Returns logits that are high for one span of input positions."""
    logits = np.zeros((2, len(features.lengths), 14))
    logits[0, window, start] = logits[1, window, end] = 9.0
    return logits


def spans_by_hand(features, start_logits, end_logits, number, longest):
    """Returns start and end logits of all spans of one question, best first."""
    windows = features.windows
    owners = find_owners(windows.start, windows.length)

    def best(logits):
        order = sorted(range(len(logits)), key=lambda i: -float(logits[i]))
        return order[:number]

    found = []
    for row, offset in enumerate(features.offsets.tolist()):
        limit = offset + int(windows.length[row])
        shift = int(windows.start[row]) - offset
        found += [
            (float(start_logits[row][start]), float(end_logits[row][end]))
            for start in best(start_logits[row])
            for end in best(end_logits[row])
            if offset <= start <= end < limit
            and end - start < longest
            and owners[start + shift] == row
        ]
    return sorted(found, key=lambda pair: -sum(pair))


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize(("number", "longest"), [(3, 2), (20, 4), (20, 30)])
@pytest.mark.parametrize("decimals", [0, 4])  # With ties, and without.
def test_n_best_are_the_best_of_all_spans(
    make, version_2, number, longest, decimals
):
    features = make(CONTEXT)
    for seed in range(10):
        start_logits, end_logits = random_logits(features, seed, decimals)
        n_best = predict(
            features,
            start_logits,
            end_logits,
            n_best_size=number,
            max_answer_length=longest,
            version_2_with_negative=version_2,
        )[0].n_best
        spans = spans_by_hand(
            features, start_logits, end_logits, number, longest
        )
        found = [(c["start_logit"], c["end_logit"]) for c in n_best]
        texts = [c["text"] for c in n_best]
        scores = np.array(found).sum(axis=1)
        assert len(set(texts)) == len(texts)
        if version_2:
            firsts = np.stack([start_logits[:, 0], end_logits[:, 0]], axis=1)
            no_answer = min(map(tuple, firsts.tolist()), key=sum)
            assert found.pop(texts.index("")) == no_answer
            assert len(n_best) <= number + 1
        elif not spans:
            assert texts == ["empty"]
            continue
        # Each span of this context has a text of its own.
        assert found == spans[: len(found)]
        assert len(found) >= min(len(spans), number - version_2)
        powers = np.exp(scores - scores.max())
        np.testing.assert_allclose(
            [c["probability"] for c in n_best],
            powers / powers.sum(),
            rtol=1e-12,
        )


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 1, "Ab"),
        (3, 4, "cd"),
        (2, 5, "(cd)"),
        (0, 5, "Ab (cd)"),  # One space between words, as in the original.
        (4, 4, "d"),
    ],
)
def test_answers_have_the_casing_of_the_context(make, first, last, expected):
    features = make(CONTEXT)
    offset = features.offsets[0]
    found = predict(features, *peak(features, 0, first + offset, last + offset))
    assert [(a.text, a.null_odds) for a in found] == [(expected, None)]


def test_no_answer_wins_by_more_than_the_threshold(make):
    features = make("Ab")
    logits = np.full((2, 1, 14), -9.0)
    logits[:, 0, 0] = 2.0
    logits[:, 0, features.offsets[0]] = 1.5
    for threshold, expected in [(0.0, ""), (0.99, ""), (1.0, "A"), (2.0, "A")]:
        [found] = predict(
            features,
            *logits,
            version_2_with_negative=True,
            null_score_diff_threshold=threshold,
        )
        assert (found.text, found.null_odds) == (expected, 1.0)
        assert [c["text"] for c in found.n_best][:2] == ["", "A"]


def test_a_long_word_is_normalized_once(make, monkeypatch):
    normalize = mock.Mock(wraps=answer_text.normalize)
    get_final_text = mock.Mock(wraps=squad_decoding.get_final_text)
    monkeypatch.setattr(answer_text, "normalize", normalize)
    monkeypatch.setattr(squad_decoding, "get_final_text", get_final_text)
    features = make("a.b" * 50)
    texts = {"a", ".", "b", "a.", ".b", "ba"}
    logits = random_logits(features)
    [found] = predict(features, *logits, max_answer_length=2)
    assert {candidate["text"] for candidate in found.n_best} == texts
    assert normalize.call_count == 1
    assert get_final_text.call_count == len(texts)


@pytest.mark.parametrize("version_2", [False, True])
def test_the_first_of_equal_spans_wins(make, version_2):
    [found] = predict(
        make("ab cd"), *np.zeros((2, 1, 14)), version_2_with_negative=version_2
    )
    assert found.text == "a"
    texts = [candidate["text"] for candidate in found.n_best]
    expected = ["a", "ab", "ab c", "ab cd", "b", "b c", "b cd", "c", "cd", "d"]
    assert texts == expected + [""] * version_2


def test_questions_without_span_are_empty_in_version_1(make):
    """As in the original."""
    features = make("Ab")
    [found] = predict(features, *peak(features, 0, 0, 0), n_best_size=1)
    candidate = {"text": "empty", "probability": 1.0}
    candidate |= {"start_logit": 0.0, "end_logit": 0.0}
    assert found == ("empty", [candidate], None)
    found = predict(make("ab", " \n", "cd"), *np.zeros((2, 2, 14)))
    assert [answer.text for answer in found] == ["a", "empty", "c"]
    [found] = predict(make(" "), *np.zeros((2, 0, 14)))
    assert found.text == "empty"


def test_questions_without_span_have_no_answer_in_version_2(make):
    """The original crashes."""
    version_2 = {"version_2_with_negative": True}
    features = make("Ab")
    [found] = predict(
        features, *peak(features, 0, 0, 0), n_best_size=1, **version_2
    )
    candidate = {"text": "", "probability": 1.0}
    candidate |= {"start_logit": 9.0, "end_logit": 9.0}
    odds = squad_decoding.NO_CANDIDATE_ODDS
    assert found == ("", [candidate], odds)
    found = predict(
        make("", "ab", "\x00"),
        *np.zeros((2, 1, 14)),
        null_score_diff_threshold=2e6,
        **version_2,
    )
    assert [answer.text for answer in found] == ["", "a", ""]
    assert found[0].null_odds == odds


def test_logits_of_another_shape_are_an_error(make):
    with pytest.raises(ValueError, match=r"\[W, S\] = \(2, 14\)"):
        predict(make("ab", "cd"), *np.zeros((2, 1, 14)))


def test_softmax_does_not_overflow():
    # Recorded.
    assert squad_decoding.softmax([1000.0, 0.0, -1000.0]) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("version_2", [False, True])
def test_prediction_files_replace_those_of_an_earlier_run(
    make, tmp_path, version_2
):
    features = make(CONTEXT, "gh Ij")
    logits = random_logits(features)
    answers = predict(features, *logits, version_2_with_negative=version_2)
    (tmp_path / "squad.json").unlink()
    (tmp_path / "vocab.txt").unlink()
    (tmp_path / "null_odds.json").write_text("{}")
    squad_decoding.write_predictions(str(tmp_path), features.examples, answers)
    names = ["predictions.json", "nbest_predictions.json", "null_odds.json"]
    columns = dict(zip(names, zip(*answers, strict=True), strict=True))
    if not version_2:
        del columns["null_odds.json"]
    assert {p.name: json.loads(p.read_text()) for p in tmp_path.iterdir()} == {
        name: dict(zip(["q0", "q1"], column, strict=True))
        for name, column in columns.items()
    }
