"""Models with other weights or tokens, before they are converted.

The weights of the original model are read, and changed, on demand.
"""

import dataclasses
import os

import numpy as np
import safetensors.numpy
from absl import logging

from official_bert.errors import InputError, listed
from official_bert.io import files
from official_bert.runs import file_names
from official_bert.runs.directory import RunDirectory
from official_bert.sources import loading
from official_bert.sources.embedding_settings import Dense
from official_bert.sources.formats.tf1 import weights as tf1_weights
from official_bert.sources.stored_model import Model
from official_bert.tasks.sentence_vectors import dense_arrays
from official_bert.tokenization import BasicTokenizer, WordpieceTokenizer
from official_bert.tokenization.settings import AddedToken, TokenizerSettings

# The weights with a row or a value for each token.
_PER_TOKEN = ("bert/embeddings/word_embeddings", "cls/predictions/output_bias")


def averaged(model: Model, directory: str, count: int) -> Model:
    """Returns a model with the mean weights of a run's newest checkpoints.

    This makes the result depend less on the last steps (Vaswani et al., 2017,
    section 6.1). Raises `InputError` if there are fewer than `count`, or their
    weights have different shapes.
    """
    names = RunDirectory(directory).checkpoint_names()
    untrained = file_names.checkpoint(0)
    names = [name for name in names if name != untrained][-count:]
    if len(names) < count:
        raise InputError(
            f"--average_checkpoints={count} needs a run directory with "
            f"{count} checkpoints of trained steps. Received: "
            f"{listed(names) or 'none'} in {directory}. Train with a lower "
            f"--save_checkpoints_steps, and with --keep_checkpoint_max={count} "
            "or more."
        )
    logging.info(f"The mean of {listed(names)}")
    checkpoints = [
        tf1_weights.open_prefix(os.path.join(directory, name)) for name in names
    ]
    for name in model.stored.values():
        if len({c.shapes.get(name) for c in checkpoints}) > 1:
            raise InputError(
                f"{directory}: the checkpoints must be of the same model. "
                f"Received: {name} is missing in one, or has another shape."
            )

    def average(stored: str) -> np.ndarray:
        weights = np.stack([c.read(stored) for c in checkpoints])
        return weights.mean(axis=0, dtype=np.float64).astype(np.float32)

    def change(name: str, weight: np.ndarray) -> np.ndarray:
        is_new = name not in model.stored  # Newly initialized.
        return weight if is_new else average(model.stored[name])

    embedding = loading.read_embedding(directory, average)
    return model.describe(embedding=embedding).with_changes(change)


def with_added_tokens(model: Model, path: str) -> Model:
    """Returns a model with the new tokens in a file, one per line.

    The weights of a new token are the means over the tokens of its text. A word
    becomes an ordinary token, in its normalized form; others, such as "[E1]"
    and "covid-19", become added tokens. Raises `InputError` if a token cannot
    be added.
    """
    description = model.description
    if description.vocab is None:
        raise InputError(f"{model.arrays.where} has no vocabulary to extend.")
    tokens, settings = description.tokens, description.settings
    ids = {token: number for number, token in enumerate(tokens)}
    basic = BasicTokenizer(settings=settings)
    wordpiece = WordpieceTokenizer(ids)
    # {new token: ids of the tokens that its text has today}
    parts: dict[str, list[int]] = {}
    added: dict[str, AddedToken] = {}
    for line in filter(None, map(str.strip, files.read_lines(path))):
        words = basic.tokenize(line)
        ignores_case = _ignores_case(line, settings)
        token = line.lower() if ignores_case else line
        token = words[0] if len(words) == 1 else token
        is_one = words and token.split() == [token]
        if not is_one or token in ids or token.startswith("##"):
            raise InputError(
                f"{path}: must have one word or marker that the vocabulary "
                f"lacks on each line. Received: {line!r}. Remove it. To keep "
                "tokens of the vocabulary whole, use --never_split."
            )
        text = " ".join(words)
        parts[token] = [ids[part] for part in wordpiece.tokenize(text)]
        if len(words) > 1 or settings.num_wordpieces:
            added[token] = AddedToken(
                token, normalized=ignores_case, special=not ignores_case
            )
    all_added = (*settings.added_tokens, *added.values())
    settings = dataclasses.replace(settings, added_tokens=all_added)
    count = len(tokens) + len(parts)
    size = max(count, description.config.vocab_size)

    def extend(name: str, weight: np.ndarray) -> np.ndarray:
        if name not in _PER_TOKEN:
            return weight
        rows = [weight[part].mean(axis=0) for part in parts.values()]
        return np.concatenate([weight[: len(tokens)], rows, weight[count:]])

    shapes = {
        name: (size, *shape[1:]) if name in _PER_TOKEN else shape
        for name, shape in model.shapes.items()
    }
    model = model.describe(
        config=dataclasses.replace(description.config, vocab_size=size),
        vocab="".join(f"{token}\n" for token in (*tokens, *parts)),
        settings=settings,
    )
    return dataclasses.replace(model, shapes=shapes).with_changes(extend)


