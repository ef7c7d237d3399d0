"""All in memory and in one process, drawing as the 2018 release draws.

There is one random stream for all, so that every instance depends on those made
before it. `parallel` has none of this, and makes other instances.
"""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from official_bert import progress
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import (
    corpus,
    examples,
    instances,
    masking,
    output,
)
from official_bert.pretraining_data.array_masking import MaskArrays
from official_bert.pretraining_data.corpus import Corpus
from official_bert.pretraining_data.instances import Pair
from official_bert.pretraining_data.masking import Masks
from official_bert.pretraining_data.recipe import Recipe


class Instance(NamedTuple):
    """Two segments, or one, and what to mask in their sequence."""

    pair: Pair
    masks: Masks


def run(options: CreatePretrainingData, names: Sequence[str]) -> None:
    """Writes the instances of text files.

    Raises:
        InputError: Vocabulary or text cannot be used, or there is no room.
    """
    recipe = Recipe(options)
    recipe.check_vocabulary()
    text = read(recipe, names)
    rng = random.Random(options.random_seed)
    write(create_instances(text, recipe, rng), text, recipe)


def read(recipe: Recipe, names: Sequence[str]) -> Corpus:
    """Returns the tokenized text of files."""
    lines = progress.read_lines(names, "Reading text")
    text = corpus.in_memory(
        corpus.tokenize_block(recipe.tokenizer, block)
        for block in corpus.blocks_of_lines(lines)
    )
    corpus.require_text(text, names)
    return text


def create_instances(
    text: Corpus, recipe: Recipe, rng: random.Random
) -> list[Instance]:
    """Goes over the documents `dupe_factor` times, and shuffles the result.

    Args:
        text: The documents.
        recipe: Lengths and shares.
        rng: The random stream, which is moved on.
    """
    documents = [text.document(i).tolist() for i in range(text.num_documents)]
    rng.shuffle(documents)
    made: list[Instance] = []
    rounds = [*enumerate(documents)] * recipe.options.dupe_factor
    choose_masks = _MaskChooser(text, recipe, rng)
    for index, document in progress.bar(
        rounds, description="Making instances", unit="document"
    ):
        for pair in instances.document_pairs(
            document,
            index,
            len(documents),
            documents.__getitem__,
            recipe.options,
            rng,
        ):
            made.append(Instance(pair, choose_masks(pair)))
    rng.shuffle(made)
    return made


class _MaskChooser:
    """Chooses the masks of one pair after the other."""

    def __init__(self, text: Corpus, recipe: Recipe, rng: random.Random):
        self._options = recipe.options
        self._mask_id = recipe.vocabulary.mask
        self._piece_ids = recipe.vocabulary.ids.tolist()
        self._mix = recipe.mix
        self._continues = recipe.vocabulary.is_continuation[text.ids]
        self._rng = rng
        # The same objects for all pairs: making them takes time.
        places = range(recipe.options.max_seq_length)
        self._single_places = [(place,) for place in places]

    def __call__(self, pair: Pair) -> Masks:
        """Returns the masks of a pair."""
        options = self._options
        wanted = masking.num_to_predict(
            pair.num_tokens,
            options.masked_lm_prob,
            options.max_predictions_per_seq,
        )
        return masking.choose_masks(
            self._candidates(pair),
            wanted,
            self._mask_id,
            self._piece_ids,
            self._rng,
            self._mix,
        )

    def _candidates(self, pair: Pair) -> list[Sequence[int]]:
        """Returns the positions that are masked together."""
        end_a = 1 + pair.end_a - pair.start_a
        end_b = pair.num_tokens - 1
        places = self._single_places
        candidates: list[Sequence[int]] = [
            *places[1:end_a],
            *places[end_a + 1 : end_b],
        ]
        if not self._options.do_whole_word_mask:
            return candidates
        continues = [
            *self._continues[pair.start_a : pair.end_a].tolist(),
            *self._continues[pair.start_b : pair.end_b].tolist(),
        ]
        return masking.words([place for (place,) in candidates], continues)


def write(made: Sequence[Instance], text: Corpus, recipe: Recipe) -> None:
    """Writes record i to output file i modulo their number."""
    shown = progress.bar(made, description="Writing records", unit="instance")
    batches = _batches(shown, text, recipe)
    output.write(output.parts(batches, recipe.options), recipe.options)


def _batches(
    made: Iterable[Instance], text: Corpus, recipe: Recipe
) -> Iterator[examples.Columns]:
    """Yields the features of instances, some at a time."""
    remaining = iter(made)
    while batch := list(itertools.islice(remaining, output.ROWS_AT_ONCE)):
        pairs, masks = zip(*batch, strict=True)
        sequences = examples.make_sequences(
            text,
            np.array(pairs, np.int64),
            recipe.vocabulary,
            recipe.options.max_seq_length,
        )
        arrays = _arrays(masks, recipe.options.max_predictions_per_seq)
        yield examples.features(sequences, arrays)


def _arrays(masks: Sequence[Masks], max_predictions_per_seq: int) -> MaskArrays:
    counts = np.array([len(each.positions) for each in masks])
    is_used = np.arange(max_predictions_per_seq) < counts[:, np.newaxis]
    positions, replacements = np.zeros((2, *is_used.shape), np.int32)
    positions[is_used] = list(itertools.chain(*(m.positions for m in masks)))
    replacements[is_used] = list(
        itertools.chain(*(m.replacements for m in masks))
    )
    return MaskArrays(positions, replacements, counts)
