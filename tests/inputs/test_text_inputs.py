"""[CLS] and [SEP] around one or two texts, and their segments."""

import pytest

from official_bert.inputs import text_inputs


@pytest.mark.parametrize(
    ("texts", "tokens", "segments"),
    [
        ([["dogs"]], "[CLS] dogs [SEP]", [0, 0, 0]),
        ([["a", "b"], ["c"]], "[CLS] a b [SEP] c [SEP]", [0, 0, 0, 0, 1, 1]),
    ],
)
def test_special_tokens_frame_one_or_two_texts(texts, tokens, segments):
    found = text_inputs.add_special_tokens(*texts)
    assert found == tokens.split()
    assert text_inputs.make_segment_ids(len(found), len(texts[0])) == segments
    # The same with ids.
    vocab = {token: 100 + i for i, token in enumerate(dict.fromkeys(found))}
    ids = [[vocab[token] for token in text] for text in (*texts, [])[:2]]
    features = text_inputs.text_features(*ids, text_inputs.special_ids(vocab))
    assert features == {
        "input_ids": [vocab[token] for token in found],
        "input_mask": [1] * len(found),
        "segment_ids": segments,
    }
