"""KerasHub preset directories: backbone, tokenizer and masked LM.

KerasHub's own classes read and write them; weights are matched by name.
"""

import os
import warnings
from typing import Any

import numpy as np

from official_bert.config import BertConfig
from official_bert.errors import InputError, first_line, require_package
from official_bert.io import files, json_files
from official_bert.runs import file_names
from official_bert.sources.formats import Source
from official_bert.sources.formats.keras_hub import files as keras_hub_files
from official_bert.sources.formats.tf1 import checkpoint as tf1
from official_bert.sources.stored_model import Arrays, Description, Model, Names

_NAMES = Names(
    rules=[
        (r"^bert/embeddings/LayerNorm/", "embeddings_layer_norm/"),
        (r"^bert/embeddings/token_type_", "segment_embedding/"),
        (r"^bert/embeddings/word_", "token_embedding/"),
        (r"^bert/embeddings/position_", "position_embedding/"),
        (r"^bert/pooler/dense/", "pooled_dense/"),
        (r"^bert/encoder/layer_(\d+)/", r"transformer_layer_\1/"),
        (r"/attention/self/", "/self_attention_layer/"),
        (
            r"/attention/output/dense/",
            "/self_attention_layer/attention_output/",
        ),
        (r"/attention/output/LayerNorm/", "/self_attention_layer_norm/"),
        (r"/intermediate/dense/", "/feedforward_intermediate_dense/"),
        (r"/output/dense/", "/feedforward_output_dense/"),
        (r"/output/LayerNorm/", "/feedforward_layer_norm/"),
        (r"^cls/predictions/transform/", "mlm_head/intermediate_"),
        (r"_LayerNorm/", "_layer_norm/"),
        (r"^cls/predictions/", "mlm_head/"),
    ],
    splits_heads=True,
)


def describe(source: Source, config: BertConfig) -> Description:
    """Describes a preset; the head follows from the names of its weights."""
    return Description(config=config)


def open_arrays(directory: str, config: BertConfig) -> Arrays:
    """Loads a preset.

    Raises `InputError` if it is damaged or not a BERT preset, or if the package
    keras_hub is missing.
    """
    head = json_files.load(directory, file_names.TASK)
    if has_head := files.exists(head.path):
        keras_hub_files.require_class(head, "BertMaskedLM")
    require_package("keras_hub", directory)
    from keras_hub import models

    # KerasHub could read a relative path as the name of a published preset.
    preset = os.path.abspath(directory)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if has_head:
                model = models.BertMaskedLM.from_preset(
                    preset, preprocessor=None
                )
            else:
                model = models.BertBackbone.from_preset(preset)
    # For damaged files, Keras and h5py raise exceptions of many types.
    except Exception as error:
        raise InputError(
            f"{directory}: must be a complete preset that KerasHub can load. "
            f"It reports: {first_line(error)}"
        ) from error
    variables = tf1.by_name(model.weights)
    return Arrays(
        directory,
        {path: tuple(weight.shape) for path, weight in variables.items()},
        lambda path: np.asarray(variables[path]),
        _NAMES,
    )


def write(model: Model, directory: str) -> None:
    """Saves a preset.

    Raises `InputError` if KerasHub has no such model.
    """
    _require_counterpart(model)
    from keras_hub import models

    config = model.description.config
    # Keras warns about models that were never compiled.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = {
            theirs: getattr(config, ours)
            for ours, theirs in keras_hub_files.SIZES.items()
        }
        arguments["dropout"] = arguments["dropout"] or 0.0
        model_to_save = backbone = models.BertBackbone(**arguments)
        tokenizer = _make_tokenizer(model.description)
        if model.head.name == "masked_lm":
            preprocessor = tokenizer and models.BertMaskedLMPreprocessor(
                tokenizer, sequence_length=config.max_position_embeddings
            )
            model_to_save = models.BertMaskedLM(backbone, preprocessor)
        variables = tf1.by_name(model_to_save.weights)
        for name, array in model.to_format(_NAMES, model.shapes):
            variables[name].assign(array)
        model_to_save.save_to_preset(directory)
        if tokenizer and model_to_save is backbone:
            tokenizer.save_to_preset(directory)


def _require_counterpart(model: Model) -> None:
    if model.head.name not in ("encoder", "masked_lm"):
        # The other weights, under their names in the input.
        others = [
            stored
            for name, stored in model.stored.items()
            if not name.startswith(("bert/", "cls/predictions/"))
        ]
        raise InputError(
            "A KerasHub preset holds an encoder, with or without masked LM, "
            f"but this model has the head {model.head.name}. Leave it out with "
            f"--skip='^({'|'.join(others)})$'."
        )
    settings = model.description.settings
    if settings.added_tokens or not settings.tokenize_chinese_chars:
        raise InputError(
            "KerasHub's BERT tokenizer keeps no added tokens whole, and splits "
            "between Chinese characters. Received: a tokenizer with other "
            "settings. Choose another format."
        )
    config = model.description.config
    if (config.hidden_act or "").lower() != "gelu":
        raise InputError(
            "KerasHub's BERT models have `hidden_act` gelu. Received: "
            f"{config.hidden_act!r}. Choose another format."
        )
    if config.is_left_to_right:
        raise InputError(
            "KerasHub's BERT models are bidirectional. Received: a model with "
            "`is_left_to_right`. Export it with export_tfhub.py instead."
        )


def _make_tokenizer(description: Description) -> Any:
    if description.vocab is None:
        return None
    from keras_hub import models

    try:
        return models.BertTokenizer(
            vocabulary=description.tokens,
            lowercase=description.settings.is_uncased,
            # KerasHub's default keeps accents.
            strip_accents=description.settings.strips_accents,
        )
    except (RuntimeError, ValueError) as error:
        raise InputError(
            "KerasHub's tokenizer needs a vocabulary without duplicates that "
            "contains [PAD], [UNK], [CLS], [SEP] and [MASK]. It reports: "
            f"{first_line(error)}"
        ) from error
