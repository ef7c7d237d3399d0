"""Pairs and masks to the features of records, many at once."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.pretraining_data.array_masking import MaskArrays
from official_bert.pretraining_data.corpus import Corpus, Ints
from official_bert.pretraining_data.masking import KEEP

Columns = Mapping[str, npt.NDArray[Any]]


class VocabularyIds(NamedTuple):
    """What a vocabulary's ids mean.

    Attributes:
        cls: The id of [CLS].
        sep: Of [SEP].
        mask: Of [MASK].
        ids: int32 [V], all ids, from which random pieces are taken.
        is_continuation: bool [largest id + 1], whether it starts with "##".
    """

    cls: int
    sep: int
    mask: int
    ids: Ints
    is_continuation: npt.NDArray[np.bool_]


def ids_of(vocab: Mapping[str, int]) -> VocabularyIds:
    """Returns what is needed of {piece: id}."""
    ids = np.fromiter(vocab.values(), np.int32, len(vocab))
    is_continuation = np.zeros(ids.max() + 1, np.bool_)
    is_continuation[ids] = [piece.startswith("##") for piece in vocab]
    return VocabularyIds(
        vocab["[CLS]"], vocab["[SEP]"], vocab["[MASK]"], ids, is_continuation
    )


class Sequences(NamedTuple):
    """n sequences `[CLS] a [SEP] b [SEP]` or `[CLS] a [SEP]`, before masking.

    Attributes:
        input_ids: int32 [n, S], zeros behind the end.
        is_piece: bool [n, S], true in a and b.
        num_tokens_a: int64 [n], the pieces of a.
        num_tokens: int64 [n], all of the sequence.
        is_random_next: bool [n], as in `instances.Pair`.
    """

    input_ids: Ints
    is_piece: npt.NDArray[np.bool_]
    num_tokens_a: npt.NDArray[np.int64]
    num_tokens: npt.NDArray[np.int64]
    is_random_next: npt.NDArray[np.bool_]


def make_sequences(
    corpus: Corpus,
    pairs: npt.NDArray[np.int64],
    vocabulary: VocabularyIds,
    max_seq_length: int,
) -> Sequences:
    """Returns the sequences of pairs.

    Args:
        corpus: What the pairs are spans of.
        pairs: [n, 5], the fields of `instances.Pair`; more are ignored.
        vocabulary: Gives [CLS] and [SEP].
        max_seq_length: S.
    """
    starts, ends = pairs[:, 0:4:2], pairs[:, 1:4:2]
    length_a, length_b = (ends - starts).T
    end_a = 1 + length_a
    end_b = end_a + np.where(length_b > 0, 1 + length_b, 0)
    places = np.arange(max_seq_length)
    is_piece = (places > 0) & (places < end_b[:, np.newaxis])
    is_piece &= places != end_a[:, np.newaxis]
    input_ids = np.zeros(is_piece.shape, np.int32)
    rows = np.arange(len(pairs))
    input_ids[:, 0] = vocabulary.cls
    input_ids[rows, end_a] = input_ids[rows, end_b] = vocabulary.sep
    input_ids[is_piece] = corpus.pieces(starts.ravel(), ends.ravel())
    return Sequences(
        input_ids, is_piece, length_a, end_b + 1, pairs[:, 4].astype(np.bool_)
    )


def features(sequences: Sequences, masks: MaskArrays) -> Columns:
    """Returns the features of masked sequences, each [n, length]."""
    rows = np.arange(len(sequences.input_ids))[:, np.newaxis]
    places = np.arange(sequences.input_ids.shape[1])
    slots = np.arange(masks.positions.shape[1])
    is_token = places < sequences.num_tokens[:, np.newaxis]
    is_prediction = slots < masks.counts[:, np.newaxis]
    labels = sequences.input_ids[rows, masks.positions] * is_prediction

    input_ids = sequences.input_ids.copy()
    is_replaced = is_prediction & (masks.replacements != KEEP)
    where = np.nonzero(is_replaced)
    input_ids[where[0], masks.positions[where]] = masks.replacements[where]
    is_b = places >= sequences.num_tokens_a[:, np.newaxis] + 2
    return {
        "input_ids": input_ids,
        "input_mask": is_token.astype(np.uint8),
        "segment_ids": (is_token & is_b).astype(np.uint8),
        "masked_lm_positions": masks.positions,
        "masked_lm_ids": labels,
        "masked_lm_weights": is_prediction.astype(np.float32),
        "next_sentence_labels": sequences.is_random_next[:, np.newaxis].astype(
            np.uint8
        ),
    }
