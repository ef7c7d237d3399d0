"""From predicted tokens back to the text of the context."""

import random

import pytest

from official_bert.tasks.squad.answer_text import (
    OriginalText,
    get_final_text,
    join_tokens,
)
from official_bert.tokenization import BasicTokenizer


@pytest.mark.parametrize(
    ("pred_text", "orig_text", "do_lower_case", "expected"),
    [
        ("smith ' s", "Smith's", True, "Smith's"),
        ("' s", "Smith's", True, "'s"),
        ("e .", "50% e.g. A.B.C.", True, "e."),
        (
            "50 % e . g . a . b",
            "'single', U.N.'s 50% e.g. A.B.C.",
            True,
            "50% e.g. A.B",
        ),
        ("single", "Single", True, "Single"),
        ("e", "50% €7 ét́e", False, "e"),
        (",", "new lines here ,", True, ","),
        # Everything, if the prediction is not found or lengths differ.
        (
            "(",
            "São\xa0a\u200bb ##ed(1895-1943) on",
            True,
            "São\xa0a\u200bb ##ed(1895-1943) on",
        ),
        ("ﬁn", "was ﬁn for U.S.\xa0anti", True, "was ﬁn for U.S.\xa0anti"),
        (
            ". secaps",
            "12 km; \u2009thin spaces.",
            True,
            "12 km; \u2009thin spaces.",
        ),
        ("", "abc", True, "abc"),
    ],
)
def test_final_text_equals_the_original(
    pred_text, orig_text, do_lower_case, expected
):
    original = OriginalText.from_text(orig_text, do_lower_case)
    assert get_final_text(pred_text, original) == expected


@pytest.mark.parametrize("orig_text", ["", " ", "a", " a "])
@pytest.mark.parametrize("pred_text", ["", " ", "b", " a", "a ", "\x00"])
def test_final_text_without_match_is_the_whole_text(pred_text, orig_text):
    original = OriginalText.from_text(orig_text, True)
    assert get_final_text(pred_text, original) == orig_text


def final_text_by_hand(pred_text, orig_text, do_lower_case):
    """Aligns the characters that are not spaces, one by one."""
    words = BasicTokenizer(do_lower_case).tokenize(orig_text)
    tokenized = " ".join(words)
    start = tokenized.find(pred_text)
    places = [i for i, char in enumerate(orig_text) if char != " "]
    others = [i for i, char in enumerate(tokenized) if char != " "]
    if start < 0 or len(places) != len(others):
        return orig_text
    place_of = dict(zip(others, places, strict=True))
    end = start + len(pred_text) - 1
    if start not in place_of or end not in place_of:
        return orig_text
    return orig_text[place_of[start] : place_of[end] + 1]


def test_final_text_of_random_texts_follows_the_definition():
    rng = random.Random(0)
    num_parts = 0
    for _ in range(3000):
        length = rng.randrange(1, 20)
        orig_text = "".join(rng.choices("aBé .,'(中Σ\u0301\xa0", k=length))
        do_lower_case = rng.random() < 0.5
        words = BasicTokenizer(do_lower_case).tokenize(orig_text)
        text = " ".join(words)
        start = rng.randrange(len(text) + 1)
        pred_text = text[start : start + rng.randrange(6)]
        original = OriginalText.from_text(orig_text, do_lower_case)
        found = get_final_text(pred_text, original)
        expected = final_text_by_hand(pred_text, orig_text, do_lower_case)
        assert found == expected
        num_parts += found != orig_text
    assert num_parts > 200


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["a", "min", "##er", "."], "a miner ."),
        (["##er", "##s", "x"], "ers x"),
        (["[UNK]", "#", "#", "a"], "[UNK] # # a"),
        ([], ""),
    ],
)
def test_wordpiece_tokens_are_joined_to_words(tokens, expected):
    assert join_tokens(tokens) == expected
