"""Creates pre-training data with several processes, in bounded memory.

```
tokenize     lines -> tokens             the corpus, in files of a directory
make_pairs   documents, round -> pairs   scattered over buckets by their keys
encode       bucket -> records           sorted by key
```

Each document has its own random stream in each round, which also gives each
pair a key; the key determines the sentences of a random B, the masks and the
position in the output. Thus, records do not depend on the number of processes.

Memory depends on the longest document, not on the size of the corpus: a worker
holds one block of lines, work item or bucket, and the main process holds two
such items for each worker. Everything else is in a temporary directory beside
the first output file.
"""

import array
import dataclasses
import itertools
import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from official_bert.io import files, progress
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import (
    corpus,
    instance_records,
    masking,
    segment_pairs,
    sentences,
)
from official_bert.pretraining_data.corpus import Corpus, Ints, Offsets
from official_bert.pretraining_data.instance_packing import FeatureArrays
from official_bert.pretraining_data.instance_records import (
    BATCH_SIZE,
    EncodedRecords,
)
from official_bert.pretraining_data.job import Job
from official_bert.pretraining_data.sentences import Summary
from official_bert.pretraining_data.workers import Workers

# int64 [n, 6]: the fields of `segment_pairs.Pair`, and the pair's key.
KeyedPairs = npt.NDArray[np.int64]
_NUM_COLUMNS, _BYTES_PER_PAIR = 6, 48
_IS_RANDOM_NEXT, _KEY = 4, -1  # Columns.
_KEY_BITS = 63

_SENTENCES_PER_WORK_ITEM = 2**12  # A sentence starts at most one pair.
_INSTANCES_PER_BUCKET = 2**12  # Their records are in memory together.
_PAIRS_IN_MEMORY = 2**18


def run(job: Job, names: Sequence[str]) -> None:
    """Writes the instances of text files; see `generator.run`."""
    options = job.options
    output_file = options.output_files()[0]
    # Temporary files are beside the first output file: a disk with room for the
    # records probably has room for the corpus.
    if files.is_remote(output_file):
        name = os.path.basename(output_file)
        output_file = os.path.join(tempfile.gettempdir(), name)
    with files.temporary_directory(output_file) as directory:
        job = dataclasses.replace(job, corpus_directory=directory)
        with Workers(options.num_workers, job) as workers:
            summary = store_corpus(workers, names)
            pairs = _make_all_pairs(workers)
            paths = scatter(pairs, num_buckets(summary, options), directory)
            records = _encode_files(workers, paths)
            instance_records.write(records, job, summary)


def store_corpus(workers: Workers, names: Sequence[str]) -> Summary:
    """Tokenizes text into the corpus directory."""
    job = workers.job
    lines = sentences.read_lines(names, job.options)
    directory = job.corpus_directory
    blocks = workers.map(corpus.tokenize, corpus.blocks_of_lines(lines))
    corpus.store(blocks, directory)
    with corpus.stored(directory) as text:
        summary = sentences.summarize(text, job)
    sentences.report(summary, names, job)
    return summary


def _make_all_pairs(workers: Workers) -> Iterable[KeyedPairs]:
    """Makes the pairs of all rounds, with a progress bar."""
    job = workers.job
    with corpus.stored(job.corpus_directory) as text:
        parts = [*text.parts(_SENTENCES_PER_WORK_ITEM)]
    num_rounds = job.options.dupe_factor
    return progress.bar(
        workers.map(make_pairs, itertools.product(range(num_rounds), parts)),
        description="Making instances",
        total=num_rounds * len(parts),
        unit=" items",
    )


def make_pairs(job: Job, item: tuple[int, tuple[int, int]]) -> KeyedPairs:
    """Returns the pairs of a work item: a round and a range of documents."""
    number, (first, end) = item
    with corpus.stored(job.corpus_directory) as text:
        documents = (text[index] for index in range(first, end))
        pairs = begin_pairs(documents, number, first, len(text), job.options)
        add_random_segments(pairs, text, job.options)
    return pairs


def begin_pairs(
    documents: Iterable[Offsets],
    round_number: int,
    first: int,
    num_documents: int,
    options: CreatePretrainingData,
) -> KeyedPairs:
    """Returns the pairs of consecutive documents, without random segments B.

    `first` is the index in the corpus of the first of these documents, and
    `num_documents` the number of documents in the corpus.
    """
    rows = array.array("q")  # A list takes seven times the memory.
    for index, document in enumerate(documents, first):
        rng = random.Random(f"{options.random_seed}/{round_number}/{index}")
        for pair in segment_pairs.document_pairs(
            document.tolist(), index, num_documents, options, rng
        ):
            rows.extend((*pair, rng.getrandbits(_KEY_BITS)))
    return np.frombuffer(rows, np.int64).reshape(-1, _NUM_COLUMNS)


def lacks_segment(
    pairs: KeyedPairs, options: CreatePretrainingData
) -> npt.NDArray[np.bool_]:
    """Returns which pairs of `begin_pairs` lack a random segment B."""
    return pairs[:, _IS_RANDOM_NEXT].astype(np.bool_) & (options.nsp == "next")


