"""Attention equals the formula, on recorded outputs of the original."""

import numpy as np
import pytest
from scipy import special
from support import recorded, untrained_models

from official_bert.config import BertConfig
from official_bert.inference import attention_page
from official_bert.inference.trained_models import load_encoder
from official_bert.pretrained import ModelFiles


def by_formula(x, mask, weights, num_heads):
    """Returns softmax(Q K^T / sqrt(D)) in float64 (Vaswani et al., 3.2.1)."""
    query, key = (
        (np.float64(x) @ weights[f"{name}/kernel"] + weights[f"{name}/bias"])
        .reshape(len(x), num_heads, -1)
        .transpose(1, 0, 2)
        for name in ("query", "key")
    )
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    return special.softmax(np.where(mask, scores, -np.inf), axis=-1)


@pytest.fixture(scope="module")
def original(golden, tmp_path_factory):
    """The recorded model."""
    folder, model = tmp_path_factory.mktemp("original"), golden / "model/base"
    config = str(model / "bert_config.json")
    num_tokens = BertConfig.from_json_file(config).vocab_size
    untrained_models.tokenizer(
        folder, *(f"w{n}" for n in range(17, num_tokens))
    )
    vocab_file, checkpoint = folder / "vocab.txt", model / "bert_model.ckpt"
    files = ModelFiles(config, str(vocab_file), str(checkpoint), True)
    return load_encoder(files)


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
        inputs = ["embedding_output", "encoder_layer_0", "encoder_layer_1"]
        for layer, (name, found) in enumerate(
            zip(inputs, output.attention_probs, strict=True)
        ):
            prefix = f"bert/encoder/layer_{layer}/attention/self/"
            expected = by_formula(
                case[f"out/{name}"][row],
                mask,
                recorded.part(weights, prefix),
                num_heads=4,
            )
            np.testing.assert_allclose(
                found[0], expected[:, :length, :length], atol=2e-6
            )


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
