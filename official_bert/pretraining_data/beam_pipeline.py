"""`parallel.py` as an Apache Beam pipeline, for a cluster.

```
read_blocks    file -> blocks: consecutive documents, tokenized
make_plan      sizes of all blocks -> the place of each block in the corpus
begin_block    block, its place -> complete instances by bucket
                                   pairs without a random B } by range of
                                   documents                } documents
finish_pairs   range of documents, pairs -> instances by bucket
encode_bucket  bucket -> records, in a file
join_buckets   bucket files -> an output file
```

Workers share the input files and the directory of the first output file,
nothing else; the vocabulary is copied there. A random segment B is drawn where
its document is: segment A and the key of the pair are sent there. So no worker
needs the whole corpus.

Steps may run twice, because their results depend only on their input, and files
are replaced atomically. There are no side inputs, which the DaskRunner computes
again for each use, no tagged outputs, and only one final step.
"""

import dataclasses
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from official_bert.errors import InputError
from official_bert.io import files, json_files
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import (
    corpus,
    instance_records,
    parallel,
    sentences,
)
from official_bert.pretraining_data.corpus import Corpus, Ints
from official_bert.pretraining_data.job import Job
from official_bert.pretraining_data.parallel import KeyedPairs
from official_bert.pretraining_data.sentences import Summary
from official_bert.runs import file_names
from official_bert.sources import tokenizer_files

# The index of a block's file, and the index of the block in this file.
BlockKey = tuple[int, int]
# The text of a block, or an error message about its file.
Block = tuple[BlockKey, Corpus | str]

# Pairs and their sequences; or pairs without a random B, and the tokens of A.
Instances = tuple[KeyedPairs, Ints]

# Kinds of keys: a bucket, or a range of documents.
_BUCKET, _RANGE = 0, 1
_DOCUMENTS_PER_RANGE = 128

_PLAN, _COUNTS = "plan.json", "counts.json"


def run(job: Job, names: Sequence[str]) -> None:
    """Writes the instances of text files; see `generator.run`."""
    options = job.options
    pipeline = _make_pipeline(options)
    outputs = options.output_files()
    first = _absolute(outputs[0])
    with files.temporary_directory(first) as directory:
        model_files = options.model_files
        tokenizer_files.write(
            directory, model_files.vocab, model_files.settings
        )
        vocab_copy = os.path.join(directory, file_names.VOCAB)
        job = Job(options, directory, vocab_copy)
        with pipeline:
            _build(pipeline, job, [_absolute(name) for name in names])
        # Without text, or without records, these files do not exist.
        plan = json_files.load(directory, _PLAN).content
        if "error" in plan:
            raise InputError(plan["error"])
        summary = Summary(*plan.get("summary", (0, 0, 0, 0, 0, False)))
        sentences.report(summary, names, job)
        counts = Counter[str](json_files.load(directory, _COUNTS).content)
        instance_records.require_records(counts)
        for number, name in enumerate(outputs):
            with files.replacing(name) as temporary:
                files.move(os.path.join(directory, str(number)), temporary)
        instance_records.finish(counts, job, summary)


def _absolute(path: str) -> str:
    # Workers may have other working directories.
    return path if files.is_remote(path) else os.path.abspath(path)


def _build(pipeline: Any, job: Job, names: Sequence[str]) -> None:
    import apache_beam as beam  # An optional dependency.

    blocks = (
        pipeline
        | "Files" >> beam.Create([*enumerate(names)])
        | "SpreadFiles" >> beam.Reshuffle()
        | "ReadBlocks" >> beam.FlatMap(read_blocks, job)
    )
    places = (
        blocks
        | "Measure" >> beam.Map(measure, job)
        | "GroupSizes" >> beam.GroupByKey()
        | "MakePlan" >> beam.FlatMap(make_plan, job)
    )
    begun = (
        {"texts": blocks, "places": places}
        | "GroupBlocks" >> beam.CoGroupByKey()
        | "BeginBlock" >> beam.FlatMap(begin_block, job)
    )
    complete, incomplete = (
        begun | f"Kind{kind}" >> beam.Filter(lambda x, k: x[0][0] == k, kind)
        for kind in (_BUCKET, _RANGE)
    )
    finished = (
        incomplete
        | "GroupRange" >> beam.GroupByKey()
        | "FinishPairs" >> beam.FlatMap(finish_pairs, job)
    )
    _ = (
        (complete, finished)
        | beam.Flatten()
        | "GroupInstances" >> beam.GroupByKey()
        | "EncodeBucket" >> beam.FlatMap(encode_bucket, job)
        | "GroupParts" >> beam.GroupByKey()
        | "JoinBuckets" >> beam.Map(join_buckets, job)
    )


