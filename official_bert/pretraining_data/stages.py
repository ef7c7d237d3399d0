"""From lines to records in three stages, each in any number of processes.

```
tokenize     lines -> pieces             the corpus, in files of a folder
make_pairs   documents, round -> pairs   scattered over buckets by their keys
encode       bucket -> records           in the order of their keys
```

Each document has a random stream of its own in each round, which also gives
each pair a key; its masks and its place in the output come from that. So no
instance depends on who made it, or along with which others.
"""

import array
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert.pretraining_data import (
    array_masking,
    corpus,
    examples,
    instances,
    output,
)
from official_bert.pretraining_data.corpus import Block, Corpus
from official_bert.pretraining_data.recipe import Recipe

# int64 [n, 6]: the fields of `instances.Pair`, and the pair's key.
KeyedPairs = npt.NDArray[np.int64]
NUM_FIELDS = 6
_KEY_BITS = 63

_PIECES_PER_WORK_ITEM = 2**16

# Their records, of some kilobytes each, are in memory together.
_INSTANCES_PER_BUCKET = 2**12


class WorkItem(NamedTuple):
    """Documents whose pairs are made together, in one round."""

    round: int
    first: int
    end: int


def tokenize(recipe: Recipe, lines: Sequence[str]) -> Block:
    """Cuts lines into pieces."""
    return corpus.tokenize_block(recipe.tokenizer, lines)


def work_items(recipe: Recipe) -> Iterator[WorkItem]:
    """Yields all that there is to make."""
    for number in range(recipe.options.dupe_factor):
        with corpus.stored(recipe.folder) as text:
            for first, end in text.parts(_PIECES_PER_WORK_ITEM):
                yield WorkItem(number, first, end)


def make_pairs(recipe: Recipe, item: WorkItem) -> KeyedPairs:
    """Returns the pairs of some documents."""
    options = recipe.options
    made = array.array("q")  # A list takes seven times as much.
    with corpus.stored(recipe.folder) as text:
        for index in range(item.first, item.end):
            rng = random.Random(f"{options.random_seed}/{item.round}/{index}")
            pairs = instances.document_pairs(
                text.document(index).tolist(),
                index,
                text.num_documents,
                text.document,
                options,
                rng,
            )
            for pair in pairs:
                made.extend((*pair, rng.getrandbits(_KEY_BITS)))
    return np.frombuffer(made, np.int64).reshape(-1, NUM_FIELDS)


def num_buckets(text: Corpus, recipe: Recipe) -> int:
    """Returns over how many buckets to scatter the pairs of a corpus.

    It is an estimate, and with many short instances too low a few times over.
    """
    # Where B is random, what it did not use of the document is read again.
    filled = 1.5 * text.num_pieces / (recipe.options.max_seq_length - 3)
    # Each takes one sentence at least.
    in_a_round = min(text.num_sentences, text.num_documents + filled)
    expected = recipe.options.dupe_factor * in_a_round
    return 1 + int(expected / _INSTANCES_PER_BUCKET)


def buckets_of(pairs: KeyedPairs, num_buckets: int) -> npt.NDArray[np.int64]:
    """Returns the bucket of each pair; keys rise from bucket to bucket."""
    highest = pairs[:, -1] >> (_KEY_BITS - 31)
    return highest * num_buckets >> 31


def encode(recipe: Recipe, pairs: KeyedPairs) -> list[output.Part]:
    """Returns the records of a bucket, whose pairs come in any order."""
    # Two pairs of one key would not come in the order of their workers.
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, -1]))]
    with corpus.stored(recipe.folder) as text:
        batches = (
            _masked(pairs[start : start + output.ROWS_AT_ONCE], text, recipe)
            for start in range(0, len(pairs), output.ROWS_AT_ONCE)
        )
        return list(output.parts(batches, recipe.options))


def _masked(
    pairs: KeyedPairs, text: Corpus, recipe: Recipe
) -> examples.Columns:
    """Returns the features of pairs."""
    options, vocabulary = recipe.options, recipe.vocabulary
    sequences = examples.make_sequences(
        text, pairs, vocabulary, options.max_seq_length
    )
    masks = array_masking.choose_masks(
        sequences.is_piece,
        vocabulary.is_continuation[sequences.input_ids]
        if options.do_whole_word_mask
        else None,
        array_masking.num_to_predict(
            sequences.num_tokens,
            options.masked_lm_prob,
            options.max_predictions_per_seq,
        ),
        options.max_predictions_per_seq,
        vocabulary.mask,
        vocabulary.ids,
        pairs[:, -1].astype(np.uint64),
        recipe.mix,
    )
    return examples.features(sequences, masks)
