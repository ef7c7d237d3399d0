"""Passages in scripts with other ideas of words: answers come back whole."""

import numpy as np
import pytest

from official_bert.tasks.squad import squad_decoding
from official_bert.tasks.squad.squad_features import make_features

PASSAGES = {
    # One word each between spaces, of many pieces.
    "Thai": (
        "แมวนอนอยู่บนเสื่อ ใต้ต้นไม้ใหญ่ในสวน และตื่นขึ้นมาตอนเย็น",
        ["เสื่อ", "ต้นไม้ใหญ่", "ตอนเย็น", "แมว"],
    ),
    # Vowel signs and viramas are characters of their own.
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
CASES = [
    pytest.param(context, answer, id=f"{script}-{i}")
    for script, (context, all_answers) in PASSAGES.items()
    for i, answer in enumerate(all_answers)
]


def decode_gold(examples, tokenizer):
    """Returns what logits that point at the gold answers are decoded to."""
    features = make_features(
        examples,
        tokenizer,
        max_seq_length=48,
        doc_stride=8,
        max_query_length=8,
        is_training=True,
    )
    starts = features.labels["start_positions"]
    ends = features.labels["end_positions"]
    rows = np.flatnonzero(starts)
    assert len(rows)
    logits = np.zeros((2, len(starts), 48), np.float32)
    # Windows hold an answer's start with all the context there is, or with
    # less. Decoding has to take the former ones.
    logits[0, rows, starts[rows]] = 9.0
    logits[1, rows, ends[rows]] = 9.0
    return squad_decoding.predict(
        features,
        *logits,
        squad_decoding.DecodingOptions(n_best_size=5),
    ).answers


@pytest.mark.parametrize(("context", "answer"), CASES)
def test_answers_are_found_by_their_characters(
    read, make_tokenizer, context, answer
):
    start = context.index(answer)
    examples = read((context, ("q", "?", answer, start)))
    found = decode_gold(examples, make_tokenizer(context, do_lower_case=False))
    [example] = examples
    # Where an answer begins inside a word, the whole word is what remains: its
    # pieces there begin with "##".
    words = example.doc_tokens[
        example.start_position : example.end_position + 1
    ]
    assert answer in found["q"]
    assert found["q"] in " ".join(words)


@pytest.mark.parametrize(("context", "answer"), CASES)
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_released_vocabularies_find_them_too(
    read, released_tokenizer, context, answer, do_lower_case
):
    start = context.index(answer)
    examples = read((context, ("q", "?", answer, start)))
    tokenizer = released_tokenizer("multi_cased", do_lower_case)
    assert answer in decode_gold(examples, tokenizer)["q"]
