"""Packs several short instances into one row, to reduce padding.

Two instances of 7 and 5 tokens, in a row of 14 positions with 3 predictions::

    input_ids:    [CLS] a a [SEP] b b [SEP] [CLS] c [SEP] d [SEP] 0 0
    segment_ids:    0   0 0   0   1 1   1     0   0   0   1   1   0 0
    input_mask:     1   1 1   1   1 1   1     2   2   2   2   2   0 0
    next_sentence_positions:  0 7 0
    next_sentence_weights:    1 1 0

In the model, tokens attend only to tokens with the same number in `input_mask`,
and position embeddings restart at 0 for each instance.
"""

import bisect
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from official_bert.inputs import schemas
from official_bert.options import CreatePretrainingData

# {feature: int or float32 [n, length]}
FeatureArrays = Mapping[str, npt.NDArray[Any]]

# The number of batches, of 512 instances each, that are packed together. On
# Wikipedia, eight leave 0.1% padding; more batches reduce this only slightly.
_BATCHES_PER_PACK = 8

# The remaining room for tokens and for predictions, and the instances.
_OpenRecord = tuple[int, int, tuple[int, ...]]


def best_fit(
    lengths: Sequence[int],
    counts: Sequence[int],
    options: CreatePretrainingData,
) -> list[list[int]]:
    """Puts each instance, longest first, into the fullest row where it fits.

    Instances have `lengths` tokens and `counts` masked tokens, which fit. The
    options have the capacity of a row: `max_seq_length`,
    `max_predictions_per_seq` and `max_sequences_per_row`. Returns the indices
    of the instances in each row, ascending. Rows are sorted by their first
    instances, so they are in random order if the instances are.
    """
    rows: list[_OpenRecord] = []  # Sorted, the fullest first.
    by_room = operator.itemgetter(0)
    empty = (options.max_seq_length, options.max_predictions_per_seq, ())
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        length, count = lengths[index], counts[index]
        row: _OpenRecord = empty
        first = bisect.bisect_left(rows, length, key=by_room)
        for place in range(first, len(rows)):
            _, room_for_predictions, members = rows[place]
            has_place = len(members) < options.max_sequences_per_row
            if has_place and room_for_predictions >= count:
                row = rows.pop(place)
                break
        room, room_for_predictions, members = row
        row = room - length, room_for_predictions - count, (*members, index)
        bisect.insort(rows, row, key=by_room)
    return sorted(sorted(members) for _, _, members in rows)


def pack_batches(
    batches: Iterable[FeatureArrays], options: CreatePretrainingData
) -> Iterator[FeatureArrays]:
    """Packs a few batches at a time, in bounded memory.

    All batches except the last must have the same size, which packed batches
    do not exceed.
    """
    remaining = iter(batches)
    while group := list(itertools.islice(remaining, _BATCHES_PER_PACK)):
        joined = {
            name: np.concatenate([batch[name] for batch in group])
            for name in group[0]
        }
        packed = pack(joined, options)
        size = len(group[0]["input_ids"])
        for start in range(0, len(packed["input_ids"]), size):
            yield {
                name: array[start : start + size]
                for name, array in packed.items()
            }


def pack(
    features: FeatureArrays, options: CreatePretrainingData
) -> FeatureArrays:
    """Turns features of instances into features of `packed_schema`."""
    is_masked = "masked_lm_weights" in features
    if is_masked:
        masked = np.count_nonzero(features["masked_lm_weights"], axis=1)
    else:
        masked = features["num_to_predict"][:, 0]
    counts = masked.tolist()
    lengths = np.count_nonzero(features["input_mask"], axis=1).tolist()
    rows = best_fit(lengths, counts, options)
    packed = {
        name: np.zeros((len(rows), f.length), "f4" if f.is_float else "i4")
        for name, f in schemas.record_schema(options, is_masked).items()
    }
    for row, members in enumerate(rows):
        start = first = 0  # The next token and prediction of the row.
        for place, member in enumerate(members):
            length, count = lengths[member], counts[member]
            instance = {name: features[name][member] for name in features}
            tokens = row, slice(start, start + length)
            packed["input_ids"][tokens] = instance["input_ids"][:length]
            packed["segment_ids"][tokens] = instance["segment_ids"][:length]
            packed["input_mask"][tokens] = place + 1
            if is_masked:
                predictions = row, slice(first, first + count)
                positions = instance["masked_lm_positions"][:count]
                labels = instance["masked_lm_ids"][:count]
                packed["masked_lm_positions"][predictions] = start + positions
                packed["masked_lm_ids"][predictions] = labels
                packed["masked_lm_weights"][predictions] = 1
            else:
                words = instance["word_starts"][:length]
                words = np.where(words > 0, start + words, 0)
                packed["word_starts"][tokens] = words
                packed["num_to_predict"][row, place] = count
            label = instance["next_sentence_labels"][0]
            packed["next_sentence_labels"][row, place] = label
            packed["next_sentence_positions"][row, place] = start
            packed["next_sentence_weights"][row, place] = 1
            start += length
            first += count
    return packed
