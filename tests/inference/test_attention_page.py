"""Attention equals the formula, on recorded outputs of the original."""

import numpy as np
import pytest
from scipy import special

from official_bert.inference import attention_page
from official_bert.inference.trained_models import ModelFiles, load_encoder

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def by_formula(x, mask, weights, num_heads):
    """Returns softmax(Q K^T / sqrt(D)) in float64 (Vaswani et al., 3.2.1).

    Args:
        x: The layer's input, [F, H].
        mask: 1 for tokens, [F].
        weights: {name: array} of query and key.
        num_heads: A.

    Returns:
        [A, F, T].
    """
    x = x.astype(np.float64)
    query, key = (
        (x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"])
        .reshape(len(x), num_heads, -1)
        .transpose(1, 0, 2)
        for name in ("query", "key")
    )
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    return special.softmax(np.where(mask, scores, -np.inf), axis=-1)


@pytest.fixture(scope="module")
def original(golden, tmp_path_factory):
    """The recorded model."""
    folder = tmp_path_factory.mktemp("original")
    vocab = [*SPECIAL, *(f"w{n}" for n in range(len(SPECIAL), 1000))]
    (folder / "vocab.txt").write_text("\n".join(vocab) + "\n")
    return load_encoder(
        ModelFiles(
            str(golden / "model/base/bert_config.json"),
            str(folder / "vocab.txt"),
            do_lower_case=True,
            checkpoint=str(golden / "model/base/bert_model.ckpt"),
        )
    )


def test_attention_equals_the_formula_on_recorded_outputs(original, golden):
    case = np.load(golden / "model" / "base" / "pad.npz")
    weights = {w.path: w.numpy() for w in original.bert.trainable_variables}
    for row, mask in enumerate(case["in/input_mask"]):
        length = mask.sum()
        if length == 1:
            continue  # Keras warns about it, and no text is so short.
        ids = case["in/input_ids"][row, :length]
        output = original.run(
            original.tokenizer.convert_ids_to_tokens(ids.tolist()),
            case["in/segment_ids"][row, :length].tolist(),
            return_attention=True,
        )
        assert len(output.attention_probs) == 3
        for layer, found in enumerate(output.attention_probs):
            before = (
                f"encoder_layer_{layer - 1}" if layer else "embedding_output"
            )
            prefix = f"bert/encoder/layer_{layer}/attention/self/"
            expected = by_formula(
                case[f"out/{before}"][row],
                mask,
                {
                    name.removeprefix(prefix): value.astype(np.float64)
                    for name, value in weights.items()
                    if name.startswith(prefix)
                },
                num_heads=4,
            )
            np.testing.assert_allclose(
                found[0], expected[:, :length, :length], atol=2e-6
            )
            np.testing.assert_allclose(np.sum(found[0], -1), 1.0, atol=1e-6)


def test_pairs_are_two_segments(original):
    found = attention_page.compute(original, "w17 w18", "w19")
    assert found.tokens == ["[CLS]", "w17", "w18", "[SEP]", "w19", "[SEP]"]
    assert found.segment_ids == [0, 0, 0, 0, 1, 1]
    assert found.probabilities.shape == (3, 4, 6, 6)
    assert found.probabilities.dtype == np.float32
    np.testing.assert_allclose(found.probabilities.sum(-1), 1.0, atol=1e-6)
    alone = original.run(found.tokens, [0] * 6, return_attention=True)
    for layer, other in enumerate(alone.attention_probs):
        assert np.abs(found.probabilities[layer] - other[0]).max() > 0.01
