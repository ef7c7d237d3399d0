"""Pre-training data with several processes, in bounded memory.

```
tokenize     lines -> tokens             the corpus, in files of a directory
make_pairs   documents, round -> pairs   scattered over buckets by their keys
encode       bucket -> records           sorted by key
```

Each document has its own random stream in each round, which also gives each
pair a key; the key determines the masks and the position in the output. So the
records do not depend on the number of processes.

Memory depends on the longest document, not on the size of the corpus. Each
process uses some 60 MB for Python, NumPy and the vocabulary, and works on one
portion of limited size: a block of lines, the pairs of a work item or the
records of a bucket. The first process also holds two portions for each worker
and up to 2**18 pairs of 48 bytes. A document is processed as a whole: some 50
bytes for each of its sentences and, in the first process, up to 500 for each of
its instances in a round.

Everything else is in files in a directory beside the first output file: 4 bytes
per token, 8 per sentence and document, 48 per instance.
"""

import array
import contextlib
import errno
import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from official_bert import files, progress
from official_bert.errors import InputError
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import (
    corpus,
    instance_records,
    masking,
    segment_pairs,
)
from official_bert.pretraining_data.corpus import Block, Corpus
from official_bert.pretraining_data.instance_packing import Columns
from official_bert.pretraining_data.instance_records import (
    BATCH_SIZE,
    EncodedRecords,
    Settings,
)
from official_bert.pretraining_data.workers import Workers

# int64 [n, 6]: the fields of `segment_pairs.Pair`, and the pair's key.
KeyedPairs = npt.NDArray[np.int64]
NUM_FIELDS = 6
_KEY_BITS = 63
_NO_PAIRS = np.zeros((0, NUM_FIELDS), np.int64)

_TOKENS_PER_WORK_ITEM = 2**16
_INSTANCES_PER_BUCKET = 2**12  # Their records are in memory together.
_PAIRS_IN_MEMORY = 2**18

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class WorkItem(NamedTuple):
    """A range of documents whose pairs are made together, in one round."""

    round: int
    first: int
    end: int


def run(options: CreatePretrainingData, names: Sequence[str]) -> None:
    """Writes the instances of text files.

    Raises:
        InputError: Vocabulary or text cannot be used, the disk is full, or a
            worker died.
    """
    output_file = options.output_files()[0]
    # A disk with room for the records probably has room for the corpus.
    if files.is_remote(output_file):
        name = os.path.basename(output_file)
        output_file = os.path.join(tempfile.gettempdir(), name)
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(temporary_directory(output_file))
        settings = Settings(options, directory)
        settings.check_vocabulary()
        workers = stack.enter_context(Workers(options.num_workers, settings))
        num_buckets = store_corpus(workers, names)
        pairs = progress.bar(
            workers.map(make_pairs, work_items(settings)),
            description="Making instances",
            total=sum(1 for _ in work_items(settings)),
            unit="item",
        )
        sizes = scatter(pairs, num_buckets, directory)
        buckets = (_bucket(directory, number) for number in range(num_buckets))
        parts = workers.map(encode, map(_read_bucket, buckets))
        instance_records.write(_with_progress(parts, sizes), options)


@contextlib.contextmanager
def temporary_directory(path: str) -> Iterator[str]:
    """Yields a new directory beside a file and removes it at the end.

    Raises:
        InputError: The disk is full.
    """
    directory = files.temporary_name(path)
    files.make_directory(directory)
    try:
        yield directory
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise InputError(
            f"{directory}: no room for the tokenized text: "
            f"{error.strerror or error}. The output files are unchanged. Free "
            "disk space and run the command again."
        ) from error
    finally:
        files.remove_directory(directory)


def store_corpus(workers: Workers, names: Sequence[str]) -> int:
    """Tokenizes text files into the corpus directory.

    Returns:
        The number of buckets for the pairs of this corpus.
    """
    lines = progress.read_lines(names, "Reading text")
    directory = workers.settings.corpus_directory
    blocks = workers.map(tokenize, corpus.blocks_of_lines(lines))
    corpus.store(blocks, directory)
    with corpus.stored(directory) as text:
        corpus.require_text(text, names)
        return num_buckets(text, workers.settings)


def tokenize(settings: Settings, lines: Sequence[str]) -> Block:
    """Tokenizes a block of lines."""
    return corpus.tokenize_block(settings.tokenizer, lines)


def work_items(settings: Settings) -> Iterator[WorkItem]:
    """Yields the documents of all rounds in portions."""
    for number in range(settings.options.dupe_factor):
        with corpus.stored(settings.corpus_directory) as text:
            for first, end in text.parts(_TOKENS_PER_WORK_ITEM):
                yield WorkItem(number, first, end)


