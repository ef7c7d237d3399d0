"""Text files to TFRecord files of masked instances.

`run` chooses between this process (the default), several processes
(`parallel.py`) and Apache Beam (`beam_pipeline.py`).

The default mode keeps everything in memory and draws all random numbers from
one stream, in the order of the original implementation. The other modes make
other instances.
"""

import itertools
import os
import random
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NoReturn

import numpy as np
from absl import logging

from official_bert import files, progress, signals
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import (
    corpus,
    instance_records,
    masking,
    parallel,
    segment_pairs,
)
from official_bert.pretraining_data.corpus import Corpus
from official_bert.pretraining_data.instance_packing import Columns
from official_bert.pretraining_data.instance_records import Settings
from official_bert.pretraining_data.masking import MaskArrays, Masks
from official_bert.pretraining_data.segment_pairs import Pair

Instance = tuple[Pair, Masks]


def run(options: CreatePretrainingData) -> None:
    """Writes the instances of `options.input_file` to `options.output_file`.

    Raises:
        InputError: Text, vocabulary or model do not fit the options, or the
            disk is full. The output files are then unchanged.
    """
    for name in options.output_files():
        files.make_directory(os.path.dirname(name) or ".")
    names = files.expand(options.input_file)
    logging.info("Reading %d input files: %s", len(names), ", ".join(names))
    # SIGTERM from a scheduler cleans up like Ctrl-C.
    with signals.temporary_handler(_exit, signal.SIGTERM):
        if options.runner:
            # Beam takes long to import and is an optional dependency.
            from official_bert.pretraining_data import beam_pipeline

            beam_pipeline.run(options, names)
        elif options.num_workers:
            parallel.run(options, names)
        else:
            _run_serially(options, names)


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)  # The exit status that a shell reports.


def _run_serially(options: CreatePretrainingData, names: Sequence[str]) -> None:
    settings = Settings(options)
    settings.check_vocabulary()
    text = read_corpus(settings, names)
    rng = random.Random(options.random_seed)
    instances = create_instances(text, settings, rng)
    shown = progress.bar(
        instances, description="Writing records", unit="instance"
    )
    batches = feature_batches(shown, text, settings)
    instance_records.write(instance_records.encode(batches, options), options)


def read_corpus(settings: Settings, names: Sequence[str]) -> Corpus:
    """Returns the tokenized text of files."""
    lines = progress.read_lines(names, "Reading text")
    text = corpus.in_memory(
        corpus.tokenize_block(settings.tokenizer, block)
        for block in corpus.blocks_of_lines(lines)
    )
    corpus.require_text(text, names)
    return text


def create_instances(
    text: Corpus, settings: Settings, rng: random.Random
) -> list[Instance]:
    """Makes the instances of all documents, `dupe_factor` times, shuffled."""
    documents = [text.document(i).tolist() for i in range(text.num_documents)]
    rng.shuffle(documents)
    instances: list[Instance] = []
    options = settings.options
    rounds = [*enumerate(documents)] * options.dupe_factor
    masker = _Masker(text, settings, rng)
    for index, document in progress.bar(
        rounds, description="Making instances", unit="document"
    ):
        pairs = segment_pairs.document_pairs(
            document, index, len(documents), documents.__getitem__, options, rng
        )
        instances += ((pair, masker.mask(pair)) for pair in pairs)
    rng.shuffle(instances)
    return instances


class _Masker:
    """Masks one pair after the other."""

    def __init__(self, text: Corpus, settings: Settings, rng: random.Random):
        options = settings.options
        self._masks_whole_words = options.do_whole_word_mask
        self._replacements = settings.replacements
        self._is_continuation = settings.is_continuation[text.ids]
        self._rng = rng
        # Both by position or length, since making them anew takes time.
        self._candidates = [(i,) for i in range(options.max_seq_length)]
        self._num_to_predict = masking.num_to_predict(
            np.arange(options.max_seq_length + 1),
            options.masked_lm_prob,
            options.max_predictions_per_seq,
        ).tolist()

    def mask(self, pair: Pair) -> Masks:
        end_a = 1 + pair.end_a - pair.start_a
        end_b = pair.num_tokens - 1
        candidates: list[Sequence[int]] = [
            *self._candidates[1:end_a],
            *self._candidates[end_a + 1 : end_b],
        ]
        if self._masks_whole_words:
            is_continuation = [
                *self._is_continuation[pair.start_a : pair.end_a].tolist(),
                *self._is_continuation[pair.start_b : pair.end_b].tolist(),
            ]
            candidates = masking.whole_words(
                [place for (place,) in candidates], is_continuation
            )
        return masking.mask_sequence(
            candidates,
            self._num_to_predict[pair.num_tokens],
            self._replacements,
            self._rng,
        )


def feature_batches(
    instances: Iterable[Instance], text: Corpus, settings: Settings
) -> Iterator[Columns]:
    """Yields the features of instances in batches."""
    remaining = iter(instances)
    size = instance_records.BATCH_SIZE
    while batch := list(itertools.islice(remaining, size)):
        pairs, masks = zip(*batch, strict=True)
        sequences = instance_records.make_sequences(
            text, np.array(pairs, np.int64), settings
        )
        arrays = _mask_arrays(masks, settings.options.max_predictions_per_seq)
        yield instance_records.make_features(sequences, arrays)


def _mask_arrays(
    masks: Sequence[Masks], max_predictions_per_seq: int
) -> MaskArrays:
    counts = np.array([len(each.positions) for each in masks])
    is_used = np.arange(max_predictions_per_seq) < counts[:, np.newaxis]
    padded = np.zeros((2, *is_used.shape), np.int32)
    for array, values in zip(padded, zip(*masks, strict=True), strict=True):
        array[is_used] = list(itertools.chain(*values))
    return MaskArrays(padded[0], padded[1], counts)
