"""Names, shapes and heads of the weights in a checkpoint."""

import math

import pytest
from support.conversions import HEADS
from support.transformers_process import SIZES

from official_bert.checkpoints import weights
from official_bert.config import RELEASED, BertConfig
from official_bert.errors import InputError

CONFIG = BertConfig(**SIZES)


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_head_is_found_by_the_names_of_its_weights(head):
    names = weights.names_of_model(weights.shapes(CONFIG), head)
    known = head.name if head.scopes == ("output_",) else None
    assert weights.find_head(names, known, "here") == head


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["bert/a", "output_weights"], "^here.*--head: sequence_class"),
        (["cls/squad/output_bias", "cls/predictions/output_bias"], "one head"),
    ],
)
def test_unknown_or_second_head_is_an_error(names, message):
    with pytest.raises(InputError, match=message):
        weights.find_head(names, None, "here")


def test_shapes_are_those_of_a_released_model():
    """110,106,428 weights: BERT-Base with both pre-training heads."""
    shapes = weights.shapes(RELEASED["uncased_L-12_H-768_A-12"], 3)
    assert shapes["output_weights"] == (3, 768)
    pretraining = weights.names_of_model(shapes, HEADS["pretraining"])
    total = sum(math.prod(shapes[name]) for name in pretraining)
    assert total == 110_106_428