def make_pairs(settings: Settings, item: WorkItem) -> KeyedPairs:
    """Returns the pairs of the documents of a work item."""
    options = settings.options
    made = array.array("q")  # A list takes seven times the memory.
    with corpus.stored(settings.corpus_directory) as text:
        for index in range(item.first, item.end):
            rng = random.Random(f"{options.random_seed}/{item.round}/{index}")
            document = text.document(index).tolist()
            pairs = segment_pairs.document_pairs(
                document, index, text.num_documents, text.document, options, rng
            )
            for pair in pairs:
                made.extend((*pair, rng.getrandbits(_KEY_BITS)))
    return np.frombuffer(made, np.int64).reshape(-1, NUM_FIELDS)


def num_buckets(text: Corpus, settings: Settings) -> int:
    """Returns the number of buckets for the pairs of a corpus.

    The number of instances is estimated; with many short ones there are up to
    a few times more of them in a bucket.
    """
    # With a random B, the remaining sentences of the document are used again.
    num_tokens, num_sentences = text.sentences[-1], len(text.sentences) - 1
    full = 1.5 * num_tokens / (settings.options.max_seq_length - 3)
    # Each instance takes at least one sentence.
    per_round = min(num_sentences, text.num_documents + full)
    expected = settings.options.dupe_factor * per_round
    return 1 + int(expected / _INSTANCES_PER_BUCKET)


def buckets_of(pairs: KeyedPairs, num_buckets: int) -> npt.NDArray[np.int64]:
    """Returns the bucket of each pair; keys ascend from bucket to bucket."""
    highest = pairs[:, -1] >> (_KEY_BITS - 31)
    return highest * num_buckets >> 31


def scatter(
    made: Iterable[KeyedPairs], num_buckets: int, directory: str
) -> npt.NDArray[np.int64]:
    """Appends each pair to the file of its bucket.

    Returns:
        int64 [buckets], their numbers of pairs.
    """
    sizes = np.zeros(num_buckets, np.int64)
    some = [_NO_PAIRS]
    for pairs in made:
        some.append(pairs)
        if sum(map(len, some)) >= _PAIRS_IN_MEMORY:
            sizes += _append(np.concatenate(some), num_buckets, directory)
            some = [_NO_PAIRS]
    return sizes + _append(np.concatenate(some), num_buckets, directory)


def _append(
    pairs: KeyedPairs, num_buckets: int, directory: str
) -> npt.NDArray[np.int64]:
    buckets = buckets_of(pairs, num_buckets)
    pairs = pairs[np.argsort(buckets, kind="stable")]
    counts = np.bincount(buckets, minlength=num_buckets)
    ends = np.cumsum(counts)
    for number in np.flatnonzero(counts).tolist():
        start, end = ends[number] - counts[number], ends[number]
        with open(_bucket(directory, number), "ab") as file:
            file.write(pairs[start:end].tobytes())
    return counts


def _bucket(directory: str, number: int) -> str:
    return os.path.join(directory, f"bucket-{number}")


def _read_bucket(path: str) -> KeyedPairs:
    if not os.path.exists(path):
        return _NO_PAIRS
    return np.fromfile(path, np.int64).reshape(-1, NUM_FIELDS)


def encode(settings: Settings, pairs: KeyedPairs) -> list[EncodedRecords]:
    """Returns the records of a bucket, whose pairs come in any order."""
    # Equal keys are sorted by position, so that the order is always the same.
    pairs = pairs[np.lexsort((pairs[:, 0], pairs[:, -1]))]
    with corpus.stored(settings.corpus_directory) as text:
        batches = (
            _masked_features(pairs[start : start + BATCH_SIZE], text, settings)
            for start in range(0, len(pairs), BATCH_SIZE)
        )
        return list(instance_records.encode(batches, settings.options))


def _masked_features(
    pairs: KeyedPairs, text: Corpus, settings: Settings
) -> Columns:
    options = settings.options
    sequences = instance_records.make_sequences(text, pairs, settings)
    masks = masking.mask_sequences(
        sequences.is_maskable,
        settings.is_continuation[sequences.input_ids]
        if options.do_whole_word_mask
        else None,
        masking.num_to_predict(
            sequences.num_tokens,
            options.masked_lm_prob,
            options.max_predictions_per_seq,
        ),
        options.max_predictions_per_seq,
        settings.replacements,
        pairs[:, -1].astype(np.uint64),
    )
    return instance_records.make_features(sequences, masks)


def _with_progress(
    parts_of_buckets: Iterable[list[EncodedRecords]],
    sizes: npt.NDArray[np.int64],
) -> Iterator[EncodedRecords]:
    with progress.bar(
        description="Writing records", total=int(sizes.sum()), unit="instance"
    ) as shown:
        for parts, size in zip(parts_of_buckets, sizes.tolist(), strict=True):
            yield from parts
            shown.update(size)
