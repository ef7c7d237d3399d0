"""Names and shapes of the weights in TF1 checkpoints, heads included."""

import dataclasses
import functools
import itertools
import json
import re
from collections.abc import Iterable, Mapping

import tensorflow as tf

from official_bert.config import BertConfig
from official_bert.errors import InputError, listed
from official_bert.modeling.pretraining_model import PretrainingModel
from official_bert.sources import heads
from official_bert.sources.heads import HeadKind

Shape = tuple[int, ...]

POOLER = "bert/pooler/dense/"


def shapes(config: BertConfig, num_classes: int = 2) -> Mapping[str, Shape]:
    """Returns {name: shape} of the encoder and of all heads.

    The classifier's `output_weights` have the shape [num_classes, H].
    """
    spans = heads.KINDS["question_answering"]
    classifier = heads.KINDS["sequence_classification"]
    return {
        **_pretraining_shapes(config.to_json_string()),
        **spans.output_shapes(2, config.hidden_size),
        **classifier.output_shapes(num_classes, config.hidden_size),
    }


@functools.lru_cache(maxsize=8)
def _pretraining_shapes(config_json: str) -> Mapping[str, Shape]:
    config = BertConfig.from_dict(json.loads(config_json))
    # One layer has the names and shapes of all. Building those of BERT-Base
    # takes a second.
    num_layers = config.num_hidden_layers
    config = dataclasses.replace(config, num_hidden_layers=1)
    with tf.Graph().as_default():  # In a graph, variables hold no values.
        model = PretrainingModel(config)
    shapes: dict[str, Shape] = {}
    for is_layer, group in itertools.groupby(
        model.trainable_variables, lambda weight: "/layer_0/" in weight.path
    ):
        weights = [*group]
        for layer in range(num_layers if is_layer else 1):
            for weight in weights:
                name = weight.path.replace("/layer_0/", f"/layer_{layer}/")
                shapes[name] = tuple(weight.shape)
    return shapes


def names_of_model(names: Iterable[str], head: HeadKind) -> list[str]:
    """Returns the names that a model with this head has."""
    return [name for name in names if name.startswith(("bert/", *head.scopes))]


def find_head(
    names: Iterable[str], classifier: str | None, where: str
) -> HeadKind:
    """Returns the head of a model with weights of these names.

    The names do not tell the types of classifiers apart: `classifier` is the
    name of its kind, or None if it is unknown. Messages start with `where`.
    Raises `InputError` if there are heads of several models, or a classifier of
    unknown type.
    """
    present = {s for name in names for s in heads.SCOPES if name.startswith(s)}
    found = [h for h in heads.KINDS.values() if set(h.scopes) == present]
    if len(found) > 1:
        found = [head for head in found if head.name == classifier]
        if not found:
            raise InputError(
                f"{where}: the type of its classifier, `output_weights`, must "
                "be in task.json or in `architectures`. Otherwise, convert it "
                "with convert_checkpoint.py and one of these values of "
                f"--head: {', '.join(heads.CLASSIFIERS)}."
            )
    if found:
        return found[0]
    pattern = "|".join(f"^{re.escape(scope)}" for scope in sorted(present))
    raise InputError(
        f"{where}: a model must have one head. Received: "
        f"{listed(sorted(present))}. Leave out the others with "
        f"convert_checkpoint.py --skip, or all heads with --skip={pattern!r}."
    )
