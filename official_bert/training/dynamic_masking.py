"""Dynamic masking: each batch is masked in its step, on the training device.

See section 4.1 of Liu et al., 2019 (RoBERTa). The tokens and their replacements
have the distribution of `pretraining_data.masking`, and depend only on a seed::

    word_starts    0   1   2   2   4   5   0       "##s" at 3 continues 2
    tokens       [CLS] the cat ##s sat .   [SEP]
    order              3   1   1   4   2           random, the same in a word
    masked             the [M] [M] sat .           2 tokens: the first word fits

Shapes are static and all operations compile with XLA, as TPUs require. Counts
are floats, because TensorFlow has few GPU kernels for integers.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from official_bert.inputs.schemas import Masking
from official_bert.pretraining_data.masking import ngram_probabilities

Batch = dict[str, Any]

_random = tf.random.stateless_uniform


def mask_batch(batch: Batch, masking: Masking, seed: Any) -> Batch:
    """Masks a batch of unmasked instances.

    Args:
        batch: {name: Tensor} of `unmasked_schema`, packed or not.
        masking: The masking settings of the records.
        seed: int Tensor [2]. The same seed gives the same masks. XLA, which has
            its own random number generator, gives other masks.

    Returns:
        The batch with masked `input_ids` and with `masked_lm_positions`,
        `masked_lm_ids` int32 [B, P] and `masked_lm_weights` float32 [B, P]. P
        is `max_predictions_per_seq`, or S if that is less.
    """
    input_ids = batch["input_ids"]
    shape = tf.shape(input_ids)
    length = input_ids.shape[1]
    seeds = tf.unstack(
        tf.random.experimental.stateless_split(seed, 4, "philox")
    )
    is_masked = _choose_tokens(batch, masking.max_ngram, seeds[:2])
    random_ids = _random(
        shape, seeds[3], maxval=masking.vocab_size, dtype=tf.int32
    )
    draw = _random(shape, seeds[2])  # Decides what replaces a token.
    is_random = draw >= 1 - masking.random_share
    replaced = tf.where(is_random, random_ids, input_ids)
    replaced = tf.where(draw < masking.mask_share, masking.mask_id, replaced)
    # The masked positions in ascending order: the first has the highest number.
    numbers = tf.where(is_masked, tf.range(float(length), 0, -1), 0.0)
    num_positions = min(masking.max_predictions_per_seq, length)
    numbers, positions = tf.math.top_k(numbers, num_positions)
    is_used = numbers > 0
    labels = tf.gather(input_ids, positions, batch_dims=1)
    return {
        **batch,
        "input_ids": tf.where(is_masked, replaced, input_ids),
        "masked_lm_positions": tf.where(is_used, positions, 0),
        "masked_lm_ids": tf.where(is_used, labels, 0),
        "masked_lm_weights": tf.cast(is_used, tf.float32),
    }


def _choose_tokens(batch: Batch, max_ngram: int, seeds: Any) -> Any:
    """Chooses the tokens to mask, bool [B, S].

    Words, or n-grams of words, are taken in random order while there is room.
    """
    word = batch["word_starts"]
    length = word.shape[1]
    is_maskable = word > 0
    is_start = is_maskable & (word == np.arange(length))
    group = word
    if max_ngram > 1:
        group = _number_ngrams(is_start, max_ngram, seeds[1])
    # The tokens of a group have the same random number, and follow each other
    # because the sort is stable.
    order = tf.gather(_random(tf.shape(word), seeds[0]), group, batch_dims=1)
    ranked = tf.argsort(tf.where(is_maskable, order, 1.0), stable=True)
    # The number of tokens of each token's word.
    row_start = tf.range(tf.shape(word)[0])[:, tf.newaxis] * length
    word_in_batch = word + row_start
    sizes = tf.math.unsorted_segment_sum(
        tf.cast(is_maskable, tf.float32), word_in_batch, tf.size(word)
    )
    size = tf.gather(sizes, word_in_batch)

    def in_order(values: Any) -> Any:
        return tf.gather(values, ranked, batch_dims=1)

    is_masked = _take_while_there_is_room(
        in_order(is_maskable),
        in_order(is_start),
        in_order(size),
        in_order(batch["input_mask"]),
        tf.cast(batch["num_to_predict"], tf.float32),
    )
    return tf.gather(is_masked, tf.argsort(ranked), batch_dims=1)


def _number_ngrams(is_start: Any, max_ngram: int, seed: Any) -> Any:
    """Returns the number of each token's n-gram of words, int32 [B, S].

    See `masking.divide_into_ngrams`. N-grams that cross packed instances are
    harmless: each instance chooses among its own tokens.
    """
    limits = np.cumsum(ngram_probabilities(max_ngram))[:-1]
    draw = _random(tf.shape(is_start), seed)[:, :, tf.newaxis]
    is_longer = tf.cast(draw >= limits.astype(np.float32), tf.float32)
    ends = tf.cumsum(1 + tf.reduce_sum(is_longer, -1), axis=1)
    word = tf.cumsum(tf.cast(is_start, tf.float32), axis=1) - 1
    return tf.searchsorted(ends, word, side="right")


def _take_while_there_is_room(
    is_maskable: Any, is_start: Any, size: Any, instance: Any, room: Any
) -> Any:
    """Takes words in the given order; skips words that do not fit.

    Of each token [B, S], `size` is the number of tokens of its word, and
    `instance` the number of its instance, from 1. `room` [B, K] is the number
    of tokens to mask in each instance. Returns which tokens are taken [B, S].
    """
    member = tf.one_hot(instance - 1, room.shape[1])  # [B, S, K]

    def room_of_token(room: Any) -> Any:
        return tf.reduce_sum(member * room[:, tf.newaxis], -1)

    def take(is_candidate: Any, is_taken: Any, room: Any) -> Any:
        """Takes the words before the first one that does not fit."""
        sizes = tf.where(is_candidate & is_start, size, 0.0)[:, :, tf.newaxis]
        end = tf.reduce_sum(member * tf.cumsum(member * sizes, 1), -1)
        fits = is_candidate & (end <= room_of_token(room))
        counts = tf.cast(fits, tf.float32)[:, :, tf.newaxis]
        room -= tf.reduce_sum(member * counts, 1)
        # Drops all words that no longer fit, so that there are few rounds.
        is_candidate &= ~fits & (size <= room_of_token(room))
        return is_candidate, is_taken | fits, room

    _, is_taken, _ = tf.while_loop(
        lambda is_candidate, *_: tf.reduce_any(is_candidate),
        take,
        (is_maskable, tf.zeros_like(is_maskable), room),
    )
    return is_taken