class Place(NamedTuple):
    """The place of a block in the corpus."""

    first_document: int
    first_token: int
    num_documents: int  # Number of documents in the corpus.
    num_buckets: int


def read_blocks(file: tuple[int, str], job: Job) -> Iterator[Block]:
    """Reads and tokenizes a file."""
    number, name = file
    try:
        lines = sentences.lines_of_file(files.read_lines(name), job.options)
        blocks = corpus.blocks_of_lines(lines, whole_documents=True)
        for place, block in enumerate(blocks):
            parts = corpus.blocks_of_lines(block)
            tokenized = (corpus.tokenize(job, part) for part in parts)
            yield (number, place), corpus.in_memory(tokenized)
    # Beam would retry after an exception, and change its type.
    except InputError as error:
        yield (number, -1), str(error)


def measure(
    block: Block, job: Job
) -> tuple[int, tuple[BlockKey, Summary | str]]:
    """Returns the size of a block, or its error; all have the same key."""
    key, text = block
    if isinstance(text, Corpus):
        return 0, (key, sentences.summarize(text, job))
    return 0, (key, text)


def make_plan(
    measured: tuple[int, Iterable[tuple[BlockKey, Summary | str]]], job: Job
) -> Iterator[tuple[BlockKey, Place]]:
    """Yields the place of each block; writes the sum of sizes to a file."""
    keys, results = zip(*sorted(measured[1]), strict=True)
    sizes = [result for result in results if isinstance(result, Summary)]
    errors = [result for result in results if isinstance(result, str)]
    path = os.path.join(job.corpus_directory, _PLAN)
    if errors:
        json_files.write(path, {"error": "\n".join(errors)})
        return
    *counts, num_wrapped = map(sum, zip(*sizes, strict=True))
    summary = Summary._make((*counts, 2 * num_wrapped > len(sizes)))
    json_files.write(path, {"summary": summary})
    buckets = parallel.num_buckets(summary, job.options)
    document = token = 0
    for key, size in zip(keys, sizes, strict=True):
        yield key, Place(document, token, summary.num_documents, buckets)
        document += size.num_documents
        token += size.num_tokens


def begin_block(
    group: tuple[BlockKey, dict[str, Iterable[Any]]], job: Job
) -> Iterator[tuple[Any, Any]]:
    """Yields complete instances by bucket, others by range of documents."""
    [text], places = group[1]["texts"], [*group[1]["places"]]
    if not places:  # A file cannot be read.
        return
    [place] = places
    options = job.options
    first, first_token, num_documents, _ = place
    rounds = [
        parallel.begin_pairs(text, i, first, num_documents, options)
        for i in range(options.dupe_factor)
    ]
    pairs = np.concatenate(rounds)
    is_incomplete = parallel.lacks_segment(pairs, options)
    complete, incomplete = pairs[~is_incomplete], pairs[is_incomplete]
    sequences = instance_records.make_sequences(text, complete, job)
    complete[:, :2] += first_token
    yield from _by_bucket(complete, sequences, place)
    for number, rows in parallel.grouped(
        incomplete[:, 2] // _DOCUMENTS_PER_RANGE
    ):
        part = incomplete[rows]
        ids = text.tokens(part[:, 0], part[:, 1])
        part[:, :2] += first_token
        yield (_RANGE, number), (part, ids)
    for number, rows in parallel.grouped(
        np.arange(first, first + len(text)) // _DOCUMENTS_PER_RANGE
    ):
        start, end = int(rows[0]), int(rows[-1]) + 1
        range_place = place._replace(first_document=first + start)
        yield (_RANGE, number), (range_place, text.part(start, end))


