"""Which weights a BERT has: their names of 2018 and shapes, heads included."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.options.convert_checkpoint import CLASSIFIERS

Shape = tuple[int, ...]


class Head(NamedTuple):
    """What a model has on top of the encoder.

    Attributes:
        name: As `--head` calls it.
        parts: What the names of its weights begin with.
        architecture: The class of transformers that has it.
        needs_pooler: Whether it reads the pooler, which that class then has.
    """

    name: str
    parts: tuple[str, ...]
    architecture: str
    needs_pooler: bool

    @property
    def is_of_task(self) -> bool:
        """Whether fine-tuning made it, so that a `task.json` describes it."""
        return any(map(is_of_task, self.parts))


_MASKED_LM = "cls/predictions/"
_NEXT_SENTENCE = "cls/seq_relationship/"
_SPANS = "cls/squad/"
_CLASSIFIER = "output_"

HEADS = (
    Head("encoder", (), "BertModel", False),
    Head(
        "pretraining",
        (_MASKED_LM, _NEXT_SENTENCE),
        "BertForPreTraining",
        True,
    ),
    Head("masked_lm", (_MASKED_LM,), "BertForMaskedLM", False),
    Head(
        "next_sentence",
        (_NEXT_SENTENCE,),
        "BertForNextSentencePrediction",
        True,
    ),
    Head(
        "sequence_classification",
        (_CLASSIFIER,),
        "BertForSequenceClassification",
        True,
    ),
    Head("multiple_choice", (_CLASSIFIER,), "BertForMultipleChoice", True),
    Head(
        "token_classification",
        (_CLASSIFIER,),
        "BertForTokenClassification",
        False,
    ),
    Head("question_answering", (_SPANS,), "BertForQuestionAnswering", False),
)

POOLER = "bert/pooler/dense/"


def is_of_task(name: str) -> bool:
    """Whether a weight of this name is of a head that fine-tuning made."""
    return name.startswith((_CLASSIFIER, _SPANS))


def shapes(config: BertConfig, num_classes: int = 2) -> dict[str, Shape]:
    """Returns {name: shape} of the encoder and of every head there is.

    Args:
        config: The model's sizes.
        num_classes: C, of the classifier's weights [C, H].
    """
    hidden, vocab_size = config.hidden_size, config.vocab_size or 0
    found: dict[str, Shape] = {}
    tables = {
        "word": vocab_size,
        "token_type": config.type_vocab_size,
        "position": config.max_position_embeddings,
    }
    for name, rows in tables.items():
        found[f"bert/embeddings/{name}_embeddings"] = (rows, hidden)
    found |= _norm("bert/embeddings", hidden)
    for number in range(config.num_hidden_layers):
        layer = f"bert/encoder/layer_{number}"
        found |= _layer(layer, hidden, config.intermediate_size)
    found |= _dense(POOLER.rstrip("/"), hidden, hidden)
    found |= _dense(f"{_MASKED_LM}transform/dense", hidden, hidden)
    found |= _norm(f"{_MASKED_LM}transform", hidden)
    found[f"{_MASKED_LM}output_bias"] = (vocab_size,)
    outputs = {_NEXT_SENTENCE: 2, _SPANS: 2, "": num_classes}
    for part, size in outputs.items():
        found[f"{part}output_weights"] = (size, hidden)
        found[f"{part}output_bias"] = (size,)
    return found


def _layer(layer: str, hidden: int, inner: int) -> dict[str, Shape]:
    found: dict[str, Shape] = {}
    for name in ("query", "key", "value"):
        found |= _dense(f"{layer}/attention/self/{name}", hidden, hidden)
    found |= _dense(f"{layer}/attention/output/dense", hidden, hidden)
    found |= _norm(f"{layer}/attention/output", hidden)
    found |= _dense(f"{layer}/intermediate/dense", hidden, inner)
    found |= _dense(f"{layer}/output/dense", inner, hidden)
    found |= _norm(f"{layer}/output", hidden)
    return found


def _dense(scope: str, size_in: int, size_out: int) -> dict[str, Shape]:
    return {
        f"{scope}/kernel": (size_in, size_out),
        f"{scope}/bias": (size_out,),
    }


def _norm(scope: str, size: int) -> dict[str, Shape]:
    return {f"{scope}/LayerNorm/{name}": (size,) for name in ("gamma", "beta")}


def of_head(every: Iterable[str], head: Head) -> list[str]:
    """Returns which of all names a model with this head has."""
    starts = ("bert/", *head.parts)
    return [name for name in every if name.startswith(starts)]


def find_head(found: Iterable[str], asked: str | None, where: str) -> Head:
    """Returns the head of a model by its names.

    Args:
        found: The names of its weights.
        asked: The `Head.name` of a classifier, if it is known.
        where: What to begin an error with.

    Raises:
        InputError: It has heads of several models, or it is not known what its
            classifier is for.
    """
    starts = (_MASKED_LM, _NEXT_SENTENCE, _SPANS, _CLASSIFIER)
    parts = {part for name in found for part in starts if name.startswith(part)}
    fitting = [head for head in HEADS if set(head.parts) == parts]
    if len(fitting) > 1:
        fitting = [head for head in fitting if head.name == asked]
    if fitting:
        return fitting[0]
    if parts == {_CLASSIFIER}:
        raise InputError(
            f"{where}: it must be known what its classifier, `output_weights`, "
            "is for. Received: no task.json or `architectures` that says it. "
            f"Give --head: {', '.join(CLASSIFIERS)}."
        )
    pattern = "|".join(f"^{re.escape(part)}" for part in sorted(parts))
    raise InputError(
        f"{where}: a model must have one head. Received: "
        f"{', '.join(sorted(parts))}. Leave all but one out; "
        f"--skip={pattern!r} leaves out all."
    )