def add_random_segments(
    pairs: KeyedPairs, documents: Corpus, options: CreatePretrainingData
) -> None:
    """Adds the segments B that pairs lack, as `add_random_segment` does.

    The segments depend only on the document and on the key of the pair.
    """
    rows = np.flatnonzero(lacks_segment(pairs, options))
    start_a, end_a, number, target_length, _, key = pairs[rows].T
    key = ~key.astype(np.uint64)  # Not the key itself: `masking` uses it.
    begin, end = documents.documents[number], documents.documents[number + 1]
    drawn = masking.random_numbers(key, np.zeros_like(begin))
    rank = drawn % (end - begin).astype(np.uint64)
    sentence = begin + rank.astype(np.int64)
    start_b = documents.sentences[sentence]
    end_sentence = np.searchsorted(documents.sentences, start_b + target_length)
    end_b = documents.sentences[np.clip(end_sentence, sentence + 1, end)]

    # Tokens are removed from the longer segment until both have the same
    # length, then from both in turn.
    length_a, length_b = end_a - start_a, end_b - start_b
    excess = np.maximum(length_a + length_b + 3 - options.max_seq_length, 0)
    until_equal = np.minimum(np.abs(length_a - length_b), excess)
    excess_a = np.where(length_a > length_b, until_equal, 0)
    excess_a += (excess - until_equal) // 2
    spans = (start_a, end_a, excess_a), (start_b, end_b, excess - excess_a)
    for i, (start, end, num_removed) in enumerate(spans):
        row = np.repeat(np.arange(len(rows)), num_removed)
        drawn = masking.random_numbers(key[row], 1 + i + 2 * masking.ranks(row))
        is_front = drawn >> np.uint64(63)
        num_front = np.bincount(row, is_front, len(rows)).astype(np.int64)
        pairs[rows, 2 * i] = start + num_front
        pairs[rows, 2 * i + 1] = end - num_removed + num_front


def num_buckets(summary: Summary, options: CreatePretrainingData) -> int:
    """Returns the number of buckets, from an estimated number of instances."""
    # 1.5, because the sentences that a random B replaces are used again.
    num_full = 1.5 * summary.num_tokens / (options.max_seq_length - 3)
    # Each instance takes at least one sentence.
    per_round = min(summary.num_sentences, summary.num_documents + num_full)
    return 1 + int(options.dupe_factor * per_round / _INSTANCES_PER_BUCKET)


def by_bucket(
    pairs: KeyedPairs, num_buckets: int
) -> Iterator[tuple[int, Offsets]]:
    """Yields each bucket and its rows. Later buckets have larger keys."""
    high_bits = pairs[:, _KEY] >> (_KEY_BITS - 31)
    return grouped(high_bits * num_buckets >> 31)


def grouped(numbers: Offsets) -> Iterator[tuple[int, Offsets]]:
    """Yields each distinct number and the rows where it occurs."""
    order = np.argsort(numbers, kind="stable")
    values, starts = np.unique(numbers[order], return_index=True)
    parts = np.split(order, starts[1:])
    # Not strict, because `np.split` returns one part even without numbers.
    yield from zip(values.tolist(), parts, strict=False)


def scatter(
    all_pairs: Iterable[KeyedPairs], num_buckets: int, directory: str
) -> list[str]:
    """Appends pairs to the files of their buckets; returns the files."""
    numbers: set[int] = set()
    remaining = iter(all_pairs)
    while portion := list(_portion(remaining)):
        pairs = np.concatenate(portion)
        for number, rows in by_bucket(pairs, num_buckets):
            numbers.add(number)
            path = bucket_path(directory, number)
            with files.write_errors(path), open(path, "ab") as file:
                file.write(pairs[rows].tobytes())
    return [bucket_path(directory, number) for number in sorted(numbers)]


def _portion(remaining: Iterator[KeyedPairs]) -> Iterator[KeyedPairs]:
    """Yields the next arrays, with about `_PAIRS_IN_MEMORY` pairs together."""
    num_pairs = 0
    for pairs in remaining:
        yield pairs
        num_pairs += len(pairs)
        if num_pairs >= _PAIRS_IN_MEMORY:
            return


def bucket_path(directory: str, number: int) -> str:
    """Returns the path of a bucket's file."""
    return os.path.join(directory, f"bucket-{number}")


def _encode_files(
    workers: Workers, paths: Sequence[str]
) -> Iterator[EncodedRecords]:
    """Yields the records of buckets, with a progress bar of instances."""
    sizes = [os.path.getsize(path) // _BYTES_PER_PAIR for path in paths]
    buckets = (
        np.fromfile(path, np.int64).reshape(-1, _NUM_COLUMNS) for path in paths
    )
    with progress.bar(
        description="Writing records", total=sum(sizes), unit=" instances"
    ) as bar:
        records = workers.map(encode, buckets)
        for bucket, size in zip(records, sizes, strict=True):
            yield from bucket
            bar.update(size)


def encode(job: Job, pairs: KeyedPairs) -> list[EncodedRecords]:
    """Returns the records of a bucket, whose pairs come in any order."""
    with corpus.stored(job.corpus_directory) as text:
        sequences = instance_records.make_sequences(text, pairs, job)
    return encode_sequences(job, pairs, sequences)


def encode_sequences(
    job: Job, pairs: KeyedPairs, sequences: Ints
) -> list[EncodedRecords]:
    """Returns the records of a bucket's pairs and their sequences."""
    # Equal keys are sorted by position, so that the order is always the same.
    order = np.lexsort((pairs[:, 0], pairs[:, _KEY]))
    batches = np.split(order, range(BATCH_SIZE, len(order), BATCH_SIZE))
    features = (
        _features(pairs[rows], sequences[rows], job) for rows in batches
    )
    return list(instance_records.encode(features, job))


def _features(pairs: KeyedPairs, input_ids: Ints, job: Job) -> FeatureArrays:
    masked = None
    if job.options.masking == "static":
        layout = instance_records.make_layout(pairs, input_ids.shape[1])
        masked = masking.mask_sequences(
            layout.is_maskable,
            job.is_continuation[input_ids],
            job.num_to_predict[layout.lengths],
            job.replacements,
            pairs[:, _KEY].astype(np.uint64),
            job.options.max_ngram,
        )
    return instance_records.make_features(pairs, input_ids, masked, job)
