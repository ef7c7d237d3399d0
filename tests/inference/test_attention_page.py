"""The attention of a pair of texts."""

import numpy as np
from support import recorded, tiny, untrained_models

from official_bert.config import BertConfig
from official_bert.inference import attention_page
from official_bert.inference.trained_models import LoadedBert
from official_bert.modeling.encoder import Bert


def test_pairs_are_two_segments(tmp_path):
    bert = Bert(BertConfig.from_dict({**tiny.CONFIG, "num_hidden_layers": 3}))
    tokenizer = untrained_models.tokenizer(tmp_path)
    model = LoadedBert(recorded.assign(bert, 3), tokenizer, "drawn")
    found = attention_page.compute(model, "good cat", "dog")
    assert found.tokens == ["[CLS]", "good", "cat", "[SEP]", "dog", "[SEP]"]
    assert found.segment_ids == [0, 0, 0, 0, 1, 1]
    assert found.probabilities.shape == (3, 4, 6, 6)
    assert found.probabilities.dtype == np.float32
    np.testing.assert_allclose(found.probabilities.sum(-1), 1.0, atol=1e-6)
    pair, alone = (
        model.run(found.tokens, segments, return_attention=True)
        for segments in (found.segment_ids, [0] * 6)
    )
    for layer, probabilities in enumerate(found.probabilities):
        same, other = (o.attention_probs[layer][0] for o in (pair, alone))
        np.testing.assert_array_equal(probabilities, same)
        assert np.abs(probabilities - other).max() > 0.01
