"""Converts text files to TFRecord files of masked instances.

`run` chooses between this process (the default), several processes
(`parallel.py`) and Apache Beam (`beam_pipeline.py`).

The default mode keeps everything in memory and draws all random numbers from
one stream, in the order of the original implementation. The other modes create
different instances.
"""

import itertools
import os
import random
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from absl import logging

from official_bert.errors import listed
from official_bert.io import files, progress, signals, tables
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import (
    corpus,
    instance_records,
    masking,
    parallel,
    segment_pairs,
    sentences,
)
from official_bert.pretraining_data.corpus import Corpus
from official_bert.pretraining_data.instance_packing import FeatureArrays
from official_bert.pretraining_data.job import Job
from official_bert.pretraining_data.segment_pairs import Pair
from official_bert.pretraining_data.sentences import Summary


class Instance(NamedTuple):
    """A pair and its masked tokens. With --masking=dynamic, there are none."""

    pair: Pair
    positions: list[int]
    replacements: list[int]  # Ids, or `masking.KEEP`.


def run(options: CreatePretrainingData) -> None:
    """Writes the instances of `options.input_file` to `options.output_file`.

    Raises `InputError` if the text, the vocabulary or the config does not fit
    the options, or if the disk is full. The output files are then unchanged.
    """
    for name in options.output_files():
        files.make_directory(os.path.dirname(name) or ".")
    names = files.expand(options.input_file)
    logging.info(f"Reading {listed(names)}")
    sample = tables.warn_of_lines(names)
    job = Job(options)
    job.check_vocabulary()
    sentences.check_sample(sample, job)
    # SIGTERM, for example from a scheduler, cleans up like Ctrl-C.
    with signals.temporary_handler(_exit, signal.SIGTERM):
        if options.runner:
            # Beam takes long to import and is an optional dependency.
            from official_bert.pretraining_data import beam_pipeline

            beam_pipeline.run(job, names)
        elif options.num_workers:
            parallel.run(job, names)
        else:
            _run_serially(job, names)


def _exit(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)  # The exit status that a shell reports.


def _run_serially(job: Job, names: Sequence[str]) -> None:
    text, summary = read_corpus(job, names)
    rng = random.Random(job.options.random_seed)
    instances = create_instances(text, job, rng)
    with_bar = progress.bar(
        instances, description="Writing records", unit=" instances"
    )
    batches = feature_batches(with_bar, text, job)
    records = instance_records.encode(batches, job)
    instance_records.write(records, job, summary)


def read_corpus(job: Job, names: Sequence[str]) -> tuple[Corpus, Summary]:
    """Returns the tokenized text of files."""
    lines = sentences.read_lines(names, job.options)
    text = corpus.in_memory(
        corpus.tokenize(job, block) for block in corpus.blocks_of_lines(lines)
    )
    summary = sentences.summarize(text, job)
    sentences.report(summary, names, job)
    return text, summary


def create_instances(
    text: Corpus, job: Job, rng: random.Random
) -> list[Instance]:
    """Makes the instances of all documents, `dupe_factor` times, shuffled."""
    documents = [document.tolist() for document in text]
    rng.shuffle(documents)
    instances: list[Instance] = []
    options = job.options
    rounds = [*enumerate(documents)] * options.dupe_factor
    num_to_predict = job.num_to_predict.tolist()
    is_continuation: list[bool] = []
    if options.do_whole_word_mask:
        is_continuation = job.is_continuation[text.ids].tolist()
    for index, document in progress.bar(
        rounds, description="Making instances", unit=" documents"
    ):
        for pair in segment_pairs.document_pairs(
            document, index, len(documents), options, rng
        ):
            if not isinstance(pair, Pair):
                pair = segment_pairs.add_random_segment(
                    pair, documents, options, rng
                )
            positions: list[int] = []
            replacements: list[int] = []
            if options.masking == "static":
                positions, replacements = masking.mask_sequence(
                    _candidates(pair, is_continuation),
                    num_to_predict[pair.num_tokens],
                    job.replacements,
                    rng,
                    options.max_ngram,
                )
            instances.append(Instance(pair, positions, replacements))
    rng.shuffle(instances)
    return instances


def _candidates(pair: Pair, is_continuation: list[bool]) -> list[Sequence[int]]:
    """Returns the positions of tokens or, with `is_continuation`, of words."""
    start_a, end_a, start_b, end_b, _ = pair
    separator = 1 + end_a - start_a
    places = [*range(1, separator), *range(separator + 1, pair.num_tokens - 1)]
    if not is_continuation:
        return [(place,) for place in places]
    flags = is_continuation[start_a:end_a] + is_continuation[start_b:end_b]
    return masking.whole_words(places, flags)


def feature_batches(
    instances: Iterable[Instance], text: Corpus, job: Job
) -> Iterator[FeatureArrays]:
    """Yields the features of instances in batches."""
    remaining = iter(instances)
    while batch := [*itertools.islice(remaining, instance_records.BATCH_SIZE)]:
        spans, positions, replacements = zip(*batch, strict=True)
        pairs = np.array(spans, np.int64)
        input_ids = instance_records.make_sequences(text, pairs, job)
        masked = None
        if job.options.masking == "static":
            masked = masking.MaskedTokens(
                np.repeat(np.arange(len(batch)), [*map(len, positions)]),
                np.array([*itertools.chain(*positions)], np.int64),
                np.array([*itertools.chain(*replacements)], np.int64),
            )
        yield instance_records.make_features(pairs, input_ids, masked, job)
