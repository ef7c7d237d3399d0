import re

import numpy as np
import pytest

from official_bert.tasks.squad import decoding
from official_bert.tasks.squad.features import find_owners

CONTEXT = "Ab  (cd)-ef\ngh, Ij kl. mn"  # 19 tokens in 5 words.


@pytest.fixture
def make(read, make_tokenizer, featurize):
    """Returns a function that makes the features of questions on contexts."""

    def make_features(*contexts):
        paragraphs = [
            (text, (f"q{i}", "a?", None, 0)) for i, text in enumerate(contexts)
        ]
        tokenizer = make_tokenizer("abcdefghijklmn(),.-?")
        return featurize(read(*paragraphs, is_training=False), tokenizer, 14)

    return make_features


def predict(features, logits, **options):
    logits = np.asarray(logits, np.float32)
    options = decoding.DecodingOptions(**options)
    return decoding.decode(features, logits, options)


def random_logits(features, seed=0, decimals=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(len(features.lengths), 14, 2)).round(decimals)


def peak(features, start, end):
    """Returns logits that are high for one span of the first window."""
    logits = np.zeros((len(features.lengths), 14, 2))
    logits[0, start, 0] = logits[0, end, 1] = 900.0
    return logits


def spans_by_hand(features, logits, number, longest):
    """Returns start and end logits of all spans of one question, best first."""
    _, starts, lengths = features.windows
    owners = find_owners(starts, lengths)
    found = []
    for window, offset in enumerate(features.offsets):
        limit, shift = offset + lengths[window], starts[window] - offset
        start_logits, end_logits = logits[window].T.tolist()
        best_starts, best_ends = (
            sorted(range(14), key=lambda i, x=x: -x[i])[:number]
            for x in (start_logits, end_logits)
        )
        found += [
            (start_logits[start], end_logits[end])
            for start in best_starts
            for end in best_ends
            if offset <= start <= end < limit
            and end - start < longest
            and owners[start + shift] == window
        ]
    return sorted(found, key=lambda pair: -sum(pair))


@pytest.mark.parametrize("version_2", [False, True])
@pytest.mark.parametrize(("number", "longest"), [(3, 2), (20, 4), (20, 30)])
@pytest.mark.parametrize("decimals", [0, 4])  # With ties, and without.
def test_n_best_are_the_best_spans(make, version_2, number, longest, decimals):
    features = make(CONTEXT)
    for seed in range(10):
        logits = random_logits(features, seed, decimals).astype(np.float32)
        [(_, n_best, *_)] = predict(
            features,
            logits,
            n_best_size=number,
            max_answer_length=longest,
            version_2_with_negative=version_2,
        )
        spans = spans_by_hand(features, logits, number, longest)
        found = [(c["start_logit"], c["end_logit"]) for c in n_best]
        texts = [c["text"] for c in n_best]
        powers = np.exp(np.sum(found, axis=1))
        assert len(set(texts)) == len(texts)
        if version_2:
            no_answer = min(map(tuple, logits[:, 0].tolist()), key=sum)
            assert found.pop(texts.index("")) == no_answer
            assert len(n_best) <= number + 1
        elif not spans:
            assert texts == ["empty"]
            continue
        # Each span of this context has a text of its own.
        assert found == spans[: len(found)]
        assert len(found) >= min(len(spans), number - version_2)
        np.testing.assert_allclose(
            [c["probability"] for c in n_best],
            powers / powers.sum(),
            rtol=1e-12,
        )


def test_answers_have_the_casing_of_the_context(make):
    features = make(CONTEXT)
    offset = features.offsets[0]
    for first, last, expected in (
        (0, 1, "Ab"),
        (3, 4, "cd"),
        (2, 5, "(cd)"),
        (0, 5, "Ab (cd)"),  # One space between words, as in the original.
        (4, 4, "d"),
    ):
        logits = peak(features, first + offset, last + offset)
        [found] = predict(features, logits)
        assert (found.text, found.null_odds) == (expected, None)


@pytest.mark.parametrize(
    "marked",
    [
        "ab\xa0«cd»\xa0ef",
        "ab\u3000«(cd)»\u3000ef",
        "ab\u2028«cd\u2029ef»\u2009gh",
        # Removed characters do not separate words.
        "ab «cd»\u200b ef",
        "ab «c\u200bd»\x85ef",
        "\ufeff«ab»\xad",
        # The text between white space, if the tokens are not found in it.
        "ab\xa0«(c\ud55c)»\u3000ef",
        "ab\xa0«cde\u0301»\u2028ef",
        "ab\xa0«c\xa0d!»\xa0ef",
    ],
)
def test_answers_end_at_all_white_space_of_the_tokenizer(make, marked):
    before, answer, after = re.split("[«»]", marked)
    features = make(before + answer + after)
    count = [len(features.tokenizer.tokenize(x)) for x in (before, answer)]
    first = features.offsets[0] + count[0]
    [found] = predict(features, peak(features, first, first + count[1] - 1))
    assert found.text == answer
    assert found.spans[0] == (len(before), len(before + answer))


