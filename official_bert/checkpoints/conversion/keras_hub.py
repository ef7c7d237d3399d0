"""KerasHub's preset folders: backbone, tokenizer and masked LM.

Its own classes read and write them; arrays are matched by the names their
weights have.
"""

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import logging

from official_bert import json_files
from official_bert.checkpoints.conversion.keras_hub_names import place
from official_bert.checkpoints.conversion.model import (
    Described,
    Model,
    at_place,
)
from official_bert.checkpoints.names import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError

_BACKBONE = "BertBackbone"
_MASKED_LM = "BertMaskedLM"
_TOKENIZER = "BertTokenizer"


class Weights:
    """The arrays of a KerasHub model.

    Args:
        where: Its folder.
        model: A `BertBackbone` or `BertMaskedLM`.
    """

    def __init__(self, where: str, model: Any) -> None:
        self.where = where
        self.variables = {weight.path: weight for weight in model.weights}
        self.shapes: dict[str, Shape] = {
            path: tuple(weight.shape) for path, weight in self.variables.items()
        }

    def read(self, name: str) -> np.ndarray:
        """Returns one of them."""
        return np.asarray(self.variables[name])


def read(folder: str) -> tuple[Weights, Described]:
    """Loads a preset.

    Raises:
        InputError: It is damaged, or of another model than BERT.
    """
    kind = _kind(folder)
    import keras_nlp

    models = keras_nlp.models
    tokenizer_file = os.path.join(folder, "tokenizer.json")
    has_tokenizer = os.path.exists(tokenizer_file)
    if has_tokenizer and _class_in(tokenizer_file) != _TOKENIZER:
        raise InputError(
            f"{tokenizer_file}: must be of a {_TOKENIZER}. Received: "
            f"{_class_in(tokenizer_file)}."
        )
    # By its whole path: a bare name may be that of a published model.
    preset = os.path.abspath(folder)
    try:
        with _quiet():
            model = (
                models.BertMaskedLM.from_preset(preset, preprocessor=None)
                if kind == _MASKED_LM
                else models.BertBackbone.from_preset(preset)
            )
            tokenizer = (
                models.BertTokenizer.from_preset(preset)
                if has_tokenizer
                else None
            )
    # Whatever Keras makes of what is missing or wrong.
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise InputError(
            f"{folder}: must be a whole preset of KerasHub's {kind}. Received: "
            f"one that KerasHub cannot load ({_first_line(error)})."
        ) from error
    backbone = model.backbone if kind == _MASKED_LM else model
    if tokenizer and tokenizer.strip_accents != tokenizer.lowercase:
        logging.warning(
            "%s: its tokenizer has strip_accents=%s with lowercase=%s. Here "
            "accents are dropped if and only if words are lower-cased: other "
            "pieces.",
            folder,
            tokenizer.strip_accents,
            tokenizer.lowercase,
        )
    described = Described(
        config=_config(backbone),
        vocab=_vocab(tokenizer) if tokenizer else None,
        do_lower_case=bool(tokenizer.lowercase) if tokenizer else None,
    )
    return Weights(folder, model), described


def _kind(folder: str) -> str:
    found = _class_in(os.path.join(folder, "config.json"))
    if found != _BACKBONE:
        raise InputError(
            f"{folder}: must be a preset of {_BACKBONE}. Received: {found}. "
            "Other models cannot be converted."
        )
    if not os.path.exists(os.path.join(folder, "task.json")):
        return _BACKBONE
    found = _class_in(os.path.join(folder, "task.json"))
    if found != _MASKED_LM:
        raise InputError(
            f"{folder}: a preset must be of {_BACKBONE} or {_MASKED_LM}. "
            f"Received: {found}. Save its backbone alone: "
            "`model.backbone.save_to_preset(folder)`."
        )
    return _MASKED_LM


