"""From predicted tokens back to the text of the context.

`test_recorded_squad.py` compares 8,400 texts with the original.
"""

import random

import pytest

from official_bert.tasks.squad.answer_text import (
    OriginalText,
    get_final_text,
    join_tokens,
)
from official_bert.tokenization import BasicTokenizer


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
    for _ in range(6000):
        length = rng.randrange(20)
        orig_text = "".join(rng.choices("aBé .,'(中Σ\u0301\xa0", k=length))
        do_lower_case = rng.random() < 0.5
        words = BasicTokenizer(do_lower_case).tokenize(orig_text)
        text = " ".join(words)
        start = rng.randrange(len(text) + 1)
        pred_text = text[start : start + rng.randrange(6)]
        pred_text = rng.choice([pred_text] * 5 + [" ", "b", " a", "\x00"])
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
