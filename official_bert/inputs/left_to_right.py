"""What a model that reads from left to right learns from the same records.

Its text is whole, and each piece is to be guessed from those before it::

    record:  tokens: [CLS] the [MASK] sat [SEP]    guess: cat, at 2
    here:    tokens: [CLS] the cat    sat [SEP]    guess: the cat sat [SEP]
"""

from typing import Any

import tensorflow as tf


def to_next_pieces(batch: dict[str, Any]) -> dict[str, Any]:
    """Makes the next pieces of a batch what is to be guessed.

    They stand where masked pieces stand, so that model and loss are the same,
    but there are S - 1 of them rather than P: the position is that of the piece
    before, the weight 1 if both are of the same text.

    Args:
        batch: Features of `schemas.pretraining_schema` or, with several
            instances in a row, `schemas.packed_schema`: {name: Tensor}.

    Returns:
        The same, the text as it was before it was masked.
    """
    input_ids, mask = _whole_text(batch), batch["input_mask"]
    is_text = tf.logical_and(mask[:, 1:] > 0, mask[:, 1:] == mask[:, :-1])
    places = tf.range(mask.shape[1] - 1)
    return {
        **batch,
        "input_ids": input_ids,
        "masked_lm_positions": tf.zeros_like(input_ids[:, 1:]) + places,
        "masked_lm_ids": input_ids[:, 1:],
        "masked_lm_weights": tf.cast(is_text, tf.float32),
    }


def _whole_text(batch: dict[str, Any]) -> Any:
    """Puts masked pieces back; returns int [B, S]."""
    input_ids, positions = batch["input_ids"], batch["masked_lm_positions"]
    length = input_ids.shape[1]
    # What is no masked piece goes to a place behind, which is cut off.
    is_used = batch["masked_lm_weights"] > 0
    places = tf.where(is_used, positions, length)
    rows = tf.zeros_like(places) + tf.range(tf.shape(places)[0])[:, tf.newaxis]
    restored = tf.tensor_scatter_nd_update(
        tf.pad(input_ids, [[0, 0], [0, 1]]),
        tf.stack([rows, places], axis=-1),
        batch["masked_lm_ids"],
    )
    return restored[:, :length]