def _ignores_case(token: str, settings: TokenizerSettings) -> bool:
    """Whether a new token is found in any case, as covid-19 in COVID-19."""
    is_word = token[0].isalnum() or token[-1].isalnum()
    return settings.is_uncased and is_word and token.lower() != token.upper()


def with_repeated_positions(model: Model, period: int) -> Model:
    """Returns a model that repeats the first `period` position embeddings.

    Longformer is initialized in this way (Beltagy et al., 2020, section 5):
    attention to neighbors then also works at positions that were not trained.
    Raises `InputError` if the model has fewer positions.
    """
    positions = model.description.config.max_position_embeddings
    if period > positions:
        raise InputError(
            f"--repeat_positions={period} exceeds the {positions} positions of "
            f"{model.arrays.where}. Use the length at which it was trained."
        )

    def repeat(name: str, weight: np.ndarray) -> np.ndarray:
        if name != "bert/embeddings/position_embeddings":
            return weight
        return weight[np.arange(positions) % period]

    return model.with_changes(repeat)


def with_raw_targets(model: Model) -> Model:
    """Folds the target scale into the output layer.

    Other libraries do not know `target_mean` and `target_deviation`.
    """
    task = dict(model.description.task or {})
    mean = task.pop("target_mean", 0.0)
    deviation = task.pop("target_deviation", 1.0)
    if (mean, deviation) == (0.0, 1.0):
        return model

    def scale(name: str, weight: np.ndarray) -> np.ndarray:
        if name == "output_bias":
            return weight * deviation + mean
        return weight * deviation if name == "output_weights" else weight

    return model.describe(task=task).with_changes(scale)


def rounded(model: Model, dtype: str) -> Model:
    """Returns a model whose weights are rounded to a type.

    Reading raises `InputError` if the type cannot hold a weight.
    """

    def nearest(name: str, weight: np.ndarray) -> np.ndarray:
        try:
            with np.errstate(over="raise"):
                return weight.astype(dtype)
        except FloatingPointError as error:
            raise InputError(
                f"{model.arrays.where}: {name} has values up to "
                f"{np.abs(weight).max():g}, which {dtype} cannot hold. Omit "
                f"--dtype={dtype}."
            ) from error

    def round_dense(layer: Dense) -> Dense:
        arrays = dense_arrays(layer).items()
        rounded = {name: nearest(name, array) for name, array in arrays}
        weights = safetensors.numpy.save(rounded)
        return dataclasses.replace(layer, weights=weights)

    rounded = model.with_changes(
        lambda name, weight: nearest(model.stored[name], weight).astype("f")
    )
    if embedding := model.description.embedding:
        dense = tuple(map(round_dense, embedding.dense))
        embedding = dataclasses.replace(embedding, dense=dense)
        rounded = rounded.describe(embedding=embedding)
    return dataclasses.replace(rounded, dtype=dtype)
