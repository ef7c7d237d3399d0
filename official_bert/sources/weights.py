"""Names and shapes of the weights in TF1 checkpoints, heads included."""

import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import InputError, listed
from official_bert.modeling.finetuning_models import (
    SequenceClassifier,
    SpanModel,
)
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.options.convert_checkpoint import CLASSIFIERS

Shape = tuple[int, ...]


class Head(NamedTuple):
    """The layers of a model above the encoder."""

    name: str  # The value of `--head`.
    scopes: tuple[str, ...]  # Prefixes of the names of its weights.
    architecture: str  # The transformers class with this head.
    needs_pooler: bool  # Whether that class has the pooler.


_MASKED_LM = "cls/predictions/"
_NEXT_SENTENCE = "cls/seq_relationship/"
_SPANS = "cls/squad/"
_OUTPUT = "output_"

HEADS = tuple(
    Head(name, scopes, f"BertFor{suffix}" if scopes else "BertModel", pools)
    for name, scopes, suffix, pools in [
        ("encoder", (), "", False),
        ("pretraining", (_MASKED_LM, _NEXT_SENTENCE), "PreTraining", True),
        ("masked_lm", (_MASKED_LM,), "MaskedLM", False),
        ("next_sentence", (_NEXT_SENTENCE,), "NextSentencePrediction", True),
        ("sequence_classification", (_OUTPUT,), "SequenceClassification", True),
        ("multiple_choice", (_OUTPUT,), "MultipleChoice", True),
        ("token_classification", (_OUTPUT,), "TokenClassification", False),
        ("question_answering", (_SPANS,), "QuestionAnswering", False),
    ]
)

POOLER = "bert/pooler/dense/"


def is_finetuned(name: str) -> bool:
    """Whether a weight of this name belongs to a fine-tuned head."""
    return name.startswith((_OUTPUT, _SPANS))


def shapes(config: BertConfig, num_classes: int = 2) -> Mapping[str, Shape]:
    """Returns {name: shape} of the encoder and of all heads.

    The classifier's `output_weights` have the shape [num_classes, H].
    """
    return _shapes(config.to_json_string(), num_classes)


@functools.lru_cache(maxsize=8)
def _shapes(config_json: str, num_classes: int) -> Mapping[str, Shape]:
    config = BertConfig.from_dict(json.loads(config_json))
    with tf.Graph().as_default():  # In a graph, variables hold no values.
        pretraining = PretrainingModel(config)
        bert = pretraining.bert
        models: list[Any] = [
            pretraining,
            SpanModel(config, bert=bert),
            SequenceClassifier(config, num_classes, bert=bert),
        ]
        return {
            weight.path: tuple(weight.shape)
            for model in models
            for weight in model.trainable_variables
        }


def names_of_model(names: Iterable[str], head: Head) -> list[str]:
    """Returns the names that a model with this head has."""
    return [name for name in names if name.startswith(("bert/", *head.scopes))]


def find_head(names: Iterable[str], classifier: str | None, where: str) -> Head:
    """Returns the head of a model with weights of these names.

    The names do not tell the types of classifiers apart: `classifier` is the
    `Head.name` of a classifier, or None if it is unknown. Messages start with
    `where`. Raises `InputError` if there are heads of several models, or a
    classifier of unknown type.
    """
    scopes = (_MASKED_LM, _NEXT_SENTENCE, _SPANS, _OUTPUT)
    present = {s for name in names for s in scopes if name.startswith(s)}
    candidates = [head for head in HEADS if set(head.scopes) == present]
    if len(candidates) > 1:
        candidates = [head for head in candidates if head.name == classifier]
    if candidates:
        return candidates[0]
    if present == {_OUTPUT}:
        raise InputError(
            f"{where}: the type of its classifier, `output_weights`, must be "
            "in task.json or in `architectures`. Otherwise, convert it with "
            "convert_checkpoint.py and one of these values of --head: "
            f"{', '.join(CLASSIFIERS)}."
        )
    pattern = "|".join(f"^{re.escape(scope)}" for scope in sorted(present))
    raise InputError(
        f"{where}: a model must have one head. Received: "
        f"{listed(sorted(present))}. Leave out the others with "
        f"convert_checkpoint.py --skip, or all heads with --skip={pattern!r}."
    )
