"""The list of weights is that of the models themselves."""

import pytest
from support.conversions import HEADS
from support.transformers_process import SIZES

from official_bert.checkpoints import names
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.modeling import finetuning_models as finetuning
from official_bert.modeling.pretraining_model import PretrainingModel

CONFIG = BertConfig(**SIZES)


@pytest.mark.parametrize(
    ("head", "build"),
    [
        ("pretraining", lambda: PretrainingModel(CONFIG)),
        (
            "sequence_classification",
            lambda: finetuning.SequenceClassifier(CONFIG, 3),
        ),
        ("token_classification", lambda: finetuning.TokenClassifier(CONFIG, 3)),
        ("question_answering", lambda: finetuning.SpanModel(CONFIG)),
    ],
)
def test_names_and_shapes_are_the_models(head, build):
    every = names.shapes(CONFIG, num_classes=3)
    listed = {n: every[n] for n in names.of_head(every, HEADS[head])}
    weights = build().trainable_variables
    assert listed == {w.path: tuple(w.shape) for w in weights}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_the_head_is_found_by_its_names(head):
    listed = names.of_head(names.shapes(CONFIG), head)
    asked = head.name if head.parts == ("output_",) else None
    assert names.find_head(listed, asked, "here") == head


def test_a_classifier_must_be_known():
    listed = ["bert/a", "output_weights", "output_bias"]
    with pytest.raises(InputError, match=r"^here.*Give --head: sequence_class"):
        names.find_head(listed, None, "here")


def test_two_heads_are_refused():
    listed = ["cls/squad/output_bias", "cls/predictions/output_bias"]
    with pytest.raises(InputError, match="one head"):
        names.find_head(listed, None, "here")
