"""The stages as an Apache Beam pipeline, for corpora beyond one machine.

The records are those of `parallel`, whatever the runner. The text is tokenized
where the pipeline is started, into a folder beside the first output. All
workers must see that folder, and the vocabulary, under the same name: they are
on a file system they share, or remote (gs://...); the folder is then copied to
each machine once.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from official_bert import files
from official_bert.errors import InputError
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import output, parallel, stages
from official_bert.pretraining_data.recipe import Recipe
from official_bert.pretraining_data.stages import KeyedPairs, WorkItem
from official_bert.pretraining_data.workers import Workers


def run(options: CreatePretrainingData, names: Sequence[str]) -> None:
    """Writes the instances of text files.

    Raises:
        InputError: Beam is not installed, vocabulary or text cannot be used, or
            there is no room.
    """
    beam = _import_beam()
    pipeline = _make_pipeline(beam, options)
    # Workers may stand in other folders.
    first = _from_anywhere(options.output_files()[0])
    vocab_file = _from_anywhere(options.vocab_file)
    with parallel.temporary_folder(first) as folder:
        recipe = Recipe(
            dataclasses.replace(options, vocab_file=vocab_file), folder
        )
        recipe.check_vocabulary()
        with Workers(1, recipe) as workers:
            num_buckets = parallel.store_text(workers, names, folder)
        with pipeline:
            _ = (
                pipeline
                | "Work" >> beam.Create(stages.work_items(recipe))
                | "Spread" >> beam.Reshuffle()
                | "MakePairs"
                >> beam.FlatMap(
                    functools.partial(make_pairs, recipe, num_buckets)
                )
                | "Shuffle" >> beam.GroupByKey()
                | "Encode" >> beam.Map(functools.partial(encode, recipe))
            )
        output.write(_parts(folder, num_buckets), options)


def _from_anywhere(path: str) -> str:
    return path if files.is_remote(path) else os.path.abspath(path)


def make_pairs(
    recipe: Recipe, num_buckets: int, item: WorkItem
) -> Iterator[tuple[int, KeyedPairs]]:
    """Yields the pairs of some documents by their buckets."""
    pairs = stages.make_pairs(recipe, item)
    buckets = stages.buckets_of(pairs, num_buckets)
    for bucket in np.unique(buckets).tolist():
        yield bucket, pairs[buckets == bucket]


def encode(recipe: Recipe, bucket: tuple[int, Iterable[KeyedPairs]]) -> None:
    """Writes the records of a bucket to a file of the folder."""
    number, pairs = bucket
    # Whole or not at all, since Beam may do it twice.
    with files.writing(_name(recipe.folder, number)) as file:
        for part in stages.encode(recipe, np.concatenate(list(pairs))):
            sizes = list(map(len, part.data))
            numbers = [part.num_records, part.num_pieces, sizes]
            file.write(json.dumps(numbers).encode() + b"\n")
            file.writelines(part.data)


def _name(folder: str, bucket: int) -> str:
    return os.path.join(folder, f"records-{bucket}")


def _parts(folder: str, num_buckets: int) -> Iterator[output.Part]:
    for bucket in range(num_buckets):
        if not files.exists(_name(folder, bucket)):
            continue  # Small corpora leave gaps.
        with files.open_binary(_name(folder, bucket)) as file:
            while line := file.readline():
                num_records, num_pieces, sizes = json.loads(line)
                data = [file.read(size) for size in sizes]
                yield output.Part(data, num_records, num_pieces)


def _import_beam() -> Any:
    try:
        import apache_beam
    except ImportError as error:
        raise InputError(
            "--runner needs Apache Beam. Received: a Python without it "
            f"({error}). Run `pip install -r requirements-beam.txt`, or use "
            "--num_workers, which gives the same records."
        ) from error
    return apache_beam


def _make_pipeline(beam: Any, options: CreatePretrainingData) -> Any:
    """Returns an empty pipeline, its runner and their options checked."""
    from apache_beam.options.pipeline_options import PipelineOptions

    flags = [f"--runner={options.runner}", *options.beam_flags()]
    given = PipelineOptions(flags)
    given.get_all_options()  # Reads them; Beam would only when it runs.
    try:
        return beam.Pipeline(options=given)
    except ValueError as error:
        raise InputError(
            f"--beam_options must be what {options.runner} needs. Received: "
            f"{options.beam_options!r}. {error}"
        ) from error