def finish_pairs(
    group: tuple[Any, Iterable[tuple[Any, Any]]], job: Job
) -> Iterator[tuple[Any, Instances]]:
    """Adds segments B from a range of documents; yields the instances."""
    values = list(group[1])
    texts = [value for value in values if isinstance(value[0], Place)]
    requests = [value for value in values if not isinstance(value[0], Place)]
    if not requests:
        return
    incomplete, ids = map(np.concatenate, zip(*requests, strict=True))
    # Segments A have other positions in `ids` than in the corpus.
    lengths = incomplete[:, 1] - incomplete[:, 0]
    shifts = np.cumsum(lengths) - lengths - incomplete[:, 0]
    for place, text in texts:
        numbers = incomplete[:, 2] - place.first_document
        rows = (numbers >= 0) & (numbers < len(text))
        pairs = incomplete[rows]
        pairs[:, 2] = numbers[rows]
        parallel.add_random_segments(pairs, text, job.options)
        spans = pairs.copy()  # Positions in `ids` followed by `text.ids`.
        spans[:, :2] += shifts[rows, np.newaxis]
        spans[:, 2:4] += len(ids)
        joined = dataclasses.replace(text, ids=np.concatenate([ids, text.ids]))
        sequences = instance_records.make_sequences(joined, spans, job)
        yield from _by_bucket(pairs, sequences, place)


def _by_bucket(
    pairs: KeyedPairs, sequences: Ints, place: Place
) -> Iterator[tuple[Any, Instances]]:
    for bucket, rows in parallel.by_bucket(pairs, place.num_buckets):
        yield (_BUCKET, bucket), (pairs[rows], sequences[rows])


def encode_bucket(
    group: tuple[Any, Iterable[Instances]], job: Job
) -> Iterator[tuple[int, Any]]:
    """Writes a bucket's records; yields their position for each output file.

    The keys are the numbers of the output files. Also yields the counts of the
    records, with the key -1.
    """
    (_, bucket), parts = group
    pairs, sequences = map(np.concatenate, zip(*parts, strict=True))
    records = parallel.encode_sequences(job, pairs, sequences)
    by_file = zip(*(batch.data for batch in records), strict=True)
    data = [b"".join(batches_of_file) for batches_of_file in by_file]
    path = parallel.bucket_path(job.corpus_directory, bucket)
    with files.writing(path) as file:
        file.write(b"".join(data))
    start = 0
    for number, size in enumerate(map(len, data)):
        yield number, (bucket, start, size)
        start += size
    yield -1, sum((batch.counts for batch in records), Counter())


def join_buckets(group: tuple[int, Iterable[Any]], job: Job) -> None:
    """Writes an output file, or the counts of all records."""
    number, parts = group
    directory = job.corpus_directory
    if number == -1:
        counts = sum(parts, Counter[str]())
        json_files.write(os.path.join(directory, _COUNTS), counts)
        return
    with files.writing(os.path.join(directory, str(number))) as file:
        for bucket, start, size in sorted(parts):
            path = parallel.bucket_path(directory, bucket)
            with files.open_binary(path) as source:
                source.seek(start)
                file.write(source.read(size))
        file.flush()
        files.sync(file.name)


def _make_pipeline(options: CreatePretrainingData) -> Any:
    """Returns an empty pipeline, after checking the runner and its options."""
    try:
        import apache_beam
        from apache_beam.options.pipeline_options import PipelineOptions

        runner = options.runner
        if runner == "DaskRunner":  # Beam does not know its short name.
            from apache_beam.runners.dask import dask_runner

            runner = f"{dask_runner.__name__}.{runner}"
    except ImportError as error:
        raise InputError(
            f"--runner needs Apache Beam, which cannot be imported ({error}). "
            "Run pip install -e '.[beam]', or use --num_workers, "
            "which writes the same records."
        ) from error
    flags = [f"--runner={runner}", *shlex.split(options.beam_options or "")]
    pipeline_options = PipelineOptions(flags)
    pipeline_options.get_all_options()  # Parses them now, not during the run.
    try:
        return apache_beam.Pipeline(options=pipeline_options)
    except ValueError as error:
        raise InputError(
            f"--beam_options={options.beam_options!r} must be valid for "
            f"--runner={options.runner}: {error}"
        ) from error
