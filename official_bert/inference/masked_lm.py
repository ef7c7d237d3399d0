"""Filling in the blanks of a text: what masked LM learned."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from official_bert.checkpoints import loading, numbered
from official_bert.config import BertConfig
from official_bert.errors import InputError
from official_bert.inputs import features
from official_bert.modeling.pretraining import PretrainingModel
from official_bert.tokenization import FullTokenizer


class Guess(NamedTuple):
    """A word piece, and how likely the model finds it.

    Attributes:
        piece: As it stands in the vocabulary.
        probability: Over the whole vocabulary, from 0 to 1.
    """

    piece: str
    probability: float


def fill(
    model: PretrainingModel,
    tokenizer: FullTokenizer,
    text: str,
    num_guesses: int = 5,
) -> list[list[Guess]]:
    """Guesses what belongs in place of every [MASK] of a text.

    Args:
        model: With its masked-LM head.
        tokenizer: Made with `never_split=("[MASK]",)`.
        text: One segment, such as "The [MASK] sat on the mat."
        num_guesses: How many guesses to return for each.

    Returns:
        For each [MASK] in turn, the likeliest pieces, best first.

    Raises:
        InputError: The text has no [MASK], or is too long for the model.
    """
    tokens = features.pack(tokenizer.tokenize(text))
    positions = [i for i, token in enumerate(tokens) if token == "[MASK]"]
    if not positions:
        raise InputError(f"The text must hold a [MASK]. Received: {text!r}.")
    model.config.require_length(len(tokens))
    batch = {
        "input_ids": tf.constant([tokenizer.convert_tokens_to_ids(tokens)]),
        "input_mask": tf.ones([1, len(tokens)], tf.int32),
        "segment_ids": tf.zeros([1, len(tokens)], tf.int32),
        "masked_lm_positions": tf.constant([positions]),
    }
    logits = model(batch).masked_lm_logits[0]  # [P, V]
    # A model may have more rows than the vocabulary has pieces.
    logits = logits[:, : len(tokenizer.vocab)]
    probabilities = tf.nn.softmax(logits).numpy()
    return [_best(row, tokenizer, num_guesses) for row in probabilities]


def _best(
    probabilities: Sequence[float], tokenizer: FullTokenizer, number: int
) -> list[Guess]:
    ids = np.argsort(probabilities)[::-1][:number].tolist()
    pieces = tokenizer.convert_ids_to_tokens(ids)
    return [
        Guess(piece, float(probabilities[i]))
        for piece, i in zip(pieces, ids, strict=True)
    ]


def load(
    folder: str, *, do_lower_case: bool
) -> tuple[PretrainingModel, FullTokenizer]:
    """Returns the newest model in an output folder of `run_pretraining.py`.

    Args:
        folder: Which holds `vocab.txt`, as `--vocab_file` makes it.
        do_lower_case: Whether the model is uncased.

    Returns:
        The model, and a tokenizer that keeps [MASK] whole.

    Raises:
        InputError: Something that is needed is not there.
    """
    tokenizer = FullTokenizer(
        os.path.join(folder, "vocab.txt"),
        do_lower_case=do_lower_case,
        never_split=("[MASK]",),
    )
    prefix = numbered.latest(folder)
    if prefix is None:
        raise InputError(f"{folder}: must hold a checkpoint. Received: none.")
    config = BertConfig.from_json_file(os.path.join(folder, "bert_config.json"))
    model = PretrainingModel(config)
    loading.load(
        loading.by_name(model.trainable_variables),
        prefix,
        may_skip=loading.OPTIMIZER_STATE,
    )
    return model, tokenizer
