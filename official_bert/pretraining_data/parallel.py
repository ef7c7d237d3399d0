"""The three stages on this machine, in several processes and bounded memory.

Each process has some 60 MB for interpreter, NumPy and vocabulary. What it works
on beside that is a portion of fixed size: lines, a work item's pairs, a
bucket's records. Two such portions for each worker wait in the first process,
which also gathers 2**18 pairs, 48 bytes each. One thing grows with the text: a
document is worked on in one piece, at some 50 bytes for each of its sentences
and, in the first process, up to 500 for each instance that a round makes of it.

All else is in files, in a folder beside the first output: 4 bytes for each
piece of the text, 8 for each sentence and document, 48 for each instance.
"""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from official_bert import files, progress
from official_bert.errors import InputError
from official_bert.options import CreatePretrainingData
from official_bert.pretraining_data import corpus, output, stages
from official_bert.pretraining_data.recipe import Recipe
from official_bert.pretraining_data.workers import Workers

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PAIRS_IN_MEMORY = 2**18


def run(options: CreatePretrainingData, names: Sequence[str]) -> None:
    """Writes the instances of text files.

    Raises:
        InputError: Vocabulary or text cannot be used, there is no room, or a
            worker died.
    """
    output_file = options.output_files()[0]
    # Where there is room for the records, there is most likely some for this.
    if files.is_remote(output_file):
        name = os.path.basename(output_file)
        output_file = os.path.join(tempfile.gettempdir(), name)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(output_file))
        recipe = Recipe(options, folder)
        recipe.check_vocabulary()
        workers = stack.enter_context(Workers(options.num_workers, recipe))
        num_buckets = store_text(workers, names, folder)
        pairs = progress.bar(
            workers.map(stages.make_pairs, stages.work_items(recipe)),
            description="Making instances",
            total=sum(1 for _ in stages.work_items(recipe)),
            unit="item",
        )
        sizes = scatter(pairs, num_buckets, folder)
        buckets = (_bucket(folder, number) for number in range(num_buckets))
        parts = workers.map(stages.encode, map(_read, buckets))
        output.write(_shown(parts, sizes), options)


def store_text(workers: Workers, names: Sequence[str], folder: str) -> int:
    """Tokenizes text files into a folder; returns the number of buckets."""
    lines = progress.read_lines(names, "Reading text")
    blocks = corpus.blocks_of_lines(lines)
    corpus.store(workers.map(stages.tokenize, blocks), folder)
    with corpus.stored(folder) as text:
        corpus.require_text(text, names)
        return stages.num_buckets(text, workers.recipe)


@contextlib.contextmanager
def temporary_folder(path: str) -> Iterator[str]:
    """Yields a new folder beside a file, which is removed at the end.

    Raises:
        InputError: There is no room in it.
    """
    folder = files.temporary_name(path)
    files.make_directory(folder)
    try:
        yield folder
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise InputError(
            f"{folder}: must have room for the tokenized text. Received: "
            f"{error.strerror or error}. Output files are as they were; make "
            "room, and run the command again."
        ) from error
    finally:
        files.remove_directory(folder)


def scatter(
    made: Iterable[stages.KeyedPairs], num_buckets: int, folder: str
) -> npt.NDArray[np.int64]:
    """Writes each pair to its bucket's file; returns the buckets' sizes."""
    sizes = np.zeros(num_buckets, np.int64)
    some: list[stages.KeyedPairs] = []
    for pairs in made:
        some.append(pairs)
        if sum(map(len, some)) >= _PAIRS_IN_MEMORY:
            sizes += _append(np.concatenate(some), num_buckets, folder)
            some = []
    return sizes + _append(np.concatenate([_NONE, *some]), num_buckets, folder)


_NONE = np.zeros((0, stages.NUM_FIELDS), np.int64)


def _append(
    pairs: stages.KeyedPairs, num_buckets: int, folder: str
) -> npt.NDArray[np.int64]:
    buckets = stages.buckets_of(pairs, num_buckets)
    pairs = pairs[np.argsort(buckets, kind="stable")]
    counts = np.bincount(buckets, minlength=num_buckets)
    ends = np.cumsum(counts)
    for number in np.flatnonzero(counts).tolist():
        start, end = ends[number] - counts[number], ends[number]
        with open(_bucket(folder, number), "ab") as file:
            file.write(pairs[start:end].tobytes())
    return counts


def _bucket(folder: str, number: int) -> str:
    return os.path.join(folder, f"bucket-{number}")


def _read(bucket: str) -> stages.KeyedPairs:
    if not os.path.exists(bucket):
        return _NONE
    return np.fromfile(bucket, np.int64).reshape(-1, stages.NUM_FIELDS)


def _shown(
    parts_of_buckets: Iterable[list[output.Part]], sizes: npt.NDArray[np.int64]
) -> Iterator[output.Part]:
    """Passes the parts of buckets on, under a bar of instances."""
    with progress.bar(
        description="Writing records", total=int(sizes.sum()), unit="instance"
    ) as shown:
        for parts, size in zip(parts_of_buckets, sizes.tolist(), strict=True):
            yield from parts
            shown.update(size)
