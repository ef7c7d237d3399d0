"""KerasHub preset directories: backbone, tokenizer and masked LM.

KerasHub's own classes read and write them; weights are matched by name. Its
attention kernels have separate axes for heads and their size, [H, A, D] and
[A, D, H], with the values in the same order.
"""

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from absl import logging

from official_bert import json_files
from official_bert.checkpoints.conversion.model import (
    Description,
    Model,
    Place,
    match,
    rename,
    to_place,
)
from official_bert.checkpoints.weights import Shape
from official_bert.config import BertConfig
from official_bert.errors import InputError

_BACKBONE = "BertBackbone"
_MASKED_LM = "BertMaskedLM"
_TOKENIZER = "BertTokenizer"

# Applied to a TF1 name, one after the other.
_RULES = [
    (r"^bert/embeddings/LayerNorm/", "embeddings_layer_norm/"),
    (r"^bert/embeddings/token_type_", "segment_embedding/"),
    (r"^bert/embeddings/word_", "token_embedding/"),
    (r"^bert/embeddings/position_", "position_embedding/"),
    (r"^bert/pooler/dense/", "pooled_dense/"),
    (r"^bert/encoder/layer_(\d+)/", r"transformer_layer_\1/"),
    (r"/attention/self/", "/self_attention_layer/"),
    (r"/attention/output/dense/", "/self_attention_layer/attention_output/"),
    (r"/attention/output/LayerNorm/", "/self_attention_layer_norm/"),
    (r"/intermediate/dense/", "/feedforward_intermediate_dense/"),
    (r"/output/dense/", "/feedforward_output_dense/"),
    (r"/output/LayerNorm/", "/feedforward_layer_norm/"),
    (r"^cls/predictions/transform/dense/", "mlm_head/intermediate_dense/"),
    (
        r"^cls/predictions/transform/LayerNorm/",
        "mlm_head/intermediate_layer_norm/",
    ),
    (r"^cls/predictions/", "mlm_head/"),
]

# BertConfig field -> argument and attribute of BertBackbone.
_CONFIG = {
    "vocab_size": "vocabulary_size",
    "hidden_size": "hidden_dim",
    "num_hidden_layers": "num_layers",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
    "hidden_dropout_prob": "dropout",
    "max_position_embeddings": "max_sequence_length",
    "type_vocab_size": "num_segments",
}


def get_place(name: str, shape: Shape, config: BertConfig) -> Place:
    """Returns the place of a TF1 weight in a KerasHub model."""
    return Place(rename(name, _RULES), shape_by_heads(name, shape, config))


def shape_by_heads(name: str, shape: Shape, config: BertConfig) -> Shape:
    """Returns a shape whose attention axes are split into [A, D]."""
    heads = config.num_attention_heads
    size = config.hidden_size // heads
    if "/attention/self/" in name:
        return (*shape[:-1], heads, size)
    if name.endswith("/attention/output/dense/kernel"):
        return (heads, size, shape[-1])
    return shape


class _Weights:
    """The weights of a KerasHub model in a preset directory."""

    def __init__(self, where: str, model: Any) -> None:
        self.where = where
        self.variables = {weight.path: weight for weight in model.weights}
        self.shapes: dict[str, Shape] = {
            path: tuple(weight.shape) for path, weight in self.variables.items()
        }

    def read(self, name: str) -> np.ndarray:
        """Returns one array."""
        return np.asarray(self.variables[name])


def open_model(directory: str, skip: str | None = None) -> Model:
    """Loads a preset.

    Raises:
        InputError: It is damaged, or not a BERT preset.
    """
    kind = _preset_class(directory)
    import keras_nlp

    models = keras_nlp.models
    tokenizer_file = os.path.join(directory, "tokenizer.json")
    has_tokenizer = os.path.exists(tokenizer_file)
    if has_tokenizer and _class_in(tokenizer_file) != _TOKENIZER:
        raise InputError(
            f"{tokenizer_file}: must be a {_TOKENIZER}. Received: "
            f"{_class_in(tokenizer_file)}."
        )
    # An absolute path: a bare name could be that of a published preset.
    preset = os.path.abspath(directory)
    try:
        with _no_warnings():
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
    # Whatever Keras raises for missing or damaged files.
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise InputError(
            f"{directory}: must be a complete KerasHub preset of {kind}, which "
            f"KerasHub can load. It reports: {_first_line(error)}"
        ) from error
    backbone = model.backbone if kind == _MASKED_LM else model
    if tokenizer and tokenizer.strip_accents != tokenizer.lowercase:
        logging.warning(
            "%s: its tokenizer has strip_accents=%s with lowercase=%s. Here "
            "accents are stripped if and only if text is lower-cased: other "
            "tokens.",
            directory,
            tokenizer.strip_accents,
            tokenizer.lowercase,
        )
    config = {ours: getattr(backbone, name) for ours, name in _CONFIG.items()}
    description = Description(
        config=BertConfig(
            **config, attention_probs_dropout_prob=backbone.dropout
        ),
        vocab="".join(f"{token}\n" for token in tokenizer.get_vocabulary())
        if tokenizer
        else None,
        do_lower_case=bool(tokenizer.lowercase) if tokenizer else None,
    )
    return match(_Weights(directory, model), description, get_place, skip=skip)


