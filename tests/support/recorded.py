"""The weights and data that the original implementation was recorded with.

Its weights were random, not trained, so that they need not be stored: each is
normal noise with a seed computed from its name.
"""

import dataclasses
import math
import pathlib
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.config import BertConfig

EXTRACT = pathlib.Path(__file__).parents[1] / "golden"

# A small model for other tests; nothing was recorded with it.
SMALL_CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=8,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=16,
    max_position_embeddings=16,
    type_vocab_size=2,
)

# The model of all recorded training runs, which had no dropout.
TRAINING_CONFIG = BertConfig(
    vocab_size=1000,
    hidden_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=128,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    max_position_embeddings=128,
    type_vocab_size=2,
)

# The model of golden/model.npz, whose weights have the seed 102.
RELU_CONFIG = BertConfig(
    vocab_size=513,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=6,
    intermediate_size=100,
    hidden_act="relu",
    max_position_embeddings=64,
    type_vocab_size=16,
)


def without_dropout(config: BertConfig) -> BertConfig:
    """Returns the config of the same model without dropout."""
    return dataclasses.replace(
        config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )


def read_config(folder: pathlib.Path) -> BertConfig:
    """Returns the config of a recorded model."""
    return BertConfig.from_json_file(str(folder / "bert_config.json"))


def weight_value(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Returns the float32 value of a weight in the recorded model."""
    seed = (zlib.crc32(name.encode()) + 1_000_003 * seed) % 2**31
    noise = np.random.RandomState(seed).standard_normal(shape)
    last = name.rsplit("/", 1)[-1]
    fixed = {"gamma": 0.25, "beta": 0.15, "bias": 0.1, "output_bias": 0.3}
    spread = {"word_embeddings": 1.6, "output_weights": 1.5}
    spread |= {"position_embeddings": 1.0, "token_type_embeddings": 1.0}
    if last in fixed:
        value = (last == "gamma") + fixed[last] * noise
    elif last in spread:
        value = spread[last] / math.sqrt(shape[-1]) * noise
    else:
        is_sharp = "/self/query/" in name or "/self/key/" in name
        value = (1.3 if is_sharp else 1.0) / math.sqrt(shape[0]) * noise
    return value.astype(np.float32)


def assign(model: Any, seed: int) -> Any:
    """Creates the weights of a model, assigns them and returns the model."""
    if not model.built:
        model.build()
    for weight in model.trainable_variables:
        weight.assign(weight_value(weight.path, tuple(weight.shape), seed))
    return model


def part(arrays: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Returns the arrays whose names start with `prefix`, without it."""
    names = [name for name in arrays if name.startswith(prefix)]
    return {name.removeprefix(prefix): arrays[name] for name in names}


def assert_all_close(found, expected, **limits):
    """Compares the arrays of {name: array} in `expected` with others."""
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, err_msg=name, **limits)


def decode(serialized: bytes) -> dict[str, list[Any]]:
    """Returns all features of one serialized `tf.train.Example`."""
    example = tf.train.Example.FromString(serialized)
    return {
        name: list(getattr(feature, feature.WhichOneof("kind")).value)
        for name, feature in example.features.feature.items()
    }
