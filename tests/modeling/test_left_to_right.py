"""Left-to-right models do not see later tokens."""

import dataclasses

import numpy as np
import pytest
from support import recorded

from official_bert.config import BertConfig
from official_bert.modeling.encoder import Bert

CONFIG = dataclasses.replace(
    recorded.SMALL_CONFIG,
    vocab_size=50,
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=3,
    is_left_to_right=True,
)
LENGTH = 12


def make(**changes):
    model = Bert(dataclasses.replace(CONFIG, **changes))
    model.build()
    recorded.set_weights(model.trainable_variables, seed=5)
    return model


@pytest.fixture(scope="module")
def model():
    return make()


def draw(seed=0):
    random = np.random.RandomState(seed)
    ids = random.randint(0, 50, (3, LENGTH)).astype(np.int32)
    segments = np.sort(random.randint(0, 2, ids.shape)).astype(np.int32)
    return ids, np.ones_like(ids), segments


@pytest.mark.parametrize("place", [1, 5, LENGTH - 1])
def test_earlier_outputs_do_not_depend_on_later_tokens(model, place):
    given, other = draw(0), draw(1)
    changed = [a.copy() for a in given]
    for array, from_other in zip(changed, other, strict=True):
        array[:, place:] = from_other[:, place:]
    changed[1][0, place:] = 0
    before, after = model(*given), model(*changed)
    for one, same in zip(
        before.encoder_outputs, after.encoder_outputs, strict=True
    ):
        np.testing.assert_array_equal(one[:, :place], same[:, :place])
        assert np.abs(one[:, place:] - same[:, place:]).min(-1).max() > 1e-3
    if place < LENGTH - 1:
        both_ways = make(is_left_to_right=False)
        one, other = (both_ways(*x).sequence_output for x in (given, changed))
        assert np.abs(one[:, :place] - other[:, :place]).max() > 0.1


def test_one_layer_equals_a_bidirectional_one_on_each_prefix():
    one, ordinary = (
        make(num_hidden_layers=1, is_left_to_right=value)
        for value in (True, False)
    )
    ids, mask, segments = draw()
    found = one(ids, mask, segments).sequence_output
    # From 2: Keras warns about a softmax over one position.
    for end in range(2, LENGTH + 1):
        alone = ordinary(ids[:, :end], mask[:, :end], segments[:, :end])
        np.testing.assert_allclose(
            found[:, end - 1], alone.sequence_output[:, -1], atol=1e-6
        )


def test_attention_is_triangular_and_ignores_padding(model):
    ids, mask, segments = draw()
    mask[1, 8:] = 0
    for layer in model(
        ids, mask, segments, return_attention=True
    ).attention_probs:
        probabilities = np.array(layer)
        assert (np.triu(probabilities, 1) == 0).all()
        assert (probabilities[1, ..., 8:] == 0).all()
        np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-6)


def test_last_token_is_pooled(model):
    ids, mask, segments = draw()
    for row, length in enumerate((LENGTH, 7, 3)):
        mask[row, length:] = 0
    output = model(ids, mask, segments)
    last = np.array(output.sequence_output)[range(3), mask.sum(1) - 1]
    np.testing.assert_allclose(output.pooled_output, model.pooler(last), 1e-6)
    ordinary = make(is_left_to_right=False)(ids, mask, segments)
    assert np.abs(output.pooled_output - ordinary.pooled_output).max() > 0.1


# Products of other shapes are summed in another order. The largest difference
# found is 1.1e-6 to 2.4e-6, with oneDNN on and off and with its instructions
# limited to AVX2 and SSE4.1.
PACKED_TOLERANCE = 4e-6


def test_packed_sequences_equal_separate_ones(model):
    ids, mask, segments = draw()
    row = np.concatenate([ids[0, :5], ids[1, :4], ids[2, :1], [0, 0]])
    numbers = np.array([1] * 5 + [2] * 4 + [3] + [0] * 2)
    parts = np.concatenate(
        [segments[0, :5], segments[1, :4], segments[2, :1], [0, 0]]
    )
    starts = np.array([0, 5, 9, 0])
    inputs = [a[None] for a in (row, numbers, parts, starts)]
    packed = model(*inputs)
    some = model(*inputs, output_positions=np.array([[7, 1]]))
    pairs = [
        (some.sequence_output, packed.sequence_output[:, 7:0:-6]),
        (some.pooled_output, packed.pooled_output),
    ]
    for index, (start, size) in enumerate(((0, 5), (5, 4))):
        one = np.s_[index : index + 1, :size]
        alone = model(ids[one], mask[one], segments[one])
        whole = packed.sequence_output[:, start : start + size]
        pairs += [
            (whole, alone.sequence_output),
            (packed.pooled_output[:, index], alone.pooled_output),
        ]
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, atol=PACKED_TOLERANCE)


def test_config_has_is_left_to_right_only_if_true():
    text = CONFIG.to_json_string()
    assert '"is_left_to_right": true' in text
    assert BertConfig.from_dict(CONFIG.to_dict()) == CONFIG
    ordinary = dataclasses.replace(CONFIG, is_left_to_right=False)
    assert "left" not in ordinary.to_json_string()
    assert ordinary.to_dict().keys() == CONFIG.to_dict().keys() - {
        "is_left_to_right"
    }