def _preset_class(directory: str) -> str:
    found = _class_in(os.path.join(directory, "config.json"))
    if found != _BACKBONE:
        raise InputError(
            f"{directory}: must be a preset of {_BACKBONE}. Received: {found}. "
            "Other models cannot be converted."
        )
    if not os.path.exists(os.path.join(directory, "task.json")):
        return _BACKBONE
    found = _class_in(os.path.join(directory, "task.json"))
    if found != _MASKED_LM:
        raise InputError(
            f"{directory}: must be a preset of {_BACKBONE} or {_MASKED_LM}. "
            f"Received: {found}. Save its backbone alone: "
            "`model.backbone.save_to_preset(directory)`."
        )
    return _MASKED_LM


def _class_in(path: str) -> str:
    name = json_files.read_object(path).get("registered_name")
    return str(name).rpartition(">")[2]


def write(model: Model, directory: str) -> None:
    """Saves a preset.

    Raises:
        InputError: KerasHub has no such model.
    """
    _check(model)
    import keras_nlp

    config = model.description.config
    with _no_warnings():
        arguments = {n: getattr(config, ours) for ours, n in _CONFIG.items()}
        arguments["dropout"] = arguments["dropout"] or 0.0
        backbone = keras_nlp.models.BertBackbone(**arguments)
        tokenizer = _make_tokenizer(model.description)
        whole = backbone
        if model.head.name == "masked_lm":
            preprocessor = tokenizer and (
                keras_nlp.models.BertMaskedLMPreprocessor(
                    tokenizer,
                    sequence_length=config.max_position_embeddings,
                )
            )
            whole = keras_nlp.models.BertMaskedLM(backbone, preprocessor)
        variables = _Weights(directory, whole).variables
        for name, shape in model.shapes.items():
            place = get_place(name, shape, config)
            variables[place.name].assign(to_place(model.read(name), place))
        whole.save_to_preset(directory)
        if tokenizer and whole is backbone:
            tokenizer.save_to_preset(directory)


def _check(model: Model) -> None:
    if model.head.name not in ("encoder", "masked_lm"):
        # The other weights, under their names in the input.
        others = [
            place.name
            for name, place in model.places.items()
            if not name.startswith(("bert/", "cls/predictions/"))
        ]
        raise InputError(
            "A KerasHub preset holds an encoder, with or without masked LM, "
            f"but this model has the head {model.head.name}. Leave it out with "
            f"--skip='^({'|'.join(others)})$'."
        )
    config = model.description.config
    if (config.hidden_act or "").lower() != "gelu":
        raise InputError(
            "KerasHub's BERT models have `hidden_act` gelu. Received: "
            f"{config.hidden_act!r}."
        )
    if config.is_left_to_right:
        raise InputError(
            "KerasHub's BERT models are bidirectional. Received: a model with "
            "`is_left_to_right`."
        )


def _make_tokenizer(description: Description) -> Any:
    if description.vocab is None:
        return None
    import keras_nlp

    lower = bool(description.do_lower_case)
    lines = description.vocab.removesuffix("\n").split("\n")
    try:
        return keras_nlp.models.BertTokenizer(
            vocabulary=[line.strip() for line in lines],
            lowercase=lower,
            # As in the original; KerasHub's default keeps accents.
            strip_accents=lower,
        )
    except (RuntimeError, ValueError) as error:
        raise InputError(
            "KerasHub's tokenizer needs each token once, and [PAD], [UNK], "
            "[CLS], [SEP] and [MASK]. With this vocabulary it reports: "
            f"{_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    """Suppresses Keras' warnings about models that were never compiled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
