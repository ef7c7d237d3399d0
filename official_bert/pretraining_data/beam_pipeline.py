"""`parallel.py` as an Apache Beam pipeline, for more than one machine.

The process that starts the pipeline tokenizes the text into a directory beside
the first output file. All workers must reach this directory and the vocabulary
under the same path: on a shared file system, or at a remote path (gs://...),
which each machine copies once.
"""

import dataclasses
import functools
import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from official_bert import files
from official_bert.errors import InputError
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus, instance_records, parallel
from official_bert.pretraining_data.instance_records import (
    EncodedRecords,
    Settings,
)
from official_bert.pretraining_data.parallel import KeyedPairs, WorkItem
from official_bert.pretraining_data.workers import Workers


def run(options: CreatePretrainingData, names: Sequence[str]) -> None:
    """Writes the instances of text files; see `generator.run`."""
    pipeline = _make_pipeline(options)
    import apache_beam as beam  # An optional dependency.

    # Workers may have other working directories.
    first = _absolute(options.output_files()[0])
    options = dataclasses.replace(
        options, vocab_file=_absolute(options.vocab_file)
    )
    with parallel.temporary_directory(first) as directory:
        settings = Settings(options, directory)
        settings.check_vocabulary()
        with Workers(1, settings) as workers:
            num_buckets = parallel.store_corpus(workers, names)
        with pipeline:
            _ = (
                pipeline
                | "Work" >> beam.Create(parallel.work_items(settings))
                | "Spread" >> beam.Reshuffle()
                | "MakePairs"
                >> beam.FlatMap(
                    functools.partial(make_pairs, settings, num_buckets)
                )
                | "Shuffle" >> beam.GroupByKey()
                | "Encode" >> beam.Map(functools.partial(encode, settings))
            )
        records = _read_records(directory, num_buckets)
        with corpus.stored(directory) as text:
            instance_records.write(records, options, text.num_tokens)


def _absolute(path: str) -> str:
    return path if files.is_remote(path) else os.path.abspath(path)


def make_pairs(
    settings: Settings, num_buckets: int, item: WorkItem
) -> Iterator[tuple[int, KeyedPairs]]:
    """Yields the pairs of a work item by bucket."""
    pairs = parallel.make_pairs(settings, item)
    yield from parallel.by_bucket(pairs, num_buckets)


def encode(
    settings: Settings, bucket: tuple[int, Iterable[KeyedPairs]]
) -> None:
    """Writes the records of a bucket to a file of the corpus directory."""
    number, pairs = bucket
    records = parallel.encode(settings, np.concatenate(list(pairs)))
    # Atomically, because Beam may run this twice.
    with files.writing(_records(settings.corpus_directory, number)) as file:
        file.write(pickle.dumps(records))


def _records(directory: str, bucket: int) -> str:
    return os.path.join(directory, f"records-{bucket}")


def _read_records(directory: str, num_buckets: int) -> Iterator[EncodedRecords]:
    for bucket in range(num_buckets):
        path = _records(directory, bucket)
        if files.exists(path):  # Some buckets of small corpora are empty.
            with files.open_binary(path) as file:
                yield from pickle.loads(file.read())


def _make_pipeline(options: CreatePretrainingData) -> Any:
    """Returns an empty pipeline; runner and options are checked."""
    try:
        import apache_beam
        from apache_beam.options.pipeline_options import PipelineOptions
    except ImportError as error:
        raise InputError(
            f"--runner needs Apache Beam, which cannot be imported ({error}). "
            "Run pip install -e '.[beam]', or use --num_workers, "
            "which writes the same records."
        ) from error
    flags = [f"--runner={options.runner}", *options.beam_flags()]
    pipeline_options = PipelineOptions(flags)
    pipeline_options.get_all_options()  # Parses them now, not during the run.
    try:
        return apache_beam.Pipeline(options=pipeline_options)
    except ValueError as error:
        raise InputError(
            f"--beam_options={options.beam_options!r} must be valid for "
            f"--runner={options.runner}: {error}"
        ) from error
