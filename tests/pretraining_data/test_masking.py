"""Masking: shares, limits and whole words."""

import collections
import random

from official_bert.pretraining_data.masking import mask_tokens

VOCAB_WORDS = [f"v{i}" for i in range(100)]


def mask(tokens, seed=0, **settings):
    return mask_tokens(
        tokens,
        **{
            "masked_lm_prob": 0.15,
            "max_predictions_per_seq": 20,
            "whole_words": False,
            "vocab_words": VOCAB_WORDS,
            "rng": random.Random(seed),
            **settings,
        },
    )


def packed(*words):
    return ["[CLS]", *words, "[SEP]"]


def test_labels_are_what_stood_at_the_positions():
    tokens = packed(*(f"w{i}" for i in range(60)))
    masked = mask(tokens)
    assert masked.positions == sorted(set(masked.positions))
    assert masked.labels == [tokens[i] for i in masked.positions]
    for i, token in enumerate(masked.tokens):
        assert i in masked.positions or token == tokens[i]


def test_the_number_is_rounded_half_to_even_with_special_tokens_counted():
    # 30 tokens * 0.15 = 4.5, which Python rounds to 4.
    assert len(mask(packed(*"a" * 28)).positions) == 4
    assert len(mask(packed(*"a" * 28), masked_lm_prob=0.0).positions) == 1
    limited = mask(packed(*"a" * 28), max_predictions_per_seq=2)
    assert len(limited.positions) == 2


def test_special_tokens_are_never_masked():
    tokens = ["[CLS]", "a", "[SEP]", "b", "[SEP]"]
    masked = mask(tokens, masked_lm_prob=1.0)
    assert masked.positions == [1, 3]


def test_80_10_10():
    kinds = collections.Counter()
    tokens = packed(*(f"w{i}" for i in range(100)))
    for seed in range(400):
        masked = mask(tokens, seed)
        for position, label in zip(
            masked.positions, masked.labels, strict=True
        ):
            seen = masked.tokens[position]
            kinds[{"[MASK]": "mask", label: "keep"}.get(seen, "random")] += 1
    total = kinds.total()
    # Four standard errors of a share of about 6000.
    assert abs(kinds["mask"] / total - 0.8) < 0.021
    assert abs(kinds["keep"] / total - 0.1) < 0.016
    assert abs(kinds["random"] / total - 0.1) < 0.016


def test_whole_words_are_masked_together():
    tokens = packed("a", "##b", "##c", "d", "e", "##f")
    words = [{1, 2, 3}, {4}, {5, 6}]
    for seed in range(50):
        positions = set(
            mask(tokens, seed, masked_lm_prob=0.5, whole_words=True).positions
        )
        assert positions
        for word in words:
            assert word <= positions or not word & positions


def test_a_word_too_long_is_passed_over():
    tokens = packed("a", "##b", "##c", "d")
    for seed in range(20):
        masked = mask(tokens, seed, max_predictions_per_seq=1, whole_words=True)
        assert masked.positions == [4]