def test_no_answer_wins_by_more_than_the_threshold(make):
    features = make("Ab")
    logits = np.full((1, 14, 2), -9.0)
    logits[0, 0] = 2.0
    logits[0, features.offsets[0]] = 1.5
    for threshold, expected in [(0.0, ""), (0.99, ""), (1.0, "A"), (2.0, "A")]:
        [found] = predict(
            features,
            logits,
            version_2_with_negative=True,
            null_score_diff_threshold=threshold,
        )
        assert (found.text, found.null_odds) == (expected, 1.0)
        assert [c["text"] for c in found.n_best][:2] == ["", "A"]


@pytest.mark.parametrize("version_2", [False, True])
def test_first_of_equal_spans_wins(make, version_2):
    [found] = predict(
        make("ab cd"), np.zeros((1, 14, 2)), version_2_with_negative=version_2
    )
    assert found.text == "a"
    texts = [candidate["text"] for candidate in found.n_best]
    expected = ["a", "ab", "ab c", "ab cd", "b", "b c", "b cd", "c", "cd", "d"]
    assert texts == expected + [""] * version_2


@pytest.mark.parametrize(
    ("version_2", "text", "logit", "odds"),
    [
        (False, "empty", 0.0, None),  # As in the original.
        (True, "", 900.0, 1e6),  # The original crashes.
    ],
)
def test_without_a_span_there_is_no_answer(make, version_2, text, logit, odds):
    options = {
        "version_2_with_negative": version_2,
        "null_score_diff_threshold": 2e6,
    }
    features = make("Ab")
    [found] = predict(features, peak(features, 0, 0), n_best_size=1, **options)
    candidate = {"text": text, "probability": 1.0}
    candidate |= {"start_logit": logit, "end_logit": logit}
    assert found == (text, [candidate], odds, [(-1, -1)])
    found = predict(make("", "ab", "\x00"), np.zeros((1, 14, 2)), **options)
    assert [answer.text for answer in found] == [text, "a", text]
    [found] = predict(make(" "), np.zeros((0, 14, 2)), **options)
    assert (found.text, found.null_odds) == (text, odds)


PASSAGES = {
    # Each word between spaces has many tokens.
    "Thai": (
        "แมวนอนอยู่บนเสื่อ ใต้ต้นไม้ใหญ่ในสวน และตื่นขึ้นมาตอนเย็น",
        ["เสื่อ", "ต้นไม้ใหญ่", "ตอนเย็น", "แมว"],
    ),
    # Vowel signs and viramas are characters.
    "Hindi": (
        "बिल्ली बड़े पेड़ के नीचे चटाई पर सोई थी। शाम को वह उठी, और घर गई।",
        ["बिल्ली", "पेड़ के नीचे", "शाम को", "घर"],
    ),
    "Chinese": (
        "猫睡在大树下的垫子上。它在1943年傍晚醒来,然后回家了。",
        ["大树", "1943年", "回家"],
    ),
    "Arabic": (
        "نامت القطة على الحصيرة (تحت الشجرة)، واستيقظت في المساء.",
        ["القطة", "تحت الشجرة", "المساء"],
    ),
    "Korean": ("고양이가 나무 밑에서 잠을 잤다.", ["나무 밑에서", "고양이"]),
    "Turkish": ("İstanbul'da ıslak kedi ağaçta uyudu.", ["İstanbul", "ağaçta"]),
}


@pytest.mark.parametrize("script", PASSAGES)
@pytest.mark.parametrize("vocabulary", ["characters", "cased", "uncased"])
def test_labeled_answers_of_all_scripts_are_decoded(
    read, featurize, make_tokenizer, released_tokenizer, script, vocabulary
):
    text, answers = PASSAGES[script]
    examples = read((text, *((a, "?", a, text.index(a)) for a in answers)))
    if vocabulary == "characters":
        tokenizer = make_tokenizer(text, do_lower_case=False)
    else:
        tokenizer = released_tokenizer("multi_cased", vocabulary == "uncased")
    features = featurize(examples, tokenizer, 48, 8)
    ends = ("start_positions", "end_positions")
    labels = np.stack([features.labels[name] for name in ends], axis=-1)
    # High at the labels of windows with an answer.
    is_label = np.arange(48)[:, np.newaxis] == labels[:, np.newaxis]
    logits = np.where(is_label & (labels > 0)[:, np.newaxis], 9.0, 0.0)
    options = decoding.DecodingOptions(n_best_size=5)
    found = decoding.decode(features, logits, options)
    for example, answer in zip(examples, found, strict=True):
        assert example.qas_id in answer.text
        # An answer that starts inside a word is extended to the whole word,
        # since its tokens there start with "##".
        _, start, end, _ = example.answer
        words = example.paragraph.words[start : end + 1]
        assert answer.text in " ".join(words)