def _class_in(path: str) -> str:
    name = json_files.read_object(path).get("registered_name")
    return str(name).rpartition(">")[2]


def _config(backbone: Any) -> BertConfig:
    return BertConfig(
        vocab_size=backbone.vocabulary_size,
        hidden_size=backbone.hidden_dim,
        num_hidden_layers=backbone.num_layers,
        num_attention_heads=backbone.num_heads,
        intermediate_size=backbone.intermediate_dim,
        hidden_dropout_prob=backbone.dropout,
        attention_probs_dropout_prob=backbone.dropout,
        max_position_embeddings=backbone.max_sequence_length,
        type_vocab_size=backbone.num_segments,
    )


def _vocab(tokenizer: Any) -> str:
    return "".join(f"{piece}\n" for piece in tokenizer.get_vocabulary())


def write(model: Model, folder: str) -> None:
    """Saves a preset.

    Raises:
        InputError: KerasHub has no such model.
    """
    _check(model)
    import keras_nlp

    config = model.described.config
    with _quiet():
        backbone = keras_nlp.models.BertBackbone(
            vocabulary_size=config.vocab_size,
            num_layers=config.num_hidden_layers,
            num_heads=config.num_attention_heads,
            hidden_dim=config.hidden_size,
            intermediate_dim=config.intermediate_size,
            dropout=config.hidden_dropout_prob or 0.0,
            max_sequence_length=config.max_position_embeddings,
            num_segments=config.type_vocab_size,
        )
        tokenizer = _tokenizer(model.described)
        whole = backbone
        if model.head.name == "masked_lm":
            preprocessor = tokenizer and (
                keras_nlp.models.BertMaskedLMPreprocessor(
                    tokenizer,
                    sequence_length=config.max_position_embeddings,
                )
            )
            whole = keras_nlp.models.BertMaskedLM(backbone, preprocessor)
        _assign(model, Weights(folder, whole))
        whole.save_to_preset(folder)
        if tokenizer and whole is backbone:
            tokenizer.save_to_preset(folder)


def _check(model: Model) -> None:
    if model.head.name not in ("encoder", "masked_lm"):
        # Of what is not masked LM, as the input calls it.
        others = [
            place.name
            for name, place in model.places.items()
            if not name.startswith(("bert/", "cls/predictions/"))
        ]
        raise InputError(
            "A KerasHub preset holds an encoder, with or without masked LM. "
            f"Received: a model with the head {model.head.name}. Leave that "
            f"out with --skip='^({'|'.join(others)})$'."
        )
    config = model.described.config
    if (config.hidden_act or "").lower() != "gelu":
        raise InputError(
            "KerasHub's BERTs have `hidden_act` gelu. Received: "
            f"{config.hidden_act!r}, which it cannot hold."
        )
    if config.is_left_to_right:
        raise InputError(
            "KerasHub's BERTs read in both directions. Received: a model with "
            "`is_left_to_right`, which it cannot hold."
        )


def _tokenizer(described: Described) -> Any:
    if described.vocab is None:
        return None
    import keras_nlp

    lower = bool(described.do_lower_case)
    lines = described.vocab.removesuffix("\n").split("\n")
    try:
        return keras_nlp.models.BertTokenizer(
            vocabulary=[line.strip() for line in lines],
            lowercase=lower,
            # As the original does; by itself KerasHub keeps accents.
            strip_accents=lower,
        )
    except (RuntimeError, ValueError) as error:
        raise InputError(
            "KerasHub's tokenizer must have each piece once, and [PAD], [UNK], "
            "[CLS], [SEP] and [MASK]. Received: a vocabulary with which it "
            f"fails ({_first_line(error)})."
        ) from error


def _assign(model: Model, weights: Weights) -> None:
    config = model.described.config
    for name, shape in model.shapes.items():
        there = place(name, shape, config)
        weights.variables[there.name].assign(at_place(model.read(name), there))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps back Keras' remarks on models that were never compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
