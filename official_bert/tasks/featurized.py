"""Examples -> the TFRecord files of the 2018 release.

Beside `train.tf_record` lies `train.tf_record.json`, which says what it was
made of, so that it is used again while nothing has changed.
"""

import contextlib
import hashlib
import itertools
import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert import files, json_files, progress
from official_bert.inputs import padding
from official_bert.inputs.padding import Row
from official_bert.inputs.schemas import Schema
from official_bert.inputs.tfrecords import encode_examples
from official_bert.tasks.task import Task
from official_bert.tokenization import BatchTokenizer

# Rows encoded at once.
_BLOCK = 256

# To be raised when the same examples come to give other records.
_VERSION = 1


def write_records(
    path: str,
    task: Task,
    examples: Sequence[Any],
    tokenizer: BatchTokenizer,
    max_seq_length: int,
    *,
    is_training: bool = True,
) -> int:
    """Writes one record for each row of the examples, unless they are there.

    Rows are made and written some at a time; what stood at `path` stays until
    all are.

    Args:
        path: The TFRecord file.
        task: The examples' task.
        examples: In the order of the records.
        tokenizer: Cuts words into pieces.
        max_seq_length: What rows are padded to.
        is_training: Whether to write what is to be learned.

    Returns:
        The number of records.
    """
    made_of = _fingerprint(
        examples,
        (task.to_json(), max_seq_length, is_training),
        tokenizer,
    )
    num_there = _num_records_made_of(made_of, path)
    if num_there is not None:
        logging.info("%s: its %d records are still right", path, num_there)
        return num_there
    if files.exists(_note_path(path)):
        files.write_text(_note_path(path), "{}\n")  # No longer true.
    schema = task.schema(max_seq_length, is_training=is_training)
    rows = task.featurize(
        examples, tokenizer, max_seq_length, is_training=is_training
    )
    shown = progress.bar(rows, description="Featurizing", unit="row")
    with writing(path) as writer:
        num_records = write_rows(writer, schema, (r.row for r in shown))
    note = {
        "made_of": made_of,
        "num_records": num_records,
        "size": files.size(path),
    }
    json_files.write(_note_path(path), note)
    return num_records


@contextlib.contextmanager
def writing(path: str) -> Iterator[Any]:
    """Yields a TFRecord writer whose file appears at the end."""
    with (
        files.replacing(path) as temporary,
        tf.io.TFRecordWriter(temporary) as writer,
    ):
        yield writer


def write_rows(writer: Any, schema: Schema, rows: Iterable[Row]) -> int:
    """Writes rows, each sequence at its full length; returns how many."""
    num_rows = 0
    remaining = iter(rows)
    while block := list(itertools.islice(remaining, _BLOCK)):
        for example in _encoded(schema, block):
            writer.write(example)
        num_rows += len(block)
    return num_rows


def _encoded(schema: Schema, rows: Sequence[Row]) -> Iterator[bytes]:
    [length] = {f.length for f in schema.values() if f.is_sequence}
    batch = padding.pad_batch(schema, rows, length, len(rows))
    yield from encode_examples(
        {name: array.reshape(len(rows), -1) for name, array in batch.items()}
    )


def _note_path(path: str) -> str:
    return f"{path}.json"


def _num_records_made_of(made_of: str, path: str) -> int | None:
    """Returns the number of records, or None if they must be made anew."""
    if not files.exists(path) or not files.exists(_note_path(path)):
        return None
    try:
        note = json.loads(files.read_text(_note_path(path)))
        is_whole = note["size"] == files.size(path)
        is_right = is_whole and note["made_of"] == made_of
        return int(note["num_records"]) if is_right else None
    except (ValueError, KeyError, TypeError):  # No note of ours.
        return None


def _fingerprint(
    examples: Iterable[Any], settings: Any, tokenizer: BatchTokenizer
) -> str:
    """Returns a hash of all that the records depend on."""
    basic = tokenizer.basic_tokenizer
    digest = hashlib.sha256()
    for part in (
        _VERSION,
        unicodedata.unidata_version,  # Tells letters from punctuation.
        settings,
        basic.do_lower_case,
        basic.never_split.tokens,
        list(tokenizer.vocab.items()),
    ):
        digest.update(repr(part).encode())
    for example in examples:
        digest.update(repr(example).encode())
    return digest.hexdigest()
