"""Answers in other scripts survive featurizing and decoding."""

import numpy as np
import pytest

from official_bert.tasks.squad import squad_decoding

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
def test_labelled_answers_are_decoded(
    read, featurize, make_tokenizer, released_tokenizer, script, vocabulary
):
    context, answers = PASSAGES[script]
    examples = read(
        (context, *((a, "?", a, context.index(a)) for a in answers))
    )
    if vocabulary == "characters":
        tokenizer = make_tokenizer(context, do_lower_case=False)
    else:
        tokenizer = released_tokenizer("multi_cased", vocabulary == "uncased")
    features = featurize(examples, tokenizer, 48, 8)
    ends = ("start_positions", "end_positions")
    labels = np.stack([features.labels[name] for name in ends], axis=-1)
    # High at the labels of windows with an answer.
    is_label = np.arange(48)[:, np.newaxis] == labels[:, np.newaxis]
    logits = np.where(is_label & (labels > 0)[:, np.newaxis], 9.0, 0.0)
    options = squad_decoding.DecodingOptions(n_best_size=5)
    found = squad_decoding.decode(features, logits, options)
    for example, answer in zip(examples, found, strict=True):
        assert example.qas_id in answer.text
        # An answer that starts inside a word is extended to the whole word,
        # since its tokens there start with "##".
        _, start, end, _ = example.answer
        words = example.paragraph.words[start : end + 1]
        assert answer.text in " ".join(words)
