import dataclasses

import numpy as np
import pytest
from support import recorded

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
    return recorded.assign(Bert(dataclasses.replace(CONFIG, **changes)), 5)


@pytest.fixture(scope="module")
def model():
    return make()


def draw(lengths=(LENGTH,) * 3):
    random = np.random.RandomState(0)
    ids = random.randint(0, 50, (3, LENGTH)).astype(np.int32)
    segments = np.sort(random.randint(0, 2, ids.shape)).astype(np.int32)
    mask = np.arange(LENGTH) < np.array(lengths)[:, np.newaxis]
    return ids, mask.astype(np.int32), segments


def test_one_layer_equals_a_bidirectional_one_on_each_prefix():
    left_to_right, bidirectional = (
        make(num_hidden_layers=1, is_left_to_right=value)
        for value in (True, False)
    )
    inputs = draw()
    found = left_to_right(*inputs).sequence_output
    # From 2: Keras warns about a softmax over one position.
    for end in range(2, LENGTH + 1):
        prefix = bidirectional(*(array[:, :end] for array in inputs))
        np.testing.assert_allclose(
            found[:, end - 1], prefix.sequence_output[:, -1], atol=1e-6
        )


def test_attention_is_triangular_and_ignores_padding(model):
    inputs = draw((LENGTH, 8, LENGTH))
    mask = inputs[1][:, np.newaxis, np.newaxis]
    for layer in model(*inputs, return_attention=True).attention_probs:
        probabilities = np.array(layer)
        assert ((probabilities > 0) == np.tri(LENGTH) * mask).all()
        np.testing.assert_allclose(probabilities.sum(-1), 1, rtol=1e-6)


def test_last_token_is_pooled(model):
    lengths = np.array([LENGTH, 7, 3])
    output = model(*draw(lengths))
    last = np.array(output.sequence_output)[range(3), lengths - 1]
    np.testing.assert_allclose(output.pooled_output, model.pooler(last), 1e-6)


def test_packed_sequences_equal_separate_ones(model):
    ids, mask, segments = draw()
    row, parts = (
        np.concatenate([x[0, :5], x[1, :4], x[2, :1], [0, 0]])
        for x in (ids, segments)
    )
    numbers = np.repeat([1, 2, 3, 0], [5, 4, 1, 2])
    starts = np.array([0, 5, 9, 0])
    inputs = [a[None] for a in (row, numbers, parts, starts)]
    packed = model(*inputs)
    selected = model(*inputs, output_positions=np.array([[7, 1]]))
    pairs = [
        (selected.sequence_output, packed.sequence_output[:, 7:0:-6]),
        (selected.pooled_output, packed.pooled_output),
    ]
    for index, (start, size) in enumerate(((0, 5), (5, 4))):
        part = np.s_[index : index + 1, :size]
        alone = model(ids[part], mask[part], segments[part])
        whole = packed.sequence_output[:, start : start + size]
        pairs += [
            (whole, alone.sequence_output),
            (packed.pooled_output[:, index], alone.pooled_output),
        ]
    # Products of other shapes are summed in another order: a difference of up
    # to 2.4e-6, which depends on the instructions that oneDNN uses.
    for found, expected in pairs:
        np.testing.assert_allclose(found, expected, atol=4e-6)
